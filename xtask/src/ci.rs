//! `cargo xtask ci`: runs the steps of CI, so that local results equal those of CI.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;

use crate::signals::Signals;
use crate::{
    codegen, compat, definitions, deny, e2e, examples, fuzz, guide, inspector, loom, miri, mutants, process,
    release, simulate, tidy, workspace,
};

/// Runs a step of CI. The step passes if it returns [`ExitCode::SUCCESS`].
type Step = fn(&Signals) -> anyhow::Result<ExitCode>;

/// The optional features of the package `quickstart`, for clippy. Tests run without these features.
const CLIPPY_FEATURES: &str = "quickstart/cluster,quickstart/inspect";

const CLIPPY: &[&str] =
    &["clippy", "--workspace", "--all-targets", "--features", CLIPPY_FEATURES, "--", "-D", "warnings"];

/// The first command of README.md, with `--for` to end the program.
const QUICKSTART: &[&str] = &["run", "-p", "quickstart", "--example", "quickstart", "--", "--for", "15s"];

/// The arguments of clippy for the test targets that [`CLIPPY`] omits.
// The manifests set `test = false` for these targets. The packages and features are those of
// `CLIPPY`, so that cargo builds no dependency again.
#[rustfmt::skip]
const OTHER_CLIPPY: &[&str] = &[
    "clippy", "--workspace", "--test", "browser", "--test", "e2e", "--features", CLIPPY_FEATURES, "--", "-D",
    "warnings",
];

/// The steps in their order. Quick checks come first.
const STEPS: [(&str, Step); 23] = [
    ("fmt", |signals| cargo(&["fmt", "--all", "--check"], &[], signals)),
    ("clippy", |signals| cargo(CLIPPY, &[], signals)),
    ("clippy of browser and e2e tests", |signals| cargo(OTHER_CLIPPY, &[], signals)),
    ("tidy", |_| tidy::run(&tidy::TidyArgs::default())),
    ("codegen", |signals| codegen::run(&codegen::Args::CHECK, signals)),
    ("codegen of custom groups", codegen::check_example),
    ("release", |signals| release::run(&release::Args::CHECK, signals)),
    // All other steps in this list use the features of Kubernetes 1.36.
    ("Kubernetes 1.37", |signals| for_kubernetes("1.37", signals)),
    ("Kubernetes 1.35", |signals| for_kubernetes("1.35", signals)),
    ("Kubernetes 1.34", |signals| for_kubernetes("1.34", signals)),
    ("Kubernetes 1.33", |signals| for_kubernetes("1.33", signals)),
    ("test", |signals| cargo(&["test", "--workspace"], &[], signals)),
    ("simulate", |signals| simulate::run(&simulate::Args::CI, signals)),
    ("doc", doc),
    ("guide", |signals| guide::run(&guide::Args::default(), signals)),
    ("loom", loom::run),
    ("quickstart", |signals| cargo(QUICKSTART, &[], signals)),
    ("inspector", |signals| inspector::run(&inspector::Args::default(), signals)),
    // Measures the peak memory of a list, which is the same without optimization.
    ("lists", |signals| cargo(&["test", "--workspace", "--bench", "lists", "--", "--quick"], &[], signals)),
    ("examples", examples::run),
    ("example custom-groups", |signals| cargo(&["run", "--example", "custom-groups"], &[], signals)),
    ("e2e", |signals| e2e::run(&e2e::Args::all_controllers(), signals)),
    ("definitions", |signals| definitions::run(&definitions::Args::CI, signals)),
];

/// The additional steps of `--long`, which take too long to run for every change.
const LONG_STEPS: [(&str, Step); 9] = [
    ("long e2e", |signals| e2e::run(&e2e::Args::long_tests(), signals)),
    ("miri", miri::run),
    ("fuzz", |signals| fuzz::run(&fuzz::Args::LONG, signals)),
    ("simulate longer", |signals| simulate::run(&simulate::Args::LONG, signals)),
    ("more definitions", |signals| definitions::run(&definitions::Args::LONG, signals)),
    ("mutants", |signals| mutants::run(&mutants::Args::default(), signals)),
    ("packages", |signals| release::run(&release::Args::COMPILE, signals)),
    ("dependencies", |signals| deny::run(&deny::Args::default(), signals)),
    ("compatibility", |signals| compat::run(&compat::Args::default(), signals)),
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
        let passed = step(signals)? == ExitCode::SUCCESS;
        let elapsed = step_began.elapsed();
        if !passed {
            bail!("step `{name}` failed after {elapsed:.1?}; its message is above");
        }
        eprintln!("== {name} passed in {elapsed:.1?}");
    }
    eprintln!("\nall steps passed in {:.1?}", began.elapsed());
    Ok(ExitCode::SUCCESS)
}

/// Runs `cargo doc`, which reads its lint levels from an environment variable.
fn doc(signals: &Signals) -> anyhow::Result<ExitCode> {
    cargo(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")], signals)
}

/// Runs clippy on informer-factory, compiled for this version of Kubernetes.
fn for_kubernetes(version: &str, signals: &Signals) -> anyhow::Result<ExitCode> {
    let args = ["clippy", "--package", "informer-factory", "--lib", "--", "-D", "warnings"];
    // A separate target folder: for another version, cargo would compile k8s-openapi and all crates
    // that depend on it again, and once more in the next build.
    let folder = workspace::root().join("target/versions");
    let folder = folder.to_string_lossy();
    let env = [("K8S_OPENAPI_ENABLED_VERSION", version), ("CARGO_TARGET_DIR", folder.as_ref())];
    cargo(&args, &env, signals)
}

fn cargo(args: &[&str], env: &[(&str, &str)], signals: &Signals) -> anyhow::Result<ExitCode> {
    let mut command = workspace::cargo();
    command.args(args).envs(env.iter().copied());
    Ok(process::exit_code(process::run(&mut command, signals)?))
}
