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
    /// The key function returned an error. A key function computes the key of an object, and is an
    /// argument of [`Cached::keyed`](crate::Cached::keyed).
    #[error("the key function failed for a {object}: {error}")]
    Function {
        /// The name of the object's type, for example `Pod`.
        object: &'static str,
        /// The error that the key function returned, as text.
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
