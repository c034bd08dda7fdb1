//! Installs developer programs from crates.io below `target/tools`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// A developer program that `cargo install` builds from crates.io.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The name of the package, and of its program.
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Further arguments of `cargo install`, such as features.
    pub(crate) args: &'static [&'static str],
}

impl Tool {
    /// Returns the path of the program, after installing it if necessary.
    pub(crate) fn ensure(&self, root: &Path, signals: &Signals) -> anyhow::Result<PathBuf> {
        let Self { name, version, args } = self;
        let tools = root.join("target/tools");
        let folder = tools.join(format!("{name}-{version}"));
        let program = folder.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        if program.is_file() {
            return Ok(program);
        }
        let into = folder.display();
        eprintln!("installing {name} {version} into {into}; the first time this takes some minutes");
        let build = tools.join("build");
        let mut command = workspace::cargo();
        // Without optimization: an optimized build would take longer, and the program runs only briefly.
        command.args(["install", name, "--locked", "--debug", "--version", version, "--root"]);
        command
            .arg(&folder)
            .args(*args)
            .env("CARGO_TARGET_DIR", &build)
            .env_remove("K8S_OPENAPI_ENABLED_VERSION");
        fs::create_dir_all(&build)
            .with_context(|| format!("cannot create the folder {}", build.display()))?;
        // Outside of the workspace's folder, so that its cargo settings do not apply to the program.
        command.current_dir(std::env::temp_dir());
        let problem = format!("`cargo install {name}` failed; its message is above");
        process::run_or_fail(&mut command, signals, &problem)?;
        fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))?;
        Ok(program)
    }
}
