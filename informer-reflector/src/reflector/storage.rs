//! [`Storage`]: how objects are held, as a hook decides for each.

use std::sync::Arc;

use informer_core::Packed;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How an object is held in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Storage {
    /// As itself, so that looking at it costs nothing.
    #[default]
    Open,
    /// As JSON, and as itself too from when it is first looked at. `cargo bench -p informer-factory --bench lists` says
    /// what that saves as long as nobody does; the way in costs what writing and reading the JSON does, and so does the first look.
    ///
    /// Handlers that look only at keys, versions and UIDs, and lookups by key or namespace, don't look at the object.
    /// Index functions, label selectors and filters do, at each object.
    Packed,
}

/// Packs an object, or leaves it as it is.
pub(super) type Pack<K> = Arc<dyn Fn(&K) -> Option<Packed<K>> + Send + Sync>;

/// Makes of a decision how it is carried out.
pub(super) fn pack<K>(decide: impl Fn(&K) -> Storage + Send + Sync + 'static) -> Pack<K>
where
    K: Serialize + DeserializeOwned + 'static,
{
    Arc::new(move |object| match decide(object) {
        Storage::Open => None,
        Storage::Packed => as_json(object),
    })
}

/// What can't be read back stays as it is.
fn as_json<K: Serialize + DeserializeOwned>(object: &K) -> Option<Packed<K>> {
    let json = serde_json::to_vec(object).ok()?;
    serde_json::from_slice::<K>(&json).ok()?;
    Some(Packed::new(json, read))
}

fn read<K: DeserializeOwned>(json: &[u8]) -> K {
    serde_json::from_slice(json).expect("it was read before it was packed")
}
