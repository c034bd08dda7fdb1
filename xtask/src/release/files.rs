//! Checks the files of a package: its licence, its README, and the files that its sources include.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;

use super::packages::Package;
use crate::{process, workspace};

const REQUIRED: [&str; 3] = ["Cargo.toml", "LICENSE", "README.md"];

/// Returns a message for each missing file, and for a LICENSE that differs from that of the
/// workspace.
pub(crate) fn problems(root: &Path, package: &Package) -> anyhow::Result<Vec<String>> {
    let name = &package.name;
    let folder = package.manifest.parent().context("the path of the manifest has no folder")?;
    let files = list(name)?;
    let mut problems = Vec::new();
    for required in REQUIRED {
        if !files.contains(Path::new(required)) {
            problems.push(format!("{name}: the package lacks {required}"));
        }
    }
    let licence = |folder: &Path| std::fs::read(folder.join("LICENSE")).ok();
    if licence(folder) != licence(root) {
        problems.push(format!("{name}: LICENSE must be a link to ../LICENSE"));
    }
    // Tests may use other files of the repository, because a published package is compiled without its tests.
    for file in files.iter().filter(|file| file.starts_with("src") && file.extension() == Some("rs".as_ref()))
    {
        let text = std::fs::read_to_string(folder.join(file))
            .with_context(|| format!("cannot read {name}/{}", file.display()))?;
        for included in included(&text) {
            if !files.contains(&resolve(file, included)) {
                problems.push(format!("{name}/{}: the package lacks {included}", file.display()));
            }
        }
    }
    Ok(problems)
}

/// Returns the files of a package, relative to its folder.
fn list(name: &str) -> anyhow::Result<BTreeSet<PathBuf>> {
    let output = workspace::cargo()
        .args(["package", "--list", "--allow-dirty", "--package", name])
        .output()
        .context("cannot start `cargo package`")?;
    let files = process::stdout(output, "cargo package --list")?;
    Ok(String::from_utf8_lossy(&files).lines().map(PathBuf::from).collect())
}

/// Returns the paths in `include!`, `include_str!` and `include_bytes!`, if a quote directly
/// follows the parenthesis.
fn included(text: &str) -> impl Iterator<Item = &str> {
    let calls = text.match_indices(concat!("incl", "ude")).map(|(start, found)| &text[start + found.len()..]);
    calls.filter_map(|rest| {
        let rest = rest.trim_start_matches("_str").trim_start_matches("_bytes");
        rest.strip_prefix("!(\"")?.split_once('"').map(|(path, _)| path)
    })
}

/// Returns the path of `included`, relative to the package.
fn resolve(file: &Path, included: &str) -> PathBuf {
    let mut resolved = file.parent().unwrap_or(file).to_path_buf();
    for part in Path::new(included).components() {
        match part {
            // Outside of the package, the path keeps its `..`.
            Component::ParentDir if resolved.ends_with("..") || !resolved.pop() => resolved.push(".."),
            Component::ParentDir => {}
            part => resolved.push(part),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_are_found() {
        let text =
            concat!("A = incl", "ude_str!(\"a.txt\"); #![doc = incl", "ude_str!(\"../README.md\")] included");
        assert_eq!(included(text).collect::<Vec<_>>(), ["a.txt", "../README.md"]);
    }

    #[test]
    fn included_paths_are_relative_to_the_package() {
        let resolved = |included| resolve(Path::new("src/a/b.rs"), included);
        assert_eq!(resolved("c.txt"), Path::new("src/a/c.txt"));
        assert_eq!(resolved("../../README.md"), Path::new("README.md"));
        assert_eq!(resolved("../../../README.md"), Path::new("../README.md"));
        assert_eq!(resolved("../../../../README.md"), Path::new("../../README.md"));
    }
}
