//! `cargo xtask ci`: runs the steps of CI, so that local results equal those of CI.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;

use crate::signals::Signals;
use crate::{
    codegen, compat, definitions, deny, e2e, examples, fuzz, guide, inspector, loom, miri, mutants, process,
    release, simulate, tidy, workspace,
};

/// A step of CI. Most steps are commands of `cargo xtask`.
#[derive(Clone, Copy, Debug)]
enum Step {
    Cargo(&'static [&'static str]),
    /// `cargo doc`, which reads its lint levels from an environment variable.
    Doc,
    Guide,
    Tidy,
    Codegen,
    /// Checks that the generated code of the example `custom-groups` is up to date.
    CustomGroups,
    Release(&'static release::Args),
    Deny,
    Compat,
    /// Clippy on informer-factory, compiled for this version of Kubernetes.
    Kubernetes(&'static str),
    Loom,
    Miri,
    Inspector,
    Simulate(&'static simulate::Args),
    Mutants,
    Fuzz,
    Definitions(&'static definitions::Args),
    Examples,
    E2e,
    LongE2e,
}

/// The optional features of the package `quickstart`, for clippy. Tests run without these features.
const CLIPPY_FEATURES: &str = "quickstart/cluster,quickstart/inspect";

const CLIPPY: &[&str] =
    &["clippy", "--workspace", "--all-targets", "--features", CLIPPY_FEATURES, "--", "-D", "warnings"];

/// The first command of README.md, with `--for` to end the program.
const QUICKSTART: &[&str] = &["run", "-p", "quickstart", "--example", "quickstart", "--", "--for", "15s"];

/// The arguments of clippy for the test target `browser`, which [`CLIPPY`] omits.
// The manifest sets `test = false` for this target. The packages and features are those of
// `CLIPPY`, so that cargo builds no dependency again.
const BROWSER_CLIPPY: &[&str] =
    &["clippy", "--workspace", "--test", "browser", "--features", CLIPPY_FEATURES, "--", "-D", "warnings"];

/// The steps in their order. Quick checks come first.
const STEPS: [(&str, Step); 23] = [
    ("fmt", Step::Cargo(&["fmt", "--all", "--check"])),
    ("clippy", Step::Cargo(CLIPPY)),
    ("clippy of browser tests", Step::Cargo(BROWSER_CLIPPY)),
    ("tidy", Step::Tidy),
    ("codegen", Step::Codegen),
    ("codegen of custom groups", Step::CustomGroups),
    ("release", Step::Release(&release::Args::CHECK)),
    // All other steps in this list use the features of Kubernetes 1.36.
    ("Kubernetes 1.37", Step::Kubernetes("1.37")),
    ("Kubernetes 1.35", Step::Kubernetes("1.35")),
    ("Kubernetes 1.34", Step::Kubernetes("1.34")),
    ("Kubernetes 1.33", Step::Kubernetes("1.33")),
    ("test", Step::Cargo(&["test", "--workspace"])),
    ("simulate", Step::Simulate(&simulate::Args::CI)),
    ("doc", Step::Doc),
    ("guide", Step::Guide),
    ("loom", Step::Loom),
    ("quickstart", Step::Cargo(QUICKSTART)),
    ("inspector", Step::Inspector),
    // Measures the peak memory of a list, which is the same without optimization.
    ("lists", Step::Cargo(&["test", "--workspace", "--bench", "lists", "--", "--quick"])),
    ("examples", Step::Examples),
    ("example custom-groups", Step::Cargo(&["run", "--example", "custom-groups"])),
    ("e2e", Step::E2e),
    ("definitions", Step::Definitions(&definitions::Args::CI)),
];

/// The additional steps of `--long`, which take too long to run for every change.
const LONG_STEPS: [(&str, Step); 9] = [
    ("long e2e", Step::LongE2e),
    ("miri", Step::Miri),
    ("fuzz", Step::Fuzz),
    ("simulate longer", Step::Simulate(&simulate::Args::LONG)),
    ("more definitions", Step::Definitions(&definitions::Args::LONG)),
    ("mutants", Step::Mutants),
    ("packages", Step::Release(&release::Args::COMPILE)),
    ("dependencies", Step::Deny),
    ("compatibility", Step::Compat),
];

/// Arguments of `cargo xtask ci`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also run slow steps, which take about 80 minutes: the end-to-end tests that take minutes,
    /// the tests in Miri, five minutes of fuzzing, ten thousand simulation seeds, code generation
    /// from the custom resource definitions of Istio, Karpenter and other projects, the tests with
    /// planted bugs, and the checks of packages, dependencies and compatibility
    #[arg(long)]
    long: bool,
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let long_steps = if args.long { &LONG_STEPS[..] } else { &[] };
    let count = STEPS.len() + long_steps.len();
    for (number, (name, step)) in STEPS.iter().chain(long_steps).enumerate() {
        eprintln!("\n== {}/{count} {name}", number + 1);
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
    /// Returns whether the step passed.
    fn run(self, signals: &Signals) -> anyhow::Result<bool> {
        let code = match self {
            Self::Cargo(args) => cargo(args, &[], signals)?,
            Self::Doc => {
                let args = ["doc", "--workspace", "--no-deps"];
                cargo(&args, &[("RUSTDOCFLAGS", "-D warnings")], signals)?
            }
            Self::Guide => guide::run(&guide::Args::default(), signals)?,
            Self::Tidy => tidy::run(&tidy::TidyArgs::default())?,
            Self::Simulate(args) => simulate::run(args, signals)?,
            Self::Mutants => mutants::run(&mutants::Args::default(), signals)?,
            Self::Fuzz => fuzz::run(&fuzz::Args::LONG, signals)?,
            Self::Codegen => codegen::run(&codegen::Args::CHECK, signals)?,
            Self::Release(args) => release::run(args, signals)?,
            Self::Deny => deny::run(&deny::Args::default(), signals)?,
            Self::Compat => compat::run(&compat::Args::default(), signals)?,
            Self::CustomGroups => codegen::check_example(signals)?,
            Self::Kubernetes(version) => for_kubernetes(version, signals)?,
            Self::Definitions(args) => definitions::run(args, signals)?,
            Self::Loom => loom::run(signals)?,
            Self::Miri => miri::run(signals)?,
            Self::Inspector => inspector::run(&inspector::Args::default(), signals)?,
            Self::Examples => examples::run(signals)?,
            Self::E2e => e2e::run(&e2e::Args::all_controllers(), signals)?,
            Self::LongE2e => e2e::run(&e2e::Args::long_tests(), signals)?,
        };
        Ok(code == ExitCode::SUCCESS)
    }
}

fn for_kubernetes(version: &str, signals: &Signals) -> anyhow::Result<ExitCode> {
    let args = ["clippy", "--package", "informer-factory", "--lib", "--", "-D", "warnings"];
    // A separate target folder: another version of k8s-openapi would make all other builds start from scratch.
    let folder = workspace::root().join("target/versions");
    let folder = folder.to_string_lossy();
    let env = [("K8S_OPENAPI_ENABLED_VERSION", version), ("CARGO_TARGET_DIR", folder.as_ref())];
    cargo(&args, &env, signals)
}

fn cargo(args: &[&str], env: &[(&str, &str)], signals: &Signals) -> anyhow::Result<ExitCode> {
    let mut command = workspace::cargo();
    command.args(args).envs(env.iter().copied());
    let status = process::run(&mut command, signals, || Ok(()))?;
    Ok(process::exit_code(status))
}
