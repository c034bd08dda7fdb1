//! `cargo xtask tidy`: checks the rules of this workspace that no compiler or linter checks. The unit test `tidy` runs
//! the same checks, so that `cargo test` reports them too.

mod architecture;
mod guide;
mod invariants;
mod language;
mod layering;
mod sample;
mod scenarios;
mod simulator;
mod sources;
mod style;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use self::sources::Source;
use crate::workspace;

/// One violation of a rule, at one line of a file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    file: PathBuf,
    /// Counted from 1.
    line: usize,
    remedy: String,
}

impl Finding {
    fn new(file: impl Into<PathBuf>, line: usize, remedy: impl Into<String>) -> Self {
        Self { file: file.into(), line, remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.remedy)
    }
}

/// The options of `cargo xtask tidy`.
#[derive(Debug, Default, Args)]
pub(crate) struct TidyArgs {
    /// Print doc comments and messages that this seed selects at random, instead of checking
    #[arg(long, value_name = "SEED")]
    sample: Option<u64>,
}

pub(crate) fn run(args: &TidyArgs) -> anyhow::Result<ExitCode> {
    if let Some(seed) = args.sample {
        sample::print(&Source::tracked(&workspace::root(), "*.rs")?, seed);
        return Ok(ExitCode::SUCCESS);
    }
    let findings = check(&workspace::root())?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("tidy: {} findings", findings.len());
    Ok(ExitCode::FAILURE)
}

fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let sources = Source::tracked(root, "*.rs")?;
    let documents = Source::tracked(root, "*.md")?;
    let mut findings: Vec<Finding> = sources.iter().flat_map(style::check).collect();
    findings.extend(sources.iter().chain(&documents).flat_map(language::check));
    findings.extend(sources.iter().flat_map(simulator::check));
    findings.extend(invariants::check(&sources));
    findings.extend(architecture::check(root)?);
    findings.extend(guide::check(root, &documents)?);
    findings.extend(layering::check(root)?);
    findings.extend(scenarios::check(root, &sources)?);
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidy() {
        let findings = check(&workspace::root()).expect("the checks can be run");
        let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(list.is_empty(), "correct these findings:\n{}", list.join("\n"));
    }
}
