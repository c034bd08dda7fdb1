//! Developer commands of this workspace, run as `cargo xtask COMMAND`.

mod apiserver;
mod bench;
mod ci;
mod client_go;
mod codegen;
mod compat;
mod controlplane;
mod definitions;
mod deny;
mod e2e;
mod examples;
mod fuzz;
mod guide;
mod inspector;
mod loom;
mod miri;
mod mutants;
mod process;
mod release;
mod signals;
mod simulate;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::signals::{Interrupted, Signals};

/// Developer commands of this workspace
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a real etcd and kube-apiserver on loopback until Ctrl-C or, with `-- CMD`, until the
    /// program CMD ends
    Apiserver(apiserver::Args),
    /// Run the end-to-end tests against a real kube-apiserver
    E2e(e2e::Args),
    /// Generate Rust methods that return informers, such as `core().v1().pods()`, for Kubernetes'
    /// own kinds or, with `--crd`, for custom resources
    Codegen(codegen::Args),
    /// Fuzz decoders, responses, continue tokens and selectors; by default for one minute in total
    Fuzz(fuzz::Args),
    /// Generate types and accessors from public custom resource definitions, compile them, and
    /// use those of Gateway API to watch objects on a real kube-apiserver
    Definitions(definitions::Args),
    /// Build the guide as a book into target/guide, and check the links between its pages
    Guide(guide::Args),
    /// Test the inspector of informer-monitor in a headless Chromium
    Inspector(inspector::Args),
    /// Run the concurrency tests of queues, store and handlers with the crate loom, which repeats
    /// each test with all thread interleavings that have at most three preemptions
    Loom,
    /// Run the tests of this workspace's only unsafe code with the interpreter Miri, which finds
    /// undefined behavior, data races and leaks
    Miri,
    /// Test informers on a simulated server with random writes and faults, once for each of many
    /// seeds; a seed always gives the same run
    Simulate(simulate::Args),
    /// Plant bugs in a copy of the sources, and check that `simulate` or the test of an invariant
    /// finds each bug
    Mutants(mutants::Args),
    /// Measure this workspace and, if Go is installed, client-go, and print a table
    Bench(bench::Args),
    /// Check the rules of this workspace that no compiler or linter checks
    Tidy(tidy::TidyArgs),
    /// Check the licences, versions and sources of all dependencies
    Deny(deny::Args),
    /// Run four checks: compile each crate alone; compile all crates with the oldest supported
    /// compiler; compile them with the oldest allowed dependencies; compare their public interfaces
    /// with the last release
    Compat(compat::Args),
    /// Check that all crates are ready for crates.io; without `--check`, publish them
    Release(release::Args),
    /// Run all steps of CI, up to the first failure
    Ci(ci::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => code,
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Apiserver(args) => apiserver::run(&args, &Signals::install()?),
        Command::E2e(args) => e2e::run(&args, &Signals::install()?),
        Command::Codegen(args) => codegen::run(&args, &Signals::install()?),
        Command::Fuzz(args) => fuzz::run(&args, &Signals::install()?),
        Command::Definitions(args) => definitions::run(&args, &Signals::install()?),
        Command::Guide(args) => guide::run(&args, &Signals::install()?),
        Command::Inspector(args) => inspector::run(&args, &Signals::install()?),
        Command::Loom => loom::run(&Signals::install()?),
        Command::Miri => miri::run(&Signals::install()?),
        Command::Mutants(args) => mutants::run(&args, &Signals::install()?),
        Command::Simulate(args) => simulate::run(&args, &Signals::install()?),
        Command::Bench(args) => bench::run(&args, &Signals::install()?),
        Command::Tidy(args) => tidy::run(&args),
        Command::Deny(args) => deny::run(&args, &Signals::install()?),
        Command::Compat(args) => compat::run(&args, &Signals::install()?),
        Command::Release(args) => release::run(&args, &Signals::install()?),
        Command::Ci(args) => ci::run(&args, &Signals::install()?),
    }
}
