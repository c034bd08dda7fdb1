//! `cargo xtask simulate`: the deterministic simulation with many seeds, or with bugs put into the sources, each of
//! which it has to find.

mod mutants;

use std::process::{Command, ExitCode};

use crate::signals::Signals;
use crate::{process, workspace};

/// How many seeds to try.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many seeds are tried.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,

    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,

    /// Prints the whole history of the first seed, whether or not it fails, and tries no more.
    #[arg(long, conflicts_with = "mutants")]
    print: bool,

    /// Instead puts bugs into a copy of the sources, one at a time, and says which of them these seeds find.
    #[arg(long)]
    mutants: bool,

    /// Of the bugs, only those whose name contains this.
    #[arg(long, requires = "mutants", value_name = "TEXT", default_value = "")]
    only: String,
}

impl Args {
    /// What CI runs.
    pub(crate) const CI: Self = Self::of(2_000, 0, false);

    /// What the long job runs: other seeds than CI.
    pub(crate) const LONG: Self = Self::of(10_000, 2_000, false);

    /// What the long job runs to see that bugs are found.
    pub(crate) const MUTANTS: Self = Self::of(200, 0, true);

    const fn of(seeds: u64, from: u64, mutants: bool) -> Self {
        Self { seeds, from, print: false, mutants, only: String::new() }
    }
}

/// Tries the seeds.
pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    if args.mutants {
        return mutants::run(args, signals);
    }
    let mut command = tests(args);
    let test = if args.print { "the_history_of_one_seed" } else { "i9_" };
    command.args(["--", "--nocapture", "--include-ignored", test]);
    let status = process::run(&mut command, signals, || Ok(()))?;
    Ok(process::exit_code(status))
}

/// Cargo's command for the tests of the simulation with the wanted seeds.
fn tests(args: &Args) -> Command {
    let mut command = workspace::cargo();
    command
        .args(["test", "--package", "informer-factory", "--test", "simulation"])
        .env("INFORMER_SEED", args.from.to_string())
        .env("INFORMER_SEEDS", args.seeds.to_string());
    command
}
