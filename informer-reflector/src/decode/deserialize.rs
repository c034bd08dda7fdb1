//! [`deserialize`]: turns a [`Tape`], an object as a list of tokens, into a value of a Rust type.
//!
//! The compiler generates this code again for each object type, so each function does as little as
//! possible. Errors never contain values of the object, which can be secret.

use std::str::FromStr;

use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::DecodeError;
use super::name::Name;
use super::number::Number;
use super::tape::{Extent, Tape, Token};

/// The name under which `serde_json::value::RawValue` asks for the JSON of a value.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

pub(super) fn deserialize<T: DeserializeOwned>(tape: &Tape<'_>) -> Result<T, DecodeError> {
    deserialize_noting(tape, None)
}

/// Converts a tape into a value of type `T`, and skips JSON fields that `T` does not have. Adds the
/// indexes of skipped values' first tokens to `ignored`, except for some values, such as values
/// inside enums.
pub(super) fn deserialize_noting<T: DeserializeOwned>(
    tape: &Tape<'_>,
    ignored: Option<&mut Vec<usize>>,
) -> Result<T, DecodeError> {
    if let Some(problem) = tape.problem() {
        return Err(DecodeError::new(problem.to_owned()));
    }
    Reader::new(tape, ignored).value()
}

/// Converts a tape into a value despite a [problem](Tape::problem). For example, reads the name of
/// an object that has invalid UTF-8 in another field.
pub(super) fn deserialize_incomplete<T: DeserializeOwned>(tape: &Tape<'_>) -> Result<T, DecodeError> {
    Reader::new(tape, None).value()
}

/// Reads the tokens of a tape from start to end.
struct Reader<'t> {
    tape: &'t Tape<'t>,
    /// The index of the next token.
    next: usize,
    /// The index of the member name, or of the first token of the value, that is being read, for
    /// errors.
    current: usize,
    /// Values for which the Rust type has no field: the indexes of their first tokens. `None` if
    /// the caller does not need them.
    ignored: Option<&'t mut Vec<usize>>,
    /// Whether the last key of a struct or map that was read is not a field of the struct. Always
    /// `false` for maps, and if `ignored` is `None`.
    is_unknown_field: bool,
    /// The index of the first token after the struct or map whose members are being read; 0 if this
    /// is not a struct with exactly two fields.
    ///
    /// serde reads an adjacently tagged enum as such a struct: the fields are the tag and the
    /// content. After the tag, `deserialize_enum` sets `min_ignored` to this index, so that skipped
    /// values of the content are not added to `ignored`.
    end_of_pair: usize,
    /// Skipped values before this index are not added to `ignored`.
    min_ignored: usize,
}

impl<'t> Reader<'t> {
    fn new(tape: &'t Tape<'t>, ignored: Option<&'t mut Vec<usize>>) -> Self {
        Self { tape, next: 0, current: 0, ignored, is_unknown_field: false, end_of_pair: 0, min_ignored: 0 }
    }

    fn value<T: DeserializeOwned>(mut self) -> Result<T, DecodeError> {
        T::deserialize(&mut self).map_err(|error: DecodeError| error.at(self.tape, self.current))
    }

