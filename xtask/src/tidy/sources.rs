//! [`Source`]: a Rust file or Markdown document of the workspace. Each source records which of its
//! lines count as test code.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

const GENERATED: &str = "@generated";

#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the workspace's root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The index of the first line that counts as test code: 0 in a test file, otherwise that of
    /// the first line `#[cfg(test)]` before a module. All later lines count as test code, too.
    /// Without such a line, this is the number of lines.
    tests_from: usize,
}

impl Source {
    /// Returns every file that git tracks and that matches `pattern`, such as `*.rs`.
    pub(crate) fn tracked(root: &Path, pattern: &str) -> anyhow::Result<Vec<Self>> {
        let output = Command::new("git")
            .current_dir(root)
            .args(["ls-files", "-z", "--", pattern])
            .output()
            .context("cannot start `git`, which lists the files to check; install git")?;
        if !output.status.success() {
            bail!(
                "`git ls-files` failed; run this in a clone of the repository: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let names = String::from_utf8(output.stdout).context("a file name in git is not UTF-8; rename it")?;
        if names.is_empty() {
            // Without files, most of the checks that read them would pass.
            bail!("git tracks no {pattern} here; run this in a clone of the repository");
        }
        names
            .split_terminator('\0')
            // Git lists a deleted file until the deletion is staged.
            .filter(|name| root.join(name).exists())
            .map(|name| {
                let text = std::fs::read_to_string(root.join(name))
                    .with_context(|| format!("cannot read {name} as text"))?;
                Ok(Self::new(name, text))
            })
            .collect()
    }

    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        let path = path.into();
        let text = text.into();
        let tests_from = if is_test_file(&path) {
            0
        } else {
            // Neither `mod tests;`, which declares a test file, nor a function for tests begins test code.
            let mut pairs = text.lines().zip(text.lines().skip(1));
            let first = pairs.position(|(line, next)| {
                line == "#[cfg(test)]" && next.contains("mod ") && !next.ends_with(';')
            });
            first.unwrap_or_else(|| text.lines().count())
        };
        Self { path, text, tests_from }
    }

    /// Returns the lines with their numbers, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(n, line)| (n + 1, line))
    }

    /// Returns whether the line with this number counts as test code.
    pub(crate) fn is_test(&self, number: usize) -> bool {
        number > self.tests_from
    }

    pub(crate) fn is_test_file(&self) -> bool {
        self.tests_from == 0
    }

    pub(crate) fn is_generated(&self) -> bool {
        self.text.lines().take(5).any(|line| line.contains(GENERATED))
    }

    /// Returns false for test files, for examples, and for all files of xtask. Returns true for all
    /// other files.
    pub(crate) fn is_library(&self) -> bool {
        let is_example = self.path.iter().any(|part| part == "examples");
        !self.path.starts_with("xtask") && !is_example && !self.is_test_file()
    }
}

fn is_test_file(path: &Path) -> bool {
    let mut folders = path.parent().into_iter().flatten();
    let in_folder = folders.any(|folder| folder == "tests" || folder == "benches");
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    in_folder || stem == "tests" || stem.ends_with("_tests")
}

/// Returns the part of a line before its comment. A `//` in a string counts as a comment, which the checks tolerate.
pub(crate) fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Returns the comment of a line without its slashes.
pub(crate) fn comment(line: &str) -> Option<&str> {
    let (_, comment) = line.split_once("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_code_is_detected() {
        let inline = Source::new("a/src/lib.rs", "//! A.\nfn a() {}\n#[cfg(test)]\nmod tests {}\n");
        assert!(!inline.is_test(2) && inline.is_test(4));
        let outside = Source::new("a/src/lib.rs", "#[cfg(test)]\nmod tests;\nfn a() {}\n");
        assert!(!outside.is_test(3));
        let function = Source::new("a/src/lib.rs", "#[cfg(test)]\nfn a() {}\nfn b() {}\n");
        assert!(!function.is_test(3));
        for path in ["a/tests/b.rs", "a/src/tests.rs", "a/src/b/tests/c.rs", "a/src/b_tests.rs"] {
            assert!(Source::new(path, "").is_test_file(), "{path}");
        }
        assert!(!Source::new("a/src/testing.rs", "fn a() {}\n").is_test_file());
    }

    #[test]
    fn only_library_files_are_library() {
        assert!(Source::new("informer-core/src/lib.rs", "fn a() {}").is_library());
        for path in ["xtask/src/main.rs", "examples/src/a.rs", "a/examples/b.rs", "a/tests/b.rs"] {
            assert!(!Source::new(path, "fn a() {}").is_library(), "{path}");
        }
    }
}
