//! [`NamespaceError`]: the error of adding and removing namespaces.

use thiserror::Error;

/// A namespace could not be added to or removed from an informer or factory.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The informer cannot add or remove namespaces, because it was created for one namespace, for
    /// all, or for a cluster-scoped resource.
    #[error(
        "the informer of {resource} has fixed namespaces; to change them later, create it with \
         SharedIndexInformer::new_in_namespaces, or its factory with FactoryBuilder::namespaces"
    )]
    Fixed {
        /// The resource of the informer and its scope, such as `pods in namespace "shop"`.
        resource: String,
    },
    /// The factory cannot add or remove namespaces, because it was built without
    /// [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces).
    #[error(
        "this factory has fixed namespaces; to change them later, create it with FactoryBuilder::namespaces"
    )]
    FixedFactory,
    /// The name is not valid for a namespace.
    #[error(
        "invalid namespace \"{name}\": expected 1 to 63 characters of a-z, 0-9 and \"-\", without \"-\" at the start or end; \
         for all namespaces, use SharedIndexInformer::new, or a factory without FactoryBuilder::namespaces"
    )]
    InvalidName {
        /// The invalid name.
        name: String,
    },
}

impl NamespaceError {
    /// Checks that the name of a namespace is a DNS label, as the API server requires.
    pub(crate) fn check_name(name: &str) -> Result<(), Self> {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=63).contains(&name.len())
            && name.bytes().all(is_inner)
            && !name.starts_with('-')
            && !name.ends_with('-');
        if is_name { Ok(()) } else { Err(Self::InvalidName { name: name.to_owned() }) }
    }
}
