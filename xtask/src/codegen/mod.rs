//! `cargo xtask codegen`: generates the code about Kubernetes' own kinds, mainly from facts in
//! `xtask/groups.json`, or, with `--crd`, the code for custom resources.
//!
//! The unit test `codegen` finds stale files, but does not compare the data with Kubernetes.

mod built_in;
pub(crate) mod data;
mod direct;
mod expand;
mod facts;
mod kubernetes;
mod lower;
mod merging;
mod messages;
mod methods;
mod refresh;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use informer_codegen::{Generator, KOPIUM_VERSION};

use crate::signals::Signals;
use crate::tools::Tool;
use crate::workspace;

const EXAMPLE: &str = "examples/custom-groups";

/// The program that generates Rust types from schemas.
const KOPIUM: Tool = Tool { name: "kopium", version: KOPIUM_VERSION, args: &[] };

/// Arguments of `cargo xtask codegen`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a generated file is stale, or if the stored data of Kubernetes' kinds
    /// differs from the sources of k8s-openapi or of Kubernetes (which needs Go)
    #[arg(long)]
    check: bool,

    /// First update the data of Kubernetes' kinds from the sources of k8s-openapi and of Kubernetes (which needs Go)
    #[arg(long, conflicts_with_all = ["crd", "check"])]
    refresh: bool,

    /// Generate only types and accessors from the custom resource definitions in these files, and
    /// no code about Kubernetes' own kinds
    #[arg(long, value_name = "FILE.yaml", num_args = 1.., requires = "out")]
    crd: Vec<PathBuf>,

    /// The folder for the types and accessors of `--crd`; files that were generated before are replaced
    #[arg(long, value_name = "DIR", requires = "crd")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) const CHECK: Self = Self { check: true, refresh: false, crd: Vec::new(), out: None };
}

/// Fails if the generated code of the example `custom-groups` is stale.
pub(crate) fn check_example(signals: &Signals) -> anyhow::Result<ExitCode> {
    let folder = workspace::root().join(EXAMPLE);
    let definitions = workspace::files_below(&folder.join("crds"))?;
    for_definitions(&definitions, &folder.join("groups"), true, signals)?;
    Ok(ExitCode::SUCCESS)
}

/// Generates code for custom resources into `out`, as `cargo xtask codegen --crd` does. With `check`,
/// writes nothing, and fails if a file in `out` is stale.
pub(crate) fn for_definitions(
    definitions: &[PathBuf],
    out: &Path,
    check: bool,
    signals: &Signals,
) -> anyhow::Result<()> {
    let generator = Generator::new(definitions).kopium(KOPIUM.ensure(&workspace::root(), signals)?);
    let report = if check { generator.check(out) } else { generator.write(out) }?;
    for part_with_reason in &report.skipped {
        eprintln!("codegen: skipped a part of the definitions: {part_with_reason}");
    }
    let (written, files, out) = (report.written, report.files, out.display());
    if check {
        eprintln!("codegen: all {files} files in {out} are up to date");
    } else {
        eprintln!("codegen: all {files} files in {out} are up to date; wrote {written} of them");
    }
    Ok(())
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    if let Some(out) = &args.out {
        for_definitions(&args.crd, out, args.check, signals)?;
        return Ok(ExitCode::SUCCESS);
    }
    let root = workspace::root();
    if args.refresh || args.check {
        built_in::refresh(&root, args.check)?;
    }
    if args.check {
        built_in::check(&root)?;
    } else {
        built_in::write(&root)?;
    }
    Ok(ExitCode::SUCCESS)
}
