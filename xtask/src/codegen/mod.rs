//! `cargo xtask codegen`: the typed accessors of informer-factory, made from facts about Kubernetes'
//! kinds. Facts are read, named and checked, expanded to code and laid out, one step per module.
//! The unit test `codegen` runs the same check as `--check`, so that `cargo test` finds what CI
//! would.

mod data;
mod expand;
mod files;
mod format;
mod lower;
mod names;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use self::files::{Files, Stale};
use crate::workspace;

/// Where the generated files are, relative to the workspace's root. All files there are generated.
const FOLDER: &str = "informer-factory/src/groups";

/// Whether to write.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a file is not what it should be.
    #[arg(long)]
    check: bool,
}

impl Args {
    /// As `--check` says.
    pub(crate) const CHECK: Self = Self { check: true };
}

/// Brings the generated files up to date, or fails if they are not.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = workspace::root();
    if args.check {
        let stale = check(&root)?;
        if !stale.is_empty() {
            anyhow::bail!("{}", complaint(&stale));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let files = generate(&root)?;
    let updated = files::update(&root.join(FOLDER), &files)?;
    for (name, why) in &updated {
        eprintln!("{FOLDER}/{name}: was {why}");
    }
    eprintln!("codegen: {} of {} files were up to date", files.len() - written(&updated), files.len());
    Ok(ExitCode::SUCCESS)
}

/// How many of the updated files were written; the others were deleted.
fn written(updated: &BTreeMap<String, Stale>) -> usize {
    updated.values().filter(|why| **why != Stale::Left).count()
}

fn check(root: &Path) -> anyhow::Result<BTreeMap<String, Stale>> {
    files::stale(&root.join(FOLDER), &generate(root)?)
}

fn complaint(stale: &BTreeMap<String, Stale>) -> String {
    let list: Vec<String> = stale.iter().map(|(name, why)| format!("  {FOLDER}/{name}: {why}\n")).collect();
    let list = list.concat();
    format!("generated files are stale:\n{list}run `cargo xtask codegen`, and commit what it changes")
}

fn generate(root: &Path) -> anyhow::Result<Files> {
    let groups = lower::lower(&data::read(root)?)?;
    let mut files = Files::new();
    files.insert("mod.rs".to_owned(), format::source(root, &expand::root(&groups))?);
    for group in &groups {
        for version in &group.versions {
            let text = format::source(root, &expand::version(group, version))?;
            files.insert(format!("{}.rs", version.file), text);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codegen() {
        let stale = check(&workspace::root()).expect("the files can be generated");
        assert!(stale.is_empty(), "{}", complaint(&stale));
    }

    #[test]
    fn generated_files_say_so() {
        for (name, text) in generate(&workspace::root()).unwrap() {
            assert!(text.starts_with("//! ") && files::is_marked(&text), "{name}");
        }
    }
}
