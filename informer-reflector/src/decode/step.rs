//! [`step`]: decodes one JSON value at the start of possibly incomplete bytes.
//!
//! Note: a number at the end of the bytes can be incomplete, for example `12` of `1234`.

use std::marker::PhantomData;

use informer_core::OwnedObject;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny};

use super::prune_paths::PrunePaths;

/// The result of decoding a value.
pub(super) enum Step<T> {
    /// The value and its length in bytes.
    Done { value: T, len: usize },
    /// The value is complete and takes `len` bytes, but has another type.
    Unsuitable { error: serde_json::Error, len: usize },
    /// More bytes are needed.
    Incomplete,
    /// The bytes aren't JSON.
    Broken,
}

/// Decodes the value at the start of `json`. `ended`: no more bytes will arrive.
pub(super) fn step<'de, S: DeserializeSeed<'de>>(json: &'de [u8], ended: bool, seed: S) -> Step<S::Value> {
    match decode(json, ended, seed) {
        Attempt::Done { value, len } => Step::Done { value, len },
        Attempt::Incomplete => Step::Incomplete,
        // Decoding the value as any type shows whether it only has another type, and its end. An
        // incomplete value, such as a part of a number, can still become valid.
        Attempt::Failed(error) => match decode(json, ended, PhantomData::<IgnoredAny>) {
            Attempt::Done { len, .. } => Step::Unsuitable { error, len },
            Attempt::Incomplete => Step::Incomplete,
            Attempt::Failed(_) => Step::Broken,
        },
    }
}

enum Attempt<T> {
    Done { value: T, len: usize },
    Incomplete,
    Failed(serde_json::Error),
}

fn decode<'de, S: DeserializeSeed<'de>>(json: &'de [u8], ended: bool, seed: S) -> Attempt<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    match seed.deserialize(&mut deserializer) {
        Ok(value) => {
            let len = deserializer.into_iter::<IgnoredAny>().byte_offset();
            let closed = matches!(json[..len].last(), Some(b'}' | b']' | b'"'));
            if len == json.len() && !closed && !ended {
                return Attempt::Incomplete;
            }
            Attempt::Done { value, len }
        }
        Err(error) if error.is_eof() => Attempt::Incomplete,
        Err(error) => Attempt::Failed(error),
    }
}

/// Decodes an item of a list.
pub(super) struct ItemSeed<'p, K> {
    paths: &'p PrunePaths,
    _item: PhantomData<K>,
}

impl<'p, K> ItemSeed<'p, K> {
    pub(super) fn new(paths: &'p PrunePaths) -> Self {
        Self { paths, _item: PhantomData }
    }
}

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for ItemSeed<'_, K> {
    type Value = OwnedObject<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<OwnedObject<K>, D::Error> {
        self.paths.deserialize(deserializer).map(OwnedObject::new)
    }
}
