//! [`Pruning`]: a deserializer that skips the fields at some paths.
//!
//! It wraps only the objects along a path: their deserializer, then the visitor, then the visitor's
//! map access. Note: serde can't withdraw a key from a visitor, so each name is compared before it
//! is passed on.

use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::prune_paths::{Field, Level};

/// A deserializer, visitor or seed of an object with pruned fields.
pub(super) struct Pruning<'p, T> {
    pub(super) inner: T,
    pub(super) level: &'p Level,
}

impl<'p, T> Pruning<'p, T> {
    fn around<U>(&self, inner: U) -> Pruning<'p, U> {
        Pruning { inner, level: self.level }
    }

    /// Fails if a text is not accepted here. The caller finds the reason for its message.
    fn check<E: Error>(&self, text: &str) -> Result<(), E> {
        if self.level.allows(text) { Ok(()) } else { Err(E::custom("another text was expected")) }
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Pruning<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_option(visitor)
    }

    // The following types can't be objects on a path.

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_bytes(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_byte_buf(visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        unit unit_struct seq tuple tuple_struct identifier
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Pruning<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(PruningMap { inner: map, level: self.level, value: None })
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }

    // The following values are no objects, and are passed on unchanged.

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<V::Value, E> {
        self.inner.visit_bool(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<V::Value, E> {
        self.inner.visit_i64(value)
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<V::Value, E> {
        self.inner.visit_i128(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<V::Value, E> {
        self.inner.visit_u64(value)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<V::Value, E> {
        self.inner.visit_u128(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        self.inner.visit_f64(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<V::Value, E> {
        self.check(value)?;
        self.inner.visit_str(value)
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<V::Value, E> {
        self.check(value)?;
        self.inner.visit_borrowed_str(value)
    }

    fn visit_string<E: Error>(self, value: String) -> Result<V::Value, E> {
        self.check(&value)?;
        self.inner.visit_string(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(seq)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(data)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Pruning<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.deserialize(deserializer)
    }
}

/// The fields of an object without the pruned ones.
struct PruningMap<'p, A> {
    inner: A,
    level: &'p Level,
    /// The pruned fields inside the next value.
    value: Option<&'p Level>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for PruningMap<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, mut seed: S) -> Result<Option<S::Value>, A::Error> {
        loop {
            match self.inner.next_key_seed(KeySeed { seed, level: self.level })? {
                None => return Ok(None),
                Some(Key::Kept { key, value }) => {
                    self.value = value;
                    return Ok(Some(key));
                }
                Some(Key::Pruned { seed: unused }) => {
                    self.inner.next_value::<IgnoredAny>()?;
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.value.take() {
            Some(level) => self.inner.next_value_seed(Pruning { inner: seed, level }),
            None => self.inner.next_value_seed(seed),
        }
    }
}

/// Reads the name of a field, and passes it to the seed unless the field is pruned.
struct KeySeed<'p, S> {
    seed: S,
    level: &'p Level,
}

/// The result for the name of a field.
enum Key<'p, K, S> {
    Kept { key: K, value: Option<&'p Level> },
    Pruned { seed: S },
}

impl<'de, 'p, S: DeserializeSeed<'de>> KeySeed<'p, S> {
    fn pass<D: Deserializer<'de>>(self, name: &str, key: D) -> Result<Key<'p, S::Value, S>, D::Error> {
        let value = match self.level.field(name) {
            Some(Field::Whole) => return Ok(Key::Pruned { seed: self.seed }),
            Some(Field::Inside(level)) => Some(level),
            None => None,
        };
        Ok(Key::Kept { key: self.seed.deserialize(KeyText(key))?, value })
    }
}

impl<'de, 'p, S: DeserializeSeed<'de>> DeserializeSeed<'de> for KeySeed<'p, S> {
    type Value = Key<'p, S::Value, S>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, 'p, S: DeserializeSeed<'de>> Visitor<'de> for KeySeed<'p, S> {
    type Value = Key<'p, S::Value, S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        self.pass(name, StrDeserializer::new(name))
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        self.pass(name, BorrowedStrDeserializer::new(name))
    }
}

/// Deserializes a name. Unlike serde's deserializers of texts, it supports newtypes and options, as
/// JSON keys do.
struct KeyText<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for KeyText<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
