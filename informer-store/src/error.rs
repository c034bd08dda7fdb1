//! The errors of this crate.

use informer_core::{ObjectKey, ResourceVersion};
use thiserror::Error;

/// The error of adding or querying an index.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// An index with this name exists; choose another name, or get the handle of the existing
    /// index.
    #[error("there is already an index named \"{name}\"")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// There is no index with this name.
    #[error("there is no index named \"{name}\"; there are: {existing}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The existing names.
        existing: String,
    },
    /// The index has values of another type.
    #[error("the index \"{name}\" has values of another type than {asked}")]
    WrongType {
        /// The name of the index.
        name: String,
        /// The requested type.
        asked: &'static str,
    },
    /// The index function failed or panicked for the object in question.
    #[error("index \"{name}\" failed for {key}: {error}")]
    Unplaceable {
        /// The name of the index.
        name: String,
        /// The key of the object.
        key: ObjectKey,
        /// The function's error, or its panic.
        error: String,
    },
}

/// A failure of an index function: the object is in the store and can't be found through that index
/// until the function succeeds for a later version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("index \"{index}\" failed for {key}{}: {error}", at(resource_version))]
#[non_exhaustive]
pub struct IndexFailure {
    /// The name of the index.
    pub index: String,
    /// The key of the object.
    pub key: ObjectKey,
    /// The version of the object.
    pub resource_version: ResourceVersion,
    /// The function's error, or its panic.
    pub error: String,
}

/// Formats a version for a message; an empty version is omitted.
fn at(resource_version: &ResourceVersion) -> String {
    if resource_version.is_empty() {
        String::new()
    } else {
        format!(" at resource version {resource_version}")
    }
}
