//! [`malformed`]: what can still be said of an object that doesn't decode.
//!
//! The fact people get wrong: an object whose spec is nonsense still has a name, and whoever holds an older state of it
//! must be told which one is out of date.

use informer_core::{ObjectKey, RejectedObject, ResourceVersion};
use serde::Deserialize;

/// The part of an object that tells it from others; nothing else is decoded.
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
    /// Says that the object with this identity is malformed.
    pub(super) fn malformed(&self, error: String) -> RejectedObject {
        let Identity { name, namespace, resource_version } = &self.metadata;
        let name = name.as_deref().filter(|name| !name.is_empty());
        RejectedObject {
            key: name.map(|name| ObjectKey::new(namespace.as_deref(), name)),
            resource_version: ResourceVersion::from(resource_version.as_deref()),
            error,
        }
    }
}

/// Says that the object in `json` is malformed, with its key and resource version if they can be read.
pub(super) fn malformed(json: &[u8], error: String) -> RejectedObject {
    match serde_json::from_slice::<Identified>(json) {
        Ok(identified) => identified.malformed(error),
        Err(_) => RejectedObject { key: None, resource_version: ResourceVersion::empty(), error },
    }
}
