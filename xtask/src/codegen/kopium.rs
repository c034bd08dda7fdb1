//! Installs kopium, which generates types from schemas, below `target`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use informer_codegen::KOPIUM_VERSION;

use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// Returns the path of kopium, after installing it if necessary.
pub(crate) fn ensure(root: &Path, signals: &Signals) -> anyhow::Result<PathBuf> {
    let folder = root.join("target/tools").join(format!("kopium-{KOPIUM_VERSION}"));
    let program = folder.join("bin").join(format!("kopium{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    let into = folder.display();
    eprintln!(
        "codegen: installing kopium {KOPIUM_VERSION} into {into}; the first time this takes some minutes"
    );
    let build = root.join("target/tools/build");
    let mut command = workspace::cargo();
    // Without optimization: an optimized build would take longer, and kopium runs only briefly.
    command.args(["install", "kopium", "--locked", "--debug", "--version", KOPIUM_VERSION, "--root"]);
    command.arg(&folder).env("CARGO_TARGET_DIR", &build).env_remove("K8S_OPENAPI_ENABLED_VERSION");
    fs::create_dir_all(&build).with_context(|| format!("cannot create the folder {}", build.display()))?;
    // Outside of the workspace's folder, so that its cargo settings do not apply to kopium.
    command.current_dir(std::env::temp_dir());
    if !process::run(&mut command, signals, || Ok(()))?.success() {
        bail!("`cargo install kopium` failed; its message is above");
    }
    fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))?;
    Ok(program)
}
