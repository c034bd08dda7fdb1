//! [`Ingest`]: transforms an object from the server, and wraps the object in a [`Cached`] handle.
//! Other code stores the handle.

use std::any::type_name;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_core::{
    AnyObject, Cached, KeyError, ListerWatcher, ObjectKey, OwnedObject, RejectedObject, ResourceVersion,
    Storage, Uid, panic_message,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::encode::Encode;

type TransformMetadata = Arc<dyn Fn(&mut ObjectMeta) + Send + Sync>;
/// Changes an object, or returns the reason why the object is rejected.
type AnyTransform = Arc<dyn Fn(&mut OwnedObject<AnyObject>) -> Result<(), String> + Send + Sync>;

/// Creates a [`Cached`] handle for each object that arrives: reads the metadata of the object,
/// transforms the object, and encodes the object if objects are stored encoded.
#[derive(Clone)]
pub struct Ingest {
    type_name: &'static str,
    meta: fn(&OwnedObject<AnyObject>) -> &ObjectMeta,
    meta_mut: fn(&mut OwnedObject<AnyObject>) -> &mut ObjectMeta,
    transform_metadata: Option<TransformMetadata>,
    transform: Option<AnyTransform>,
    storage: Option<Encode>,
}

impl Ingest {
    /// Returns an `Ingest` that has no transform and leaves objects decoded.
    #[must_use]
    pub fn of<K: Resource + 'static>() -> Self {
        Self {
            type_name: type_name::<K>(),
            meta: |object| typed::<K>(object).meta(),
            meta_mut: |object| typed_mut::<K>(object).meta_mut(),
            transform_metadata: None,
            transform: None,
            storage: None,
        }
    }

    /// Sets a function that changes the metadata of each object, before the
    /// [transform](Self::set_transform).
    pub fn set_metadata_transform(&mut self, transform: TransformMetadata) {
        self.transform_metadata = Some(transform);
    }

    /// Sets a function that changes each object. If the function fails, the object is quarantined:
    /// the store keeps its earlier version of the object, if any. A deleted object is removed
    /// nevertheless.
    pub fn set_transform<K: 'static, E: fmt::Display>(
        &mut self,
        transform: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static,
    ) {
        self.transform =
            Some(Arc::new(move |object| transform(typed_mut(object)).map_err(|error| error.to_string())));
    }

    /// Sets whether objects are stored decoded, encoded or compressed.
    pub fn set_storage<K>(&mut self, storage: Storage)
    where
        K: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.storage = (storage != Storage::Decoded).then(|| Encode::of::<K>(storage));
    }

    /// Returns `source`, or a variant of it whose objects arrive encoded, ready for the store.
    pub(super) fn source<K: 'static>(&self, source: Arc<dyn ListerWatcher<K>>) -> Arc<dyn ListerWatcher<K>> {
        // A transform needs decoded objects.
        let is_changed = self.transform.is_some() || self.transform_metadata.is_some();
        let encode = self.storage.as_ref().filter(|_| !is_changed);
        let encoded = encode.and_then(|encode| source.with_storage(encode.storage));
        encoded.unwrap_or(source)
    }
}

fn typed<K: 'static>(object: &OwnedObject<AnyObject>) -> &K {
    object.downcast_ref().expect("the object has the type of its informer")
}

fn typed_mut<K: 'static>(object: &mut OwnedObject<AnyObject>) -> &mut K {
    object.downcast_mut().expect("the object has the type of its informer")
}

impl fmt::Debug for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingest")
            .field("transform", &self.transform.is_some())
            .field("is_encoded", &self.storage.is_some())
            .finish_non_exhaustive()
    }
}

impl Ingest {
    /// Transforms an object that arrived, and wraps the object in a [`Cached`] handle, which the
    /// caller stores. Fails if the object has no name, or if the transform fails.
    pub(super) fn take<K: 'static>(&self, object: OwnedObject<K>) -> Result<Cached<K>, RejectedObject> {
        self.take_erased(object.cast()).map(Cached::cast)
    }

    /// Returns the name of the objects' Rust type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Returns the metadata of a decoded object.
    #[must_use]
    pub fn meta<'a>(&self, object: &'a OwnedObject<AnyObject>) -> &'a ObjectMeta {
        (self.meta)(object)
    }

    pub(super) fn key<K>(&self, object: OwnedObject<K>) -> Result<ObjectKey, KeyError> {
        match object.into_cached_if_encoded() {
            Ok(encoded) => Ok(encoded.key().clone()),
            Err(object) => ObjectKey::of_meta(self.meta(&object.cast()), self.type_name),
        }
    }

    fn take_erased(&self, object: OwnedObject<AnyObject>) -> Result<Cached<AnyObject>, RejectedObject> {
        let mut object = match object.into_cached_if_encoded() {
            Ok(encoded) => return Ok(encoded),
            Err(object) => object,
        };
        // Read before the transform, because a failed transform can leave the object in any state.
        let identity = self.identity(&object)?;
        let transformed = self.apply_transform(&mut object, &identity);
        let Identity { key, resource_version, uid } = identity;
        match transformed {
            Ok(()) => Ok(self.stored(object).into_cached(key, resource_version, uid)),
            // I10: the caller does not store this version. The caller reports the object in the
            // status, unless the object was deleted.
            Err(error) => Err(RejectedObject { key: Some(key), resource_version, error }),
        }
    }

    fn identity(&self, object: &OwnedObject<AnyObject>) -> Result<Identity, RejectedObject> {
        let meta = self.meta(object);
        let resource_version = ResourceVersion::from(meta.resource_version.as_deref());
        match ObjectKey::of_meta(meta, self.type_name) {
            Ok(key) => Ok(Identity { key, resource_version, uid: meta.uid.as_deref().into() }),
            Err(error) => Err(RejectedObject { key: None, resource_version, error: error.to_string() }),
        }
    }

    /// Returns the object in the form in which it is stored. An object that can't be encoded stays
    /// decoded.
    fn stored(&self, object: OwnedObject<AnyObject>) -> OwnedObject<AnyObject> {
        let encode = |storage: &Encode| storage.encoded(&object, self.meta(&object));
        self.storage.as_ref().and_then(encode).unwrap_or(object)
    }

    fn apply_transform(
        &self,
        object: &mut OwnedObject<AnyObject>,
        identity: &Identity,
    ) -> Result<(), String> {
        if self.transform_metadata.is_none() && self.transform.is_none() {
            return Ok(());
        }
        let mut transform = || {
            if let Some(transform) = &self.transform_metadata {
                transform((self.meta_mut)(object));
            }
            self.transform.as_ref().map_or(Ok(()), |transform| transform(object))
        };
        catch_unwind(AssertUnwindSafe(&mut transform))
            .unwrap_or_else(|payload| Err(format!("the transform panicked: {}", panic_message(payload))))?;
        match identity.difference(self.meta(object)) {
            None => Ok(()),
            Some(field) => Err(format!(
                "the transform changed {field}, which identifies the object or its version; correct the transform"
            )),
        }
    }
}

struct Identity {
    key: ObjectKey,
    resource_version: ResourceVersion,
    uid: Uid,
}

impl Identity {
    /// Returns the first identifying field in which `meta` differs.
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

    /// Returns whether the key equals that of `meta`, without the allocation of another key.
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
