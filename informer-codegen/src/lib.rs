//! Generates Rust types and typed accessors of informers from `CustomResourceDefinition`s in YAML,
//! for programs with [informer-factory](https://docs.rs/informer-factory):
//! `factory.stable().v1().cron_tabs()`.
//!
//! The program `informer-codegen` and this library generate the same files. The types come from the
//! program [kopium](https://github.com/kube-rs/kopium), whose version must be [`KOPIUM_VERSION`].
//! rustfmt formats the code. This build script updates a committed folder:
//!
//! ```no_run
//! // build.rs
//! use informer_codegen::Generator;
//!
//! fn main() -> Result<(), informer_codegen::Error> {
//!     println!("cargo::rerun-if-changed=crds");
//!     // docs.rs has no kopium and a read-only source folder. It uses the committed files.
//!     if std::env::var_os("DOCS_RS").is_none() {
//!         Generator::new(["crds/crontabs.yaml"]).write("src/groups")?;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Your crate then declares `mod groups;`, and imports `groups::CustomGroups` where it calls the
//! accessors. It depends on informer-factory, kube with its feature `derive`, k8s-openapi, serde and
//! `serde_json`.
//!
//! Everyone who builds a crate with this build script needs kopium. For a published crate, run the
//! program `informer-codegen` instead, and [`check`](Generator::check) the committed folder in a test.

mod definition;
mod generator;
mod group_names;
mod indexes;
mod kopium;
mod lower;
mod pipe;
mod shared;
mod taken;
mod types;

use std::fmt;
use std::path::{Path, PathBuf};

pub use kopium::VERSION as KOPIUM_VERSION;

/// Generates types and accessors for the `CustomResourceDefinition`s in some files.
///
/// A served version is skipped, and listed in [`Report::skipped`], if its schema has no `spec` with
/// `properties`, or if its name cannot be a name in Rust, such as `v1-beta`. Versions that are not
/// served are ignored. The order of the definitions does not change the generated files.
#[derive(Clone, Debug)]
#[must_use]
pub struct Generator {
    definitions: Vec<PathBuf>,
    kopium: PathBuf,
}

impl Generator {
    /// Creates a generator for the `CustomResourceDefinition`s in these YAML or JSON files. A file
    /// can contain several definitions.
    pub fn new<P: Into<PathBuf>>(definitions: impl IntoIterator<Item = P>) -> Self {
        Self {
            definitions: definitions.into_iter().map(Into::into).collect(),
            kopium: PathBuf::from("kopium"),
        }
    }

    /// Sets the path of kopium. Default: `kopium`, found in `PATH`.
    pub fn kopium(mut self, program: impl Into<PathBuf>) -> Self {
        self.kopium = program.into();
        self
    }

    /// Writes the files into a folder, and deletes earlier generated files that are no longer
    /// needed. Unchanged files are not written.
    ///
    /// # Errors
    ///
    /// - All definitions are skipped, a definition is invalid, or Rust names conflict.
    /// - kopium or rustfmt is missing, or fails.
    /// - A file that was not generated would be overwritten.
    /// - A file in the folder cannot be read, written or deleted, or a folder cannot be created.
    ///   After a failed write, deletion or creation, other files can already be changed. After any
    ///   other error, the folder is unchanged.
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<Report, Error> {
        generator::run(&self.definitions, &self.kopium, folder.as_ref(), false).map_err(Error)
    }

    /// Compares the files in a folder with the files that [`write`](Self::write) would generate,
    /// and writes nothing.
    ///
    /// # Errors
    ///
    /// - A file in the folder is missing, different or no longer generated.
    /// - [`write`](Self::write) would fail before it changes the folder.
    pub fn check(&self, folder: impl AsRef<Path>) -> Result<Report, Error> {
        generator::run(&self.definitions, &self.kopium, folder.as_ref(), true).map_err(Error)
    }
}

/// The numbers of generated and written files, and the list of skipped definitions, versions and
/// fields. [`Generator::write`] and [`Generator::check`] return a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of generated files.
    pub files: usize,
    /// The number of files that were written, because they were missing or different; zero after
    /// [`Generator::check`].
    pub written: usize,
    /// The skipped definitions, versions and fields, each with the reason.
    pub skipped: Vec<String>,
}

/// The error of [`Generator::write`] and [`Generator::check`]. The message names what failed
/// and, in most cases, the file and the remedy.
pub struct Error(anyhow::Error);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

/// Prints the same message as `Display`, because build scripts print errors with `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// Internal items that `cargo xtask codegen` uses to generate the accessors of Kubernetes' built-in
/// kinds. Not a stable interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::shared::expand::{Module, Part, accessors, doc, gated, on_factory};
    pub use crate::shared::files::{Files, Stale, is_marked, stale as stale_files, update as update_files};
    pub use crate::shared::format::source;
    pub use crate::shared::gate::Gate;
    pub use crate::shared::model::{Group, Kind, Version, sort};
    pub use crate::shared::names::{capitalized, ident, plural, title};
}
