//! The errors of this crate.

use informer_core::{ObjectKey, ResourceVersion};
use thiserror::Error;

/// An index can't be added or asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// There is an index of that name already; choose another, or ask for the handle of the one that is there.
    #[error("there is already an index named \"{name}\"")]
    Duplicate {
        /// The name that is taken.
        name: String,
    },
    /// There is no index of that name.
    #[error("there is no index named \"{name}\"; there are: {existing}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        existing: String,
    },
    /// The index holds values of another type than was asked for.
    #[error("the index \"{name}\" has values of another type than {asked}")]
    WrongType {
        /// The name of the index.
        name: String,
        /// The type that was asked for.
        asked: &'static str,
    },
    /// The index function failed or panicked for the object in question.
    #[error("index \"{name}\" can't place {key}: {error}")]
    Unplaceable {
        /// The name of the index.
        name: String,
        /// The key of the object.
        key: ObjectKey,
        /// What the function said, or that it panicked.
        error: String,
    },
}

/// An index function failed for an object: the object is in the store, but can't be found through that index until a
/// version of it arrives for which the function succeeds.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("index \"{index}\" can't place {key}{}: {error}", at(resource_version))]
#[non_exhaustive]
pub struct IndexFailure {
    /// The name of the index.
    pub index: String,
    /// The key of the object.
    pub key: ObjectKey,
    /// The version of the object.
    pub resource_version: ResourceVersion,
    /// What the function said, or that it panicked.
    pub error: String,
}

/// A version as part of a message; nothing where there is none, as with objects that aren't Kubernetes'.
fn at(resource_version: &ResourceVersion) -> String {
    if resource_version.is_empty() {
        String::new()
    } else {
        format!(" at resource version {resource_version}")
    }
}
