//! [`NamespaceError`]: the error of a change of namespaces.

use thiserror::Error;

/// The namespaces of an informer or factory were not changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The informer was created for one namespace, or for all.
    #[error(
        "the informer of {resource} has fixed namespaces; to change them later, create it with \
         SharedIndexInformer::new_in_namespaces"
    )]
    Fixed {
        /// The resource of the informer.
        resource: String,
    },
    /// The factory was created for one namespace, or for all.
    #[error(
        "this factory has fixed namespaces; to change them later, create it with FactoryBuilder::namespaces"
    )]
    FixedFactory,
    /// The name is not valid for a namespace.
    #[error(
        "invalid namespace \"{name}\": expected 1 to 63 characters of a-z, 0-9 and, inside, dashes; for all namespaces, use \
         SharedIndexInformer::new"
    )]
    InvalidName {
        /// The name.
        name: String,
    },
}

impl NamespaceError {
    /// Checks the name of a namespace: the API server requires a DNS label.
    pub(crate) fn check_name(name: &str) -> Result<(), Self> {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=63).contains(&name.len())
            && name.bytes().all(is_inner)
            && !name.starts_with('-')
            && !name.ends_with('-');
        if is_name { Ok(()) } else { Err(Self::InvalidName { name: name.to_owned() }) }
    }
}
