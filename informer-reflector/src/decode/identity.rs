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
struct Identified {
    metadata: Identity,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

/// Returns the rejected object. Its key and resource version are missing if they can't be read from
/// `object`.
pub(super) fn rejected(object: &Tape<'_>, error: String) -> RejectedObject {
    let identified = deserialize_incomplete::<Identified>(object);
    let Identity { name, namespace, resource_version } =
        identified.map(|identified| identified.metadata).unwrap_or_default();
    let is_readable = |text: &str| !text.contains(INVALID);
    let name = name.filter(|name| !name.is_empty() && is_readable(name));
    // I9: with a wrong namespace, the key would be that of another object. After a list, the object
    // would then count as deleted.
    let has_namespace = namespace.as_deref().is_none_or(is_readable) && !has_unreadable_metadata(object);
    let resource_version = resource_version.filter(|version| is_readable(version));
    RejectedObject {
        key: name.filter(|_| has_namespace).map(|name| ObjectKey::new(namespace.as_deref(), &name)),
        resource_version: ResourceVersion::from(resource_version.as_deref()),
        error,
    }
}

/// Returns whether the object's `metadata` has a member whose name can't be read. For example, if
/// the name `namespace` is damaged, the object seems to have no namespace.
fn has_unreadable_metadata(object: &Tape<'_>) -> bool {
    let metadata = object.members(0).find(|(name, _)| *name == "metadata");
    metadata.is_some_and(|(_, at)| object.members(at).any(|(name, _)| name.contains(INVALID)))
}

#[cfg(test)]
mod tests;
