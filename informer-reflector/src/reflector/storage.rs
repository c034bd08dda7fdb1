//! [`Storage`]: the storage form of an object, which a hook chooses.

use informer_core::Packed;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The storage form of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Storage {
    /// Decoded: reading it costs nothing.
    #[default]
    Open,
    /// As JSON, and after the first read also decoded.
    /// `cargo bench -p informer-factory --bench lists` measures the savings. Adding an object costs
    /// an encoding and a decoding, and the first read another decoding.
    ///
    /// Keys, versions and UIDs, and lookups by key or namespace, don't read the object. Index
    /// functions, label selectors and filters read each object.
    Packed,
}

/// Encodes an object, or returns `None` to store it decoded.
pub(super) fn pack<K>(decide: impl Fn(&K) -> Storage, object: &K) -> Option<Packed<K>>
where
    K: Serialize + DeserializeOwned,
{
    match decide(object) {
        Storage::Open => None,
        Storage::Packed => as_json(object),
    }
}

/// Returns `None` if the JSON can't be decoded again.
fn as_json<K: Serialize + DeserializeOwned>(object: &K) -> Option<Packed<K>> {
    let json = serde_json::to_vec(object).ok()?;
    serde_json::from_slice::<K>(&json).ok()?;
    Some(Packed::new(json, read))
}

fn read<K: DeserializeOwned>(json: &[u8]) -> K {
    serde_json::from_slice(json).expect("it was read before it was packed")
}
