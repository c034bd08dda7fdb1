//! `cargo xtask codegen`: typed accessors of informers, made from facts about kinds. Facts are read, named and checked,
//! expanded to code and laid out, one step per module.
//!
//! Without arguments it is for Kubernetes' own kinds (`built_in`); with `--crd`, for those of the user (`crd`).
//! The unit test `codegen` runs the same check as `--check`, so that `cargo test` finds what CI would.

mod built_in;
mod crd;
mod data;
mod expand;
mod files;
mod format;
mod gate;
mod lower;
mod names;
mod pipe;
mod refresh;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::signals::Signals;
use crate::workspace;

/// A program with generated groups, relative to the workspace's root.
const EXAMPLE: &str = "examples/custom-groups";

/// What to generate, and whether to write.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a file is not what it should be.
    #[arg(long)]
    check: bool,

    /// First bring the data on Kubernetes' own kinds up to date, from the sources of k8s-openapi.
    #[arg(long, conflicts_with = "crd")]
    refresh: bool,

    /// Generate for the definitions of custom resources in these files instead: types and accessors.
    #[arg(long, value_name = "FILE.yaml", num_args = 1.., requires = "out")]
    crd: Vec<PathBuf>,

    /// Where the types and accessors of `--crd` go. Everything generated there before is replaced.
    #[arg(long, value_name = "DIR", requires = "crd")]
    out: Option<PathBuf>,
}

impl Args {
    /// As `--check` says.
    pub(crate) const CHECK: Self = Self { check: true, refresh: false, crd: Vec::new(), out: None };
}

/// Generates for definitions, as `--crd` does.
pub(crate) fn for_definitions(definitions: &[PathBuf], out: &Path, signals: &Signals) -> anyhow::Result<()> {
    crd::run(definitions, out, false, signals)
}

/// Fails if what is generated from the example's definitions is stale, as `--crd` with `--check` does.
pub(crate) fn check_example(signals: &Signals) -> anyhow::Result<ExitCode> {
    let folder = workspace::root().join(EXAMPLE);
    let names = std::fs::read_dir(folder.join("crds"))?.map(|entry| Ok(entry?.path()));
    let mut definitions = names.collect::<std::io::Result<Vec<_>>>()?;
    definitions.sort();
    crd::run(&definitions, &folder.join("groups"), true, signals)?;
    Ok(ExitCode::SUCCESS)
}

/// Brings the generated files up to date, or fails if they are not.
pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    if let Some(out) = &args.out {
        crd::run(&args.crd, out, args.check, signals)?;
        return Ok(ExitCode::SUCCESS);
    }
    let root = workspace::root();
    if args.refresh {
        built_in::refresh(&root, args.check)?;
    }
    if args.check {
        built_in::check(&root)?;
    } else {
        built_in::write(&root)?;
    }
    Ok(ExitCode::SUCCESS)
}
