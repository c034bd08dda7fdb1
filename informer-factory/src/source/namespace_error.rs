//! [`NamespaceError`]: what is wrong with a wish to follow other namespaces.

use thiserror::Error;

/// The namespaces of an informer can't be changed like this.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The informer was made for one namespace, or for all.
    #[error(
        "the namespaces of the informer of {resource} can't be changed: one whose namespaces come and go is made with \
         SharedIndexInformer::new_in_namespaces"
    )]
    Fixed {
        /// What the informer lists and watches.
        resource: String,
    },
    /// The factory was made for one namespace, or for all.
    #[error(
        "the namespaces of this factory can't be changed: one whose namespaces come and go is made with \
         FactoryBuilder::namespaces"
    )]
    FixedFactory,
    /// No namespace can have this name.
    #[error(
        "\"{name}\" is not the name of a namespace: those have 1 to 63 letters from a to z, digits and, within, dashes; an \
         informer of all namespaces is made with SharedIndexInformer::new"
    )]
    InvalidName {
        /// The name.
        name: String,
    },
}

impl NamespaceError {
    /// Says what is wrong with the name of a namespace: a DNS label, as the API server wants it.
    pub(crate) fn check_name(name: &str) -> Result<(), Self> {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=63).contains(&name.len())
            && name.bytes().all(is_inner)
            && !name.starts_with('-')
            && !name.ends_with('-');
        if is_name { Ok(()) } else { Err(Self::InvalidName { name: name.to_owned() }) }
    }
}
