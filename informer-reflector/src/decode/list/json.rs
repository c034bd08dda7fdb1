//! Decodes lists in JSON.

use informer_core::ListWatchError;
use kube::core::ListMeta;
use serde::de::IgnoredAny;

use super::{Field, Items, ListDecoder, State};
use crate::decode::BYTE_ORDER_MARK;
use crate::decode::form::Arrived;
use crate::decode::json::{NoValue, Value, read};
use crate::decode::prune_paths::{Level, NOTHING_PRUNED};
use crate::decode::repair::{INVALID_UTF8, Repaired};

impl<K> ListDecoder<K> {
    /// Decodes `body`, the buffered part of the response, from position `self.read`. Returns the
    /// items that have arrived completely.
    pub(super) fn decode_json(&mut self, body: &Repaired<'_>) -> Result<Items<K>, ListWatchError> {
        let mut items = Vec::new();
        let text = &*body.text;
        while self.state != State::Status {
            let rest = &text.as_bytes()[self.read..];
            let Some(blank) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) else {
                self.read = text.len();
                break;
            };
            self.read += blank;
            if !self.advance(body, &mut items)? {
                break;
            }
        }
        Ok(items)
    }

    /// Reads the next bracket, comma, field name, value or item of the body. Returns `false` if
    /// more bytes are needed.
    fn advance(&mut self, body: &Repaired<'_>, items: &mut Items<K>) -> Result<bool, ListWatchError> {
        let rest = &body.text[self.read..];
        self.state = match (self.state, rest.as_bytes()[0]) {
            (State::Start, b'{') => State::FirstField,
            // Some proxies insert a byte order mark.
            (State::Start, _) if self.read == 0 && rest.starts_with('\u{feff}') => {
                self.read = BYTE_ORDER_MARK.len();
                return Ok(true);
            }
            (State::Start, _) => return Err(self.not_a_list("it is not a JSON object")),
            (State::FirstField | State::AfterField, b'}') => State::Closed,
            (State::AfterField, b',') => State::Field,
            (State::FirstField | State::Field, b'"') => return self.field(rest),
            (State::Value(Field::Items), b'[') => {
                self.head.has_items = true;
                State::FirstItem
            }
            (State::Value(field), _) => return self.value(rest, field),
            (State::FirstItem | State::AfterItem, b']') => State::AfterField,
            (State::AfterItem, b',') => State::Item,
            (State::FirstItem | State::Item, _) => return self.item(body, items),
            _ => return Err(self.not_a_list("it is not valid JSON")),
        };
        self.read += 1;
        Ok(true)
    }

    /// Reads the name of a field and the colon after it. Returns `false` if more bytes are needed.
    fn field(&mut self, rest: &str) -> Result<bool, ListWatchError> {
        let Some(Value { tape, len }) = self.next_value(rest, &NOTHING_PRUNED)? else { return Ok(false) };
        let name: String = self.typed(&tape, "it is not valid JSON")?;
        let after = &rest.as_bytes()[len..];
        let Some(blank) = after.iter().position(|byte| !byte.is_ascii_whitespace()) else { return Ok(false) };
        if after[blank] != b':' {
            return Err(self.not_a_list("it is not valid JSON"));
        }
        self.read += len + blank + 1;
        self.state = State::Value(match name.as_str() {
            "kind" => Field::Kind,
            "apiVersion" => Field::ApiVersion,
            "metadata" => Field::Metadata,
            "items" => Field::Items,
            _ => Field::Other,
        });
        Ok(true)
    }

    /// Reads the whole value of a field. Returns `false` if more bytes are needed. Must not be
    /// called for the array of items, which [`item`](Self::item) reads.
    fn value(&mut self, rest: &str, field: Field) -> Result<bool, ListWatchError> {
        let Some(Value { tape, len }) = self.next_value(rest, &NOTHING_PRUNED)? else { return Ok(false) };
        match field {
            Field::Kind => self.head.kind = self.typed(&tape, "its kind is not a string")?,
            Field::ApiVersion => {
                self.head.api_version = self.typed(&tape, "its API version is not a string")?;
            }
            Field::Metadata => {
                let metadata = self.typed::<Option<ListMeta>>(&tape, "its metadata is not that of a list")?;
                self.head.metadata = metadata.unwrap_or_default();
            }
            // Go writes a nil slice as null.
            Field::Items => {
                self.typed::<()>(&tape, "its items are not an array")?;
                self.head.has_items = true;
            }
            Field::Other => _ = self.typed::<IgnoredAny>(&tape, "it is not valid JSON")?,
        }
        self.read += len;
        self.state = match self.head.kind.as_deref() {
            Some("Table") => return Err(self.not_a_list("it is a Table, which was not requested")),
            Some("Status") if !self.head.has_items => State::Status,
            _ => State::AfterField,
        };
        if field == Field::Kind || field == Field::ApiVersion {
            self.check_type()?;
        }
        Ok(true)
    }

    fn item(&mut self, body: &Repaired<'_>, items: &mut Items<K>) -> Result<bool, ListWatchError> {
        let item = self.next_value(&body.text[self.read..], self.skipped.root())?;
        let Some(Value { mut tape, len }) = item else { return Ok(false) };
        if body.is_repaired(self.read..self.read + len) {
            tape.reject(INVALID_UTF8);
        }
        self.push_item(&Arrived { tape, protobuf: None }, items)?;
        self.read += len;
        self.state = State::AfterItem;
        Ok(true)
    }

    /// Reads the JSON value at the start of `rest`. Returns `None` if more bytes are needed.
    fn next_value<'j>(&self, rest: &'j str, pruned: &Level) -> Result<Option<Value<'j>>, ListWatchError> {
        match read(rest, pruned) {
            Ok(value) => Ok(Some(value)),
            Err(NoValue::Incomplete) => Ok(None),
            Err(NoValue::Broken) => Err(self.not_a_list("it is not valid JSON")),
        }
    }
}
