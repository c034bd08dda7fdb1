//! The root of this workspace, cargo commands in it, and copies of its sources.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::process;

pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Returns a command in the workspace's root for the cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    remove_package_variables(&mut command);
    command
}

/// Returns the output of `cargo tree`: a line for `package`, and a line for each dependency. A line
/// begins with name and version. `edges` selects kinds of dependencies, and `extra` has further
/// arguments.
pub(crate) fn tree(package: &str, edges: &str, extra: &[&str]) -> anyhow::Result<String> {
    let output = cargo()
        .args(["tree", "--package", package, "--edges", edges, "--prefix", "none", "--format", "{p}"])
        .args(extra)
        .output()
        .context("cannot start `cargo tree`")?;
    let packages = process::stdout(output, &format!("cargo tree --package {package}"))?;
    Ok(String::from_utf8_lossy(&packages).into_owned())
}

/// Returns all files in a folder and its subfolders.
pub(crate) fn files_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let context = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// Removes the environment variables that `cargo run` sets for this package. Some build scripts
/// would run again whenever these variables change.
pub(crate) fn remove_package_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let is_package_variable = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || name.starts_with("CARGO_BIN_")
        });
        if is_package_variable {
            command.env_remove(name);
        }
    }
}

/// Removes the variables of the running toolchain, so that `command` can run another one.
pub(crate) fn remove_toolchain_variables(command: &mut Command) {
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    remove_package_variables(command);
}

/// Copies all files that git tracks, and removes all other files in `copy`. Unchanged files keep
/// their modification time, so that cargo does not rebuild them.
pub(crate) fn copy_sources(copy: &Path) -> anyhow::Result<()> {
    let root = root();
    let listed = Command::new("git").current_dir(&root).args(["ls-files", "-z"]).output();
    let listed = listed.context("cannot start `git`, which lists the sources; install git")?;
    ensure!(
        listed.status.success(),
        "cannot list the sources: run this command in a clone of the repository"
    );
    let mut copied = HashSet::new();
    let names = String::from_utf8(listed.stdout).context("a file name in git is not UTF-8; rename it")?;
    for name in names.split_terminator('\0') {
        let (from, to): (PathBuf, PathBuf) = (root.join(name), copy.join(name));
        // Git lists a deleted file until the deletion is staged.
        let Ok(content) = fs::read(&from) else { continue };
        copied.insert(to.clone());
        if fs::read(&to).is_ok_and(|old| old == content) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&to, content).with_context(|| format!("cannot write {}", to.display()))?;
    }
    remove_other_files(copy, &copied)
}

/// Removes all files in `folder` that are not in `kept`. For example, git has renamed a file since
/// the last copy.
fn remove_other_files(folder: &Path, kept: &HashSet<PathBuf>) -> anyhow::Result<()> {
    for path in files_below(folder)?.iter().filter(|path| !kept.contains(*path)) {
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_loses_files_that_git_no_longer_tracks() -> anyhow::Result<()> {
        let copy = tempfile::tempdir()?;
        fs::create_dir_all(copy.path().join("src"))?;
        let (kept, renamed) = (copy.path().join("src/new.rs"), copy.path().join("src/old.rs"));
        fs::write(&kept, "")?;
        fs::write(&renamed, "")?;
        remove_other_files(copy.path(), &HashSet::from([kept.clone()]))?;
        assert_eq!((kept.exists(), renamed.exists()), (true, false));
        Ok(())
    }
}
