//! `cargo xtask loom`: the test targets named `loom`, built so that loom decides which thread goes on when.

use std::process::ExitCode;

use crate::signals::Signals;
use crate::{process, workspace};

/// The crates with such tests.
const CRATES: [&str; 3] = ["informer-core", "informer-store", "informer-workqueue"];

/// Runs the models. They are built in a folder of their own, since every crate is built anew for them.
pub(crate) fn run(signals: &Signals) -> anyhow::Result<ExitCode> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut command = workspace::cargo();
    command
        .args(["test", "--release", "--test", "loom"])
        .args(CRATES.into_iter().flat_map(|name| ["--package", name]))
        .env("RUSTFLAGS", format!("{flags} --cfg informer_loom"))
        .env("CARGO_TARGET_DIR", workspace::root().join("target").join("loom"));
    let status = process::run(&mut command, signals, || Ok(()))?;
    Ok(process::exit_code(status))
}
