//! [`rejected`]: reads the identity of an undecodable object.
//!
//! With the name, users can find the object, and see that its older version in the cache is out of
//! date.

use informer_core::{ObjectKey, RejectedObject, ResourceVersion};
use serde::Deserialize;

use super::deserialize::deserialize_incomplete;
use super::repair::INVALID;
use super::tape::Tape;

#[derive(Deserialize)]
pub(super) struct Identified {
    metadata: Identity,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

impl Identified {
    pub(super) fn rejected(&self, error: String) -> RejectedObject {
        let Identity { name, namespace, resource_version } = &self.metadata;
        let name = name.as_deref().filter(|name| !name.is_empty() && !name.contains(INVALID));
        RejectedObject {
            key: name.map(|name| ObjectKey::new(namespace.as_deref(), name)),
            resource_version: ResourceVersion::from(resource_version.as_deref()),
            error,
        }
    }
}

/// Returns the rejected object. Its key and resource version are missing if they can't be read from
/// `object`.
pub(super) fn rejected(object: &Tape<'_>, error: String) -> RejectedObject {
    match deserialize_incomplete::<Identified>(object) {
        Ok(identified) => identified.rejected(error),
        Err(_) => RejectedObject { key: None, resource_version: ResourceVersion::empty(), error },
    }
}
