//! The errors of this crate.

use informer_core::{ObjectKey, ResourceVersion};
use thiserror::Error;

use crate::NAMESPACE_INDEX;

/// The error of an operation that adds, queries or removes an index.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// An index with this name exists already, or is being added. Choose another name, or get the
    /// handle of the existing index.
    #[error(
        "an index named \"{name}\" exists already; choose another name, or get the existing index by its name"
    )]
    Duplicate {
        /// The name of the index.
        name: String,
    },
    /// The store has no index with this name.
    /// [`Indexer::remove_index`](crate::Indexer::remove_index) also returns this error for the
    /// index by namespace, which exists but can't be removed.
    #[error("{}", unknown(name, existing))]
    Unknown {
        /// The name of the requested index.
        name: String,
        /// The names of all existing indexes, separated by commas.
        existing: String,
    },
    /// The values of the index do not have the requested type.
    #[error(
        "the values of the index \"{name}\" do not have the type {asked}; request the index with the type of its values"
    )]
    WrongType {
        /// The name of the index.
        name: String,
        /// The type of values that was requested.
        asked: &'static str,
    },
    /// The index function failed or panicked for the object that was passed to
    /// [`Index::with_common_value`](crate::Index::with_common_value) or
    /// [`Indexer::with_common_value`](crate::Indexer::with_common_value).
    #[error("the function of index \"{name}\" failed for object {key}: {error}")]
    Function {
        /// The name of the index.
        name: String,
        /// The key of the object for which the index function failed.
        key: ObjectKey,
        /// The error that the index function returned, or a message about its panic.
        error: String,
    },
}

/// Reports that an index lacks an object. Either the index function returned an error or panicked,
/// or `Hash` or `Eq` of an index value panicked.
///
/// The object is in the store, but can't be found through this index until the object is indexed
/// again without a failure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("index \"{index}\" lacks object {key}{at_version} because of a failure: {error}", at_version = at(resource_version))]
#[non_exhaustive]
pub struct IndexFailure {
    /// The name of the index.
    pub index: String,
    /// The key of the object.
    pub key: ObjectKey,
    /// The resource version of the object.
    pub resource_version: ResourceVersion,
    /// The error that the index function returned, or a message about a panic of the index
    /// function, `Hash` or `Eq`.
    pub error: String,
}

/// Returns the message of [`IndexError::Unknown`].
fn unknown(name: &str, existing: &str) -> String {
    if name == NAMESPACE_INDEX {
        format!("the index \"{name}\" can't be removed, because every store needs it")
    } else {
        format!("no index named \"{name}\" exists; existing indexes: {existing}")
    }
}

/// Returns `" at resource version …"`; empty for an empty version.
fn at(resource_version: &ResourceVersion) -> String {
    if resource_version.is_empty() {
        String::new()
    } else {
        format!(" at resource version {resource_version}")
    }
}
