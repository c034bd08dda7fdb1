//! [`Encode`]: encodes decoded objects before they are stored.
//!
//! Objects arrive decoded if their source can't encode them, or if a transform changes them. If
//! objects arrive encoded, this code is not used.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_core::{AnyObject, Codec, Encoded, ObjectKey, OwnedObject, Storage, panic_message};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::decode::{Decode, FromJson, family};

/// Encodes objects of one type as JSON.
#[derive(Clone)]
pub(super) struct Encode {
    pub(super) storage: Storage,
    to_json: fn(&OwnedObject<AnyObject>) -> Option<Vec<u8>>,
    codec: Arc<Codec>,
}

impl Encode {
    pub(super) fn of<K: Serialize + DeserializeOwned + Send + Sync + 'static>(storage: Storage) -> Self {
        Self {
            storage,
            to_json: to_json::<K>,
            codec: Arc::new(Codec::new(FromJson::of(Decode::of::<K>()), storage)),
        }
    }

    /// Returns `object` in encoded form. `metadata` must be the metadata of `object`. Returns
    /// `None` if `Serialize` of the object's type fails or panics, or if its `Deserialize` can't
    /// read the result.
    pub(super) fn encoded(
        &self,
        object: &OwnedObject<AnyObject>,
        metadata: &ObjectMeta,
    ) -> Option<OwnedObject<AnyObject>> {
        let json = catch_unwind(AssertUnwindSafe(|| (self.to_json)(object)));
        let json = json.unwrap_or_else(|payload| {
            drop(panic_message(payload));
            None
        })?;
        let owners = metadata.owner_references.iter().flatten().map(|owner| owner.uid.as_str());
        let family = family(owners, metadata.generate_name.as_deref());
        let encoded = Encoded::new(&json, family, Arc::clone(&self.codec));
        Some(OwnedObject::encoded(ObjectKey::cluster_scoped(""), "".into(), None.into(), encoded))
    }
}

fn to_json<K: Serialize + DeserializeOwned + Send + Sync + 'static>(
    object: &OwnedObject<AnyObject>,
) -> Option<Vec<u8>> {
    let json = serde_json::to_vec(object.downcast_ref::<K>()?).ok()?;
    FromJson::of(Decode::of::<K>()).read(&json).map(|_| json)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::reflector::Ingest;

    #[test]
    fn compressed_objects_of_one_owner_share_a_dictionary() {
        let mut ingest = Ingest::of::<Pod>();
        ingest.set_storage::<Pod>(Storage::Compressed);
        let mut random = fastrand::Rng::with_seed(1);
        let note: String = std::iter::repeat_with(|| random.alphanumeric()).take(1_000).collect();
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1"});
        // The first object is compressed with the common dictionary, later ones with the family's.
        let stored = [("web-1", ""), ("web-2", &*note), ("web-3", &*note)].map(|(name, note)| {
            let metadata = json!({"name": name, "annotations": {"note": note}, "ownerReferences": [owner]});
            let pod: Pod = serde_json::from_value(json!({"metadata": metadata})).expect("a pod");
            ingest.take(OwnedObject::new(pod)).expect("a pod with a name")
        });
        let lengths = stored.map(|stored| stored.encoded_len().expect("the pod is encoded"));
        assert!(lengths[2] < 500, "{lengths:?}");
    }
}
