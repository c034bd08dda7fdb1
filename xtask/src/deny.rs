//! `cargo xtask deny`: checks the licences, versions and sources of all dependencies with cargo-deny and `deny.toml`.

use std::process::{Command, ExitCode};

use crate::signals::Signals;
use crate::tools::Tool;
use crate::{process, workspace};

const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", args: &[] };

/// The checks that always run. The check of advisories needs to download a database.
const CHECKS: [&str; 3] = ["bans", "licenses", "sources"];

/// Arguments of `cargo xtask deny`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Also check for security advisories, which needs access to the database of the `RustSec` project
    #[arg(long)]
    advisories: bool,
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let root = workspace::root();
    let mut command = Command::new(CARGO_DENY.ensure(&root, signals)?);
    command.current_dir(&root).args(["check", "--hide-inclusion-graph"]).args(CHECKS);
    if args.advisories {
        command.arg("advisories");
    }
    workspace::remove_package_variables(&mut command);
    Ok(process::exit_code(process::run(&mut command, signals)?))
}