    /// Deserializes the next value, and moves to the token after this value.
    fn next_value<'de, T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, DecodeError> {
        let after = self.tape.index_after(self.next);
        let value = seed.deserialize(&mut *self);
        // I10: a type that ignores an error has not read its whole value. If the rest of this value
        // were read as the next member, other members would be lost.
        self.next = after;
        value
    }

    fn read(&mut self) -> Token {
        self.current = self.next;
        self.next += 1;
        self.tape.token(self.current)
    }

    fn text(&mut self) -> Result<&'t str, DecodeError> {
        match self.read() {
            Token::Text(text) => Ok(self.tape.text(text)),
            token => Err(self.mismatch(token)),
        }
    }

    #[cold]
    fn mismatch(&self, token: Token) -> DecodeError {
        let unexpected = match token {
            Token::Null => Unexpected::Unit,
            Token::Bool(value) => Unexpected::Bool(value),
            Token::Number(number) => match Number::read(self.tape.text(number)) {
                Number::Positive(value) => Unexpected::Unsigned(value),
                Number::Negative(value) => Unexpected::Signed(value),
                Number::Float(value) => Unexpected::Float(value),
            },
            Token::Text(_) => Unexpected::Str(""),
            Token::Array(_) => Unexpected::Seq,
            Token::Object(_) => Unexpected::Map,
        };
        DecodeError::invalid_type(unexpected, &"another type")
    }

    fn visit_array<'de, V: Visitor<'de>>(
        &mut self,
        extent: Extent,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let array = self.current;
        let mut elements = Elements { reader: self, array, left: extent.len };
        let value = visitor.visit_seq(&mut elements)?;
        if elements.left > 0 {
            self.current = array;
            return Err(DecodeError::invalid_length(extent.len as usize, &"fewer elements"));
        }
        Ok(value)
    }

    fn visit_object<'de, V: Visitor<'de>>(
        &mut self,
        extent: Extent,
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let object = self.current;
        // serde reads an adjacently tagged enum as a struct with two fields: tag and content.
        let pair = if matches!(fields, Some([_, _])) { extent.end as usize } else { 0 };
        let outer = std::mem::replace(&mut self.end_of_pair, pair);
        let members = Members { reader: &mut *self, object, left: extent.len, fields };
        let value = visitor.visit_map(members);
        self.end_of_pair = outer;
        value
    }

    /// Reads an integer of up to 128 bits.
    fn wide<T: FromStr>(&mut self) -> Result<T, DecodeError> {
        match self.read() {
            Token::Number(number) => self.tape.text(number).parse().map_err(|_| DecodeError::custom("")),
            token => Err(self.mismatch(token)),
        }
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.read() {
            Token::Null => visitor.visit_unit(),
            Token::Bool(value) => visitor.visit_bool(value),
            Token::Array(extent) => self.visit_array(extent, visitor),
            Token::Object(extent) => self.visit_object(extent, None, visitor),
            Token::Text(text) => visitor.visit_str(self.tape.text(text)),
            Token::Number(number) => Number::read(self.tape.text(number)).visit(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.read() {
            Token::Bool(value) => visitor.visit_bool(value),
            token => Err(self.mismatch(token)),
        }
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_i128(self.wide()?)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_u128(self.wide()?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.tape.token(self.next) {
            Token::Null => {
                self.read();
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        if name != RAW_VALUE {
            return visitor.visit_newtype_struct(self);
        }
        let mut json = String::new();
        self.tape.write_json(self.next, &mut json);
        visitor.visit_map(MapDeserializer::new(std::iter::once((RAW_VALUE, json))))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.read() {
            Token::Array(extent) => self.visit_array(extent, visitor),
            token => Err(self.mismatch(token)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.read() {
            Token::Object(extent) => self.visit_object(extent, None, visitor),
            token => Err(self.mismatch(token)),
        }
    }

    /// Accepts only objects. `serde_json` also accepts arrays, but API servers never send a struct
    /// as an array.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.read() {
            Token::Object(extent) => self.visit_object(extent, Some(fields), visitor),
            token => Err(self.mismatch(token)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.read() {
            Token::Object(extent) if extent.len == 1 => visitor.visit_enum(self),
            Token::Text(name) => {
                // This can be the tag of an adjacently tagged enum. Skipped values in its content
                // are not noted, because a field that this variant lacks can be another variant's.
                self.min_ignored = self.min_ignored.max(self.end_of_pair);
                visitor.visit_enum(StrDeserializer::new(self.tape.text(name)))
            }
            token => Err(self.mismatch(token)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.is_unknown_field
            && self.next >= self.min_ignored
            && let Some(ignored) = &mut self.ignored
        {
            ignored.push(self.next);
        }
        visitor.visit_unit()
    }

    // No type check is needed here, because the visitors of these types reject other values.
    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 bytes byte_buf unit unit_struct tuple
        tuple_struct
    }
}

struct Elements<'r, 't> {
    reader: &'r mut Reader<'t>,
    array: usize,
    left: u32,
}

impl<'de> SeqAccess<'de> for Elements<'_, '_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        if self.left == 0 {
            self.reader.current = self.array;
            return Ok(None);
        }
        self.left -= 1;
        self.reader.next_value(seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

struct Members<'r, 't> {
    reader: &'r mut Reader<'t>,
    object: usize,
    left: u32,
    /// The names of the fields of the Rust type; `None` if the type is not a struct.
    fields: Option<&'static [&'static str]>,
}

impl<'de> MapAccess<'de> for Members<'_, '_> {
    type Error = DecodeError;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        if self.left == 0 {
            self.reader.current = self.object;
            return Ok(None);
        }
        self.left -= 1;
        let text = self.reader.text()?;
        self.reader.is_unknown_field =
            self.reader.ignored.is_some() && self.fields.is_some_and(|fields| !fields.contains(&text));
        seed.deserialize(Name { text }).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, DecodeError> {
        self.reader.next_value(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

/// Reads an enum variant with content. In JSON, it is an object with one member.
impl<'de> EnumAccess<'de> for &mut Reader<'_> {
    type Error = DecodeError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), DecodeError> {
        let name = Name { text: self.text()? };
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Reader<'_> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        serde::Deserialize::deserialize(self)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DecodeError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_map(visitor)
    }
}
