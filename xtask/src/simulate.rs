//! `cargo xtask simulate`: runs the integration test `simulation` of informer-factory with many
//! seeds. The test runs informers against a simulated API server. The seed determines the random
//! writes and faults.

use std::process::{Command, ExitCode};

use crate::signals::Signals;
use crate::{process, workspace};

/// Arguments of `cargo xtask simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of seeds
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,

    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,

    /// Print the whole history of the first seed, even if it passes, and run no other seed
    #[arg(long)]
    print: bool,
}

impl Args {
    /// The arguments for `cargo xtask ci`: the first 2,000 seeds, without the first 200, which
    /// `cargo test` runs.
    pub(crate) const CI: Self = Self::of(1_800, 200);

    /// The arguments for `cargo xtask ci --long`: the 10,000 seeds after those of [`Self::CI`].
    pub(crate) const LONG: Self = Self::of(10_000, 2_000);

    pub(crate) const fn of(seeds: u64, from: u64) -> Self {
        Self { seeds, from, print: false }
    }
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let mut command = tests(args);
    let test = if args.print { "print_history_of_one_seed" } else { "i9_" };
    command.args(["--", "--nocapture", "--include-ignored", test]);
    Ok(process::exit_code(process::run(&mut command, signals)?))
}

/// Returns the cargo command that runs the simulation.
pub(crate) fn tests(args: &Args) -> Command {
    let mut command = workspace::cargo();
    // With `--workspace`, the dependencies have the same features as in `cargo test --workspace`,
    // so that cargo does not build the dependencies again.
    command
        .args(["test", "--workspace", "--test", "simulation"])
        .env("INFORMER_SEED", args.from.to_string())
        .env("INFORMER_SEEDS", args.seeds.to_string());
    command
}
