//! [`Ingest`]: turns decoded objects into cached ones: transform, identity, storage form.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_core::{
    Cached, ObjectKey, OwnedObject, Packed, RejectedObject, ResourceVersion, Uid, panic_message,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::storage::{self, Pack, Storage};

/// Changes an object, or returns the reason for which the object is rejected.
type Transform<K> = Arc<dyn Fn(&mut K) -> Result<(), String> + Send + Sync>;

/// The functions that each arriving object passes through.
pub struct Ingest<K> {
    transform: Option<Transform<K>>,
    pack: Option<Pack<K>>,
}

impl<K> Ingest<K> {
    /// Sets the transform.
    pub fn set_transform<E: fmt::Display>(
        &mut self,
        transform: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static,
    ) {
        self.transform = Some(Arc::new(move |object| transform(object).map_err(|error| error.to_string())));
    }

    /// Sets the function that chooses storage forms.
    pub fn set_storage(&mut self, decide: impl Fn(&K) -> Storage + Send + Sync + 'static)
    where
        K: Serialize + DeserializeOwned + 'static,
    {
        self.pack = Some(storage::pack(decide));
    }
}

impl<K> Default for Ingest<K> {
    fn default() -> Self {
        Self { transform: None, pack: None }
    }
}

impl<K> Clone for Ingest<K> {
    fn clone(&self) -> Self {
        Self { transform: self.transform.clone(), pack: self.pack.clone() }
    }
}

impl<K> fmt::Debug for Ingest<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingest")
            .field("transform", &self.transform.is_some())
            .field("storage", &self.pack.is_some())
            .finish()
    }
}

impl<K: Resource> Ingest<K> {
    /// Turns a decoded object into a cached one, or rejects it (I10).
    pub(super) fn take(&self, mut object: OwnedObject<K>) -> Result<Cached<K>, RejectedObject> {
        // Read before the transform, because a failed transform can leave the object in any state.
        let identity = Identity::read(&*object)?;
        match self.apply_transform(&mut object, &identity) {
            Ok(()) => {
                let Identity { key, resource_version, uid } = identity;
                Ok(match self.packed(&object) {
                    Some(packed) => Cached::from_packed(key, resource_version, uid, packed),
                    None => object.into_cached(key, resource_version, uid),
                })
            }
            Err(error) => Err(RejectedObject {
                key: Some(identity.key),
                resource_version: identity.resource_version,
                error,
            }),
        }
    }

    /// Returns the encoded object, if it is to be stored encoded.
    fn packed(&self, object: &K) -> Option<Packed<K>> {
        let pack = self.pack.as_ref()?;
        catch_unwind(AssertUnwindSafe(|| pack(object))).unwrap_or_else(|payload| {
            drop(panic_message(payload));
            None
        })
    }

    fn apply_transform(&self, object: &mut K, identity: &Identity) -> Result<(), String> {
        let Some(transform) = &self.transform else { return Ok(()) };
        catch_unwind(AssertUnwindSafe(|| transform(object)))
            .unwrap_or_else(|payload| Err(format!("the transform panicked: {}", panic_message(payload))))?;
        match identity.difference(object.meta()) {
            None => Ok(()),
            Some(field) => Err(format!("the transform changed {field}, which tells objects apart")),
        }
    }
}

/// The identity of an object and its version.
struct Identity {
    key: ObjectKey,
    resource_version: ResourceVersion,
    uid: Uid,
}

impl Identity {
    fn read<K: Resource>(object: &K) -> Result<Self, RejectedObject> {
        let meta = object.meta();
        let resource_version = ResourceVersion::from(meta.resource_version.as_deref());
        match ObjectKey::of(object) {
            Ok(key) => Ok(Self { key, resource_version, uid: meta.uid.as_deref().into() }),
            Err(error) => Err(RejectedObject { key: None, resource_version, error: error.to_string() }),
        }
    }

    /// Returns the first field in which `meta` differs.
    fn difference(&self, meta: &ObjectMeta) -> Option<&'static str> {
        if !self.is_named(meta) {
            Some("metadata.name or metadata.namespace")
        } else if self.uid != meta.uid.as_deref().into() {
            Some("metadata.uid")
        } else if self.resource_version != meta.resource_version.as_deref().into() {
            Some("metadata.resourceVersion")
        } else {
            None
        }
    }

    /// Returns whether the key is that of `meta`, without building another.
    fn is_named(&self, meta: &ObjectMeta) -> bool {
        let name = match meta.namespace.as_deref() {
            Some(namespace) if !namespace.is_empty() => {
                self.key.as_str().strip_prefix(namespace).and_then(|rest| rest.strip_prefix('/'))
            }
            _ => Some(self.key.as_str()),
        };
        name == Some(meta.name.as_deref().unwrap_or_default())
    }
}
