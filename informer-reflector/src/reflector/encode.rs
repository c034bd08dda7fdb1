//! [`Encode`]: encodes decoded objects before they are stored.
//!
//! Objects arrive decoded if their source can't encode them, or if a transform changes them. If
//! objects arrive encoded, this code is not used.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_core::{AnyObject, Codec, Encoded, ObjectKey, OwnedObject, Storage, panic_message};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::decode::{Decode, FromJson};

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

    /// Returns the object in encoded form. Returns `None` if the object's `Serialize` fails, or if
    /// its `Deserialize` can't read the result.
    pub(super) fn encoded(&self, object: &OwnedObject<AnyObject>) -> Option<OwnedObject<AnyObject>> {
        let json = catch_unwind(AssertUnwindSafe(|| (self.to_json)(object)));
        let json = json.unwrap_or_else(|payload| {
            drop(panic_message(payload));
            None
        })?;
        let encoded = Encoded::new(&json, "", Arc::clone(&self.codec));
        Some(OwnedObject::encoded(ObjectKey::cluster_scoped(""), "".into(), None.into(), encoded))
    }
}

fn to_json<K: Serialize + DeserializeOwned + Send + Sync + 'static>(
    object: &OwnedObject<AnyObject>,
) -> Option<Vec<u8>> {
    let json = serde_json::to_vec(object.downcast_ref::<K>()?).ok()?;
    FromJson::of(Decode::of::<K>()).read(&json).map(|_| json)
}
