//! `cargo xtask miri`: runs the tests of this workspace's only `unsafe` code, the pointers to
//! objects in informer-core, with the interpreter Miri.

use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::signals::Signals;
use crate::{process, workspace};

/// Only a nightly toolchain has Miri.
const TOOLCHAIN: &str = "nightly";

/// Runs each test with 16 seeds for the order of threads.
pub(crate) fn run(signals: &Signals) -> anyhow::Result<ExitCode> {
    let has_miri = Command::new("rustup").args(["run", TOOLCHAIN, "cargo-miri", "--version"]).output();
    if !has_miri.context("cannot start `rustup`, which installs Miri")?.status.success() {
        let mut install = Command::new("rustup");
        install.args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal"]);
        install.args(["--component", "miri", "--component", "rust-src"]);
        process::run_or_fail(&mut install, signals, "rustup failed to install Miri; its message is above")?;
    }
    let mut command = Command::new("rustup");
    command.current_dir(workspace::root()).args(["run", TOOLCHAIN, "cargo", "miri", "test"]);
    command.args(["--package", "informer-core", "--lib", "--"]);
    command.args(["thin_arc", "cached", "owned_object", "encoded"]);
    workspace::remove_toolchain_variables(&mut command);
    command
        .env("MIRIFLAGS", "-Zmiri-many-seeds=0..16")
        .env("CARGO_TARGET_DIR", workspace::root().join("target/miri"));
    Ok(process::exit_code(process::run(&mut command, signals)?))
}
