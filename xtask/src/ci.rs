//! `cargo xtask ci`: what CI runs, and in the same way, so that what passes here passes there.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;

use crate::signals::Signals;
use crate::{codegen, e2e, loom, process, tidy, workspace};

/// One thing to run.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Cargo, with these arguments.
    Cargo(&'static [&'static str]),
    /// `cargo doc`, which takes its lints from the environment.
    Doc,
    /// `cargo xtask tidy`.
    Tidy,
    /// `cargo xtask codegen --check`.
    Codegen,
    /// `cargo xtask loom`.
    Loom,
    /// `cargo xtask e2e`, with controllers, a scheduler and nodes.
    E2e,
}

/// The steps, those that fail soonest first.
const STEPS: [(&str, Step); 9] = [
    ("fmt", Step::Cargo(&["fmt", "--all", "--check"])),
    ("clippy", Step::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("tidy", Step::Tidy),
    ("codegen", Step::Codegen),
    ("test", Step::Cargo(&["test", "--workspace"])),
    ("doc", Step::Doc),
    ("loom", Step::Loom),
    ("quickstart", Step::Cargo(&["run", "--release", "--example", "quickstart", "--", "--for", "5s"])),
    ("e2e", Step::E2e),
];

/// Runs every step up to the first that fails.
pub(crate) fn run(signals: &Signals) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    for (number, (name, step)) in STEPS.iter().enumerate() {
        eprintln!("\n== {}/{} {name}", number + 1, STEPS.len());
        let step_began = Instant::now();
        let passed = step.run(signals)?;
        let elapsed = step_began.elapsed();
        if !passed {
            bail!("step `{name}` failed after {elapsed:.1?}; its message is above");
        }
        eprintln!("== {name} passed in {elapsed:.1?}");
    }
    eprintln!("\nall steps passed in {:.1?}", began.elapsed());
    Ok(ExitCode::SUCCESS)
}

impl Step {
    /// Runs the step and says whether it passed.
    fn run(self, signals: &Signals) -> anyhow::Result<bool> {
        let code = match self {
            Self::Cargo(args) => cargo(args, &[], signals)?,
            Self::Doc => {
                let args = ["doc", "--workspace", "--no-deps"];
                cargo(&args, &[("RUSTDOCFLAGS", "-D warnings")], signals)?
            }
            Self::Tidy => tidy::run()?,
            Self::Codegen => codegen::run(&codegen::Args::CHECK, signals)?,
            Self::Loom => loom::run(signals)?,
            Self::E2e => e2e::run(&e2e::Args::whole_control_plane(), signals)?,
        };
        Ok(code == ExitCode::SUCCESS)
    }
}

fn cargo(args: &[&str], env: &[(&str, &str)], signals: &Signals) -> anyhow::Result<ExitCode> {
    let mut command = workspace::cargo();
    command.args(args).envs(env.iter().copied());
    let status = process::run(&mut command, signals, || Ok(()))?;
    Ok(process::exit_code(status))
}
