//! `cargo xtask bench`: runs our benchmarks and client-go's in turn, and prints one table.
//!
//! Results from different machines or moments are not comparable, so our programs and client-go's
//! run alternately.

mod cases;
mod crates;
mod figures;
mod machine;
mod programs;
mod table;
mod types;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use self::cases::CASES;
use self::figures::Figures;
use self::machine::Machine;
use self::programs::{ClientGo, Effort, build_ours, measure_ours};
use crate::signals::Signals;

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<BenchCommand>,

    /// Measure one short round, for a first impression
    #[arg(long)]
    quick: bool,

    /// Number of rounds; the table shows medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,

    /// Measure only our programs, even if Go is installed
    #[arg(long)]
    without_go: bool,

    /// Measure only how much each additional type of objects adds to compile time and program size
    #[arg(long, conflicts_with_all = ["quick", "without_go", "json"])]
    types: bool,

    /// Measure only published crates: the number of dependencies, and the time to compile each
    /// crate with its dependencies
    #[arg(long, conflicts_with_all = ["types", "quick", "rounds", "without_go", "json"])]
    crates: bool,

    /// Also write the medians to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum BenchCommand {
    /// Replay recorded responses of a real API server to our informers, client-go, kube-rs and fabric8, and compare
    /// them
    Wire(wire::Args),
}

/// Makes the measurement that `args` selects, and prints its results.
pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    if let Some(BenchCommand::Wire(args)) = &args.command {
        return wire::run(args, signals);
    }
    if args.types {
        types::run(args.rounds, signals)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.crates {
        crates::run(signals)?;
        return Ok(ExitCode::SUCCESS);
    }
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    build_ours(signals)?;
    let client_go = if args.without_go { None } else { ClientGo::build(signals)? };
    let rounds = if args.quick { 1 } else { args.rounds };
    let (mut our_figures, mut their_figures) = (Figures::default(), Figures::default());
    for round in 1..=rounds {
        eprintln!("== round {round} of {rounds}");
        // Both sides take turns in each part, so that disturbances of the machine affect both.
        for part in cases::PARTS {
            measure_ours(part, effort, &mut our_figures, signals)?;
            if let Some(client_go) = &client_go {
                client_go.measure(part, effort, &mut their_figures, signals)?;
            }
        }
    }
    for case in CASES.iter().filter(|case| our_figures.median(case.ours, case.unit).is_none()) {
        eprintln!(
            "the benchmark `{}` does not exist; correct its name in xtask/src/bench/cases.rs",
            case.ours
        );
    }
    let machine = Machine::here(client_go.is_some())?;
    println!("{machine}\n\n{}", table::markdown(&CASES, &our_figures, &their_figures));
    if let Some(path) = &args.json {
        let json = table::json(&machine, &CASES, &our_figures, &their_figures);
        std::fs::write(path, format!("{json:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap::error::ErrorKind;

    use crate::Cli;

    #[test]
    fn separate_measurements_refuse_options_that_they_ignore() {
        let ignored = ["--json=FILE", "--quick", "--without-go"];
        let mut cases: Vec<_> = ignored.iter().flat_map(|it| [("--types", *it), ("--crates", *it)]).collect();
        cases.push(("--crates", "--rounds=1"));
        for (measurement, option) in cases {
            let parsed = Cli::try_parse_from(["cargo xtask", "bench", measurement, option]);
            let error = parsed.expect_err("the command must be refused");
            assert_eq!(error.kind(), ErrorKind::ArgumentConflict, "{measurement} {option}");
        }
    }
}
