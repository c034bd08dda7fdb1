//! Builds the client-go programs of the benchmarks with Go from `xtask/clientgo`.

use std::path::PathBuf;

use crate::signals::Signals;
use crate::{controlplane, process, workspace};

/// Builds a Go package of `xtask/clientgo` as `target/NAME`. Returns `None` if Go is not installed.
pub(crate) fn build(package: &str, name: &str, signals: &Signals) -> anyhow::Result<Option<PathBuf>> {
    if !controlplane::has_go() {
        return Ok(None);
    }
    let path = workspace::root().join("target").join(name);
    let mut command = controlplane::go(&workspace::root().join("xtask/clientgo"));
    command.args(["build", "-trimpath", "-buildvcs=false", "-o"]).arg(&path).arg(package);
    let problem = format!(
        "`go build {package}` failed, see its message above; it needs Go 1.26 or newer and access to a Go \
         module proxy"
    );
    process::run_or_fail(&mut command, signals, &problem)?;
    Ok(Some(path))
}
