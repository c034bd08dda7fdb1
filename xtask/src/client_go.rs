//! Builds client-go programs with Go from `xtask/clientgo`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::bail;

use crate::signals::Signals;
use crate::{process, workspace};

/// Builds one program as `target/NAME`. Returns `None` if Go is not installed.
pub(crate) fn build(package: &str, name: &str, signals: &Signals) -> anyhow::Result<Option<PathBuf>> {
    let version = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let path = workspace::root().join("target").join(name);
    let mut command = Command::new("go");
    command
        .args(["build", "-trimpath", "-buildvcs=false", "-o"])
        .arg(&path)
        .arg(package)
        .current_dir(workspace::root().join("xtask/clientgo"))
        .env("CGO_ENABLED", "0")
        // A `go.work` file in a parent folder would replace our module's versions.
        .env("GOWORK", "off")
        .stdin(Stdio::null());
    if !process::run(&mut command, signals, || Ok(()))?.success() {
        bail!(
            "`go build` failed, see its message above; it needs Go 1.26 or newer and access to a Go module proxy. \
             `cargo xtask bench --without-go` measures only our side"
        );
    }
    Ok(Some(path))
}
