//! Compares generated files with those on disk, and updates them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The content of all generated files, by path in the output folder with `/` as separator.
pub type Files = BTreeMap<String, String>;

/// The reason why a file in the output folder is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// The file does not exist.
    Missing,
    /// The content of the file differs from the generated content.
    Different,
    /// The file was generated earlier, but is no longer generated.
    Left,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Different => "different",
            Self::Left => "no longer generated",
        })
    }
}

/// Returns the stale files of the folder, by path. A file in `files` is stale if it is missing or
/// different on disk. A Rust file on disk that is not in `files` is stale if it has the `mark` of
/// generated files. Other files are never stale.
pub fn stale(folder: &Path, files: &Files, mark: &str) -> anyhow::Result<BTreeMap<String, Stale>> {
    let mut stale = BTreeMap::new();
    for (name, text) in files {
        let why = match read(&folder.join(name))? {
            None => Some(Stale::Missing),
            Some(found) => (unix(&found) != unix(text)).then_some(Stale::Different),
        };
        stale.extend(why.map(|why| (name.clone(), why)));
    }
    for name in names(folder)? {
        let extra = name.ends_with(".rs") && !files.contains_key(&name);
        if extra && read(&folder.join(&name))?.is_some_and(|text| is_marked(&text, mark)) {
            stale.insert(name, Stale::Left);
        }
    }
    Ok(stale)
}

/// Makes the folder match `files`, and returns the files that were stale. Unchanged files are not
/// written, so that cargo does not rebuild their crate.
pub fn update(folder: &Path, files: &Files, mark: &str) -> anyhow::Result<BTreeMap<String, Stale>> {
    let stale = stale(folder, files, mark)?;
    for name in stale.keys() {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot create the folder {}", parent.display()))?;
        }
        match files.get(name) {
            Some(text) => fs::write(&path, text),
            None => fs::remove_file(&path),
        }
        .with_context(|| format!("cannot update {}; is it writable?", path.display()))?;
        // Remove the folder if it is empty. The call fails, without effect, if the folder has files.
        if let Some(parent) = path.parent().filter(|parent| *parent != folder) {
            fs::remove_dir(parent).ok();
        }
    }
    Ok(stale)
}

/// Returns the existing files with these names that do not have the `mark` of generated files.
pub(crate) fn foreign(folder: &Path, names: &[String], mark: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut foreign = Vec::new();
    for path in names.iter().map(|name| folder.join(name)) {
        if read(&path)?.is_some_and(|text| !is_marked(&text, mark)) {
            foreign.push(path);
        }
    }
    Ok(foreign)
}

/// Replaces Windows line ends, which git can write on checkout.
fn unix(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Returns whether the comments at the start of a text contain the mark of generated files.
pub fn is_marked(text: &str, mark: &str) -> bool {
    let head = text.lines().take_while(|line| line.starts_with("//"));
    head.into_iter().any(|line| line.contains(mark))
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {} as text", path.display())),
    }
}

/// Returns the paths of all files in the folder and its subfolders; none if the folder does not
/// exist.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let context = || format!("cannot list the folder {}", folder.display());
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(context)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.with_context(context)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().with_context(context)?.is_dir() {
            let inner = names(&entry.path())?;
            found.extend(inner.into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.push(name);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "@generated";

    fn folder(texts: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in texts {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn wanted() -> Files {
        [("a.rs", "a\n"), ("b.rs", "b\n")].map(|(name, text)| (name.into(), text.into())).into()
    }

    #[test]
    fn stale_files_are_found_and_updated() {
        let left = format!("//! C.\n// {MARK}\n");
        let folder = folder(&[("a.rs", "b\n"), ("c.rs", &left), ("d.rs", "//! By hand.\n"), ("e.txt", "")]);
        let found = stale(folder.path(), &wanted(), MARK).unwrap();
        let expected = [("a.rs", Stale::Different), ("b.rs", Stale::Missing), ("c.rs", Stale::Left)];
        assert_eq!(found, expected.map(|(name, why)| (name.into(), why)).into());

        assert_eq!(update(folder.path(), &wanted(), MARK).unwrap(), found);
        assert_eq!(update(folder.path(), &wanted(), MARK).unwrap(), BTreeMap::new());
        let mut names = names(folder.path()).unwrap();
        names.sort();
        assert_eq!(names, ["a.rs", "b.rs", "d.rs", "e.txt"]);
    }

    #[test]
    fn line_ends_make_no_difference() {
        let folder = folder(&[("a.rs", "a\r\n"), ("b.rs", "b\n")]);
        assert_eq!(stale(folder.path(), &wanted(), MARK).unwrap(), BTreeMap::new());
    }

    #[test]
    fn missing_folder_is_created() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("groups");
        assert_eq!(stale(&folder, &wanted(), MARK).unwrap().len(), 2);
        update(&folder, &wanted(), MARK).unwrap();
        assert_eq!(stale(&folder, &wanted(), MARK).unwrap(), BTreeMap::new());
    }

    #[test]
    fn folders_are_created_and_removed_with_their_files() {
        let left = format!("//! C.\n// {MARK}\n");
        let folder = folder(&[("old/c.rs", &left), ("both/c.rs", &left), ("both/d.rs", "//! By hand.\n")]);
        let wanted: Files = [("new/a.rs".to_owned(), "a\n".to_owned())].into();
        let updated = update(folder.path(), &wanted, MARK).unwrap();
        assert_eq!(
            updated.keys().map(String::as_str).collect::<Vec<_>>(),
            ["both/c.rs", "new/a.rs", "old/c.rs"]
        );
        assert_eq!(update(folder.path(), &wanted, MARK).unwrap(), BTreeMap::new());
        assert!(!folder.path().join("old").exists() && folder.path().join("both/d.rs").exists());
    }

    #[test]
    fn foreign_files_are_found() {
        let head = format!("//! A.\n//! Long.\n//! Very.\n//! Much.\n//! So.\n// {MARK}\n");
        let folder = folder(&[("a.rs", &head), ("b.rs", "//! By hand.\n")]);
        let names: Vec<String> = wanted().into_keys().collect();
        let foreign = foreign(folder.path(), &names, MARK).unwrap();
        assert_eq!(foreign, [folder.path().join("b.rs")]);
    }
}
