//! `cargo xtask loom`: runs the test targets `loom`. The crate loom repeats each test with all
//! thread interleavings that have at most three preemptions.

use std::process::ExitCode;

use crate::signals::Signals;
use crate::{process, workspace};

/// The crates with a test target `loom`.
const CRATES: [&str; 3] = ["informer-core", "informer-store", "informer-workqueue"];

/// Optimizes the code that runs often: the crates of the workspace, and loom. Optimizing other
/// dependencies would only lengthen the build.
const PROFILE: [&str; 3] = [
    "profile.dev.opt-level=1",
    "profile.dev.package.\"*\".opt-level=0",
    "profile.dev.package.loom.opt-level=1",
];

/// Runs the test targets with the flag `--cfg informer_loom`. The flag affects every crate, so this
/// build has its own target folder.
pub(crate) fn run(signals: &Signals) -> anyhow::Result<ExitCode> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut command = workspace::cargo();
    command
        .args(PROFILE.into_iter().flat_map(|setting| ["--config", setting]))
        .args(["test", "--test", "loom"])
        .args(CRATES.into_iter().flat_map(|name| ["--package", name]))
        .env("RUSTFLAGS", format!("{flags} --cfg informer_loom"))
        .env("CARGO_TARGET_DIR", workspace::root().join("target").join("loom"));
    Ok(process::exit_code(process::run(&mut command, signals)?))
}
