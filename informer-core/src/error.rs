//! [`KeyError`]: an object or a string without a valid key. `kubernetes/error.rs` has the errors of
//! requests and selectors.

use thiserror::Error;

/// An object or a string has no valid key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The object has no `metadata.name`.
    #[error("{object} has no name")]
    MissingName {
        /// A description of the object: type, namespace, `generateName` and UID.
        object: String,
    },
    /// A string does not have the form `name` or `namespace/name`.
    #[error("\"{text}\" is not a key: expected \"name\" or \"namespace/name\"")]
    Unparsable {
        /// The string that is not a key.
        text: String,
    },
    /// The function that was passed to [`Cached::keyed`](crate::Cached::keyed) returned an error.
    #[error("the key function failed for a {object}: {error}")]
    Function {
        /// The name of the type of the object, for example `Pod`.
        object: &'static str,
        /// The error that the function returned.
        error: String,
    },
}

impl KeyError {
    pub(crate) fn function<K>(error: impl std::fmt::Display) -> Self {
        Self::Function { object: short(std::any::type_name::<K>()), error: error.to_string() }
    }
}

/// Returns the name of a type without its module path and its generic parameters.
pub(crate) fn short(name: &'static str) -> &'static str {
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}
