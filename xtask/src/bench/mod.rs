//! `cargo xtask bench`: our benchmarks and client-go's, in turn in one run, as one table.
//!
//! Machines are noisy, and other machines are other machines; so figures are compared within a run only, and each is
//! the median of several rounds in which both sides had their turn.

mod cases;
mod figures;
mod machine;
mod programs;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use self::cases::CASES;
use self::figures::Figures;
use self::machine::Machine;
use self::programs::{ClientGo, Effort, build_ours, measure_ours};
use crate::signals::Signals;

/// What to measure and where to write it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A glance instead of a measurement: one short round.
    #[arg(long)]
    quick: bool,

    /// How often both sides are measured; the table has medians.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,

    /// Measure only ours, even if Go is there.
    #[arg(long)]
    without_go: bool,

    /// Also write the figures to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Builds everything, measures round by round, and prints the table.
pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let effort = if args.quick { Effort::Glance } else { Effort::Whole };
    build_ours(signals)?;
    let client_go = if args.without_go { None } else { ClientGo::build(signals)? };
    let rounds = if args.quick { 1 } else { args.rounds };
    let (mut our_figures, mut their_figures) = (Figures::default(), Figures::default());
    for round in 1..=rounds {
        eprintln!("== round {round} of {rounds}");
        // In parts, so that what the machine does meanwhile meets both sides alike.
        for part in cases::PARTS {
            measure_ours(part, effort, &mut our_figures, signals)?;
            if let Some(client_go) = &client_go {
                client_go.measure(part, effort, &mut their_figures, signals)?;
            }
        }
    }
    for case in CASES.iter().filter(|case| our_figures.median(case.ours, case.unit).is_none()) {
        eprintln!("no benchmark of ours is called \"{}\": correct xtask/src/bench/cases.rs", case.ours);
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
