//! Reads an object from protobuf into a [`Tape`], a list of tokens, or only checks the object.
//!
//! Skips fields that [`kube_messages`] does not describe, and the pruned fields, which must not be
//! decoded. The tape has the content of the object's JSON without these fields, but can lack fields
//! with the value `null`, and maps whose entries are all pruned. The elements of a list or map must
//! follow each other, as servers write them; otherwise, the object is rejected. Exception: a
//! [choice](Message::is_choice) is then read without the later elements.

mod check;
mod prune;
mod values;

use kube_messages::{Content, Field, Fields, Malformed, Message, Messages, Shape, Type};

use super::envelope::Unknown;
use super::json::{MAX_DEPTH, TOO_DEEP};
use super::prune_paths::{self, Level};
use super::tape::{Extent, Opened, TYPICAL_TOKENS, Tape, Token};
pub(super) use check::check;
use check::lacks_required_time;
pub(super) use prune::prune;
use prune::{is_pruned_entry, key_and_value};
pub(super) use values::{IntOrText, only_field, timestamp};

/// The largest field number that [`Seen`] can record. [`kube_messages`] has no larger one.
const MAX_FIELD_NUMBER: u64 = 127;

const SPLIT: &str = "a protobuf field that is split or occurs twice";

/// The initial capacity of a tape for metadata: the number of tokens, and the number of bytes of
/// text.
const TYPICAL_METADATA: (usize, usize) = (64, 512);

/// Reads the object in an envelope, with its `kind` and `apiVersion`.
pub(super) fn read_object(unknown: &Unknown<'_>, pruned: &Level) -> Tape<'static> {
    let mut object = Object::writer(unknown.raw, pruned);
    let opened = object.open();
    for text in ["kind", unknown.kind, "apiVersion", unknown.api_version] {
        object.text(text.as_bytes());
    }
    match unknown.message() {
        Some(message) => {
            let len = object.members(message, unknown.raw, Some(pruned), MAX_DEPTH);
            object.close(opened, Token::Object, len + 2);
        }
        None => {
            object.close(opened, Token::Object, 2);
            object.tape.reject("a type without a known protobuf message");
        }
    }
    object.tape
}

/// Reads a message, such as an item of a list. The tape has no `kind` and no `apiVersion`, because
/// the message has none.
pub(super) fn read(message: &Message, bytes: &[u8], pruned: &Level) -> Tape<'static> {
    let mut object = Object::writer(bytes, pruned);
    object.message(message, bytes, Some(pruned), MAX_DEPTH);
    object.tape
}

/// Reads one object from protobuf. If `WRITES` is `false`, only checks the object. The only result
/// is then the [problem](Tape::problem) of `tape`.
struct Object<const WRITES: bool> {
    tape: Tape<'static>,
}

impl Object<true> {
    fn writer(bytes: &[u8], pruned: &Level) -> Self {
        let (tokens, texts) = if pruned.prunes_others {
            TYPICAL_METADATA
        } else {
            // Texts take most of the bytes, so the number of bytes is a good estimate for them.
            (TYPICAL_TOKENS, bytes.len())
        };
        Self { tape: Tape::with_capacity(Messages::text(), tokens, texts) }
    }
}

impl<const WRITES: bool> Object<WRITES> {
    fn push(&mut self, token: Token) {
        if WRITES {
            self.tape.push(token);
        }
    }

    fn open(&mut self) -> Opened {
        if WRITES { self.tape.open() } else { Opened::default() }
    }

    fn close(&mut self, opened: Opened, token: impl FnOnce(Extent) -> Token, len: usize) {
        if WRITES {
            self.tape.close(opened, token, len);
        }
    }

    /// Reads a message. `depth` is the maximum number of levels of arrays and objects in its JSON.
    fn message(&mut self, message: &Message, bytes: &[u8], pruned: Option<&Level>, depth: usize) {
        if message.is_choice {
            return self.choice(message, bytes, depth);
        }
        let opened = self.open();
        let len = self.members(message, bytes, pruned, depth);
        self.close(opened, Token::Object, len);
    }

    /// Reads the fields of a message, and appends them to the tape as members of an object. Returns
    /// the number of members.
    fn members(&mut self, message: &Message, bytes: &[u8], pruned: Option<&Level>, depth: usize) -> usize {
        let Some(depth) = depth.checked_sub(1) else {
            self.tape.reject(TOO_DEEP);
            return 0;
        };
        let (mut fields, mut len, mut seen) = (Fields(bytes), 0, Seen::default());
        loop {
            let (number, content) = match fields.next() {
                Ok(Some(next)) => next,
                Ok(None) => {
                    if !WRITES && lacks_required_time(message, bytes) {
                        self.tape.reject("a required time is missing");
                    }
                    return len;
                }
                Err(Malformed) => {
                    // One member with an invalid name and the value null replaces the unread fields.
                    // I9: the namespace can be among the unread fields, so `has_unreadable_metadata`
                    // looks for such a name.
                    self.reject_malformed();
                    self.push(Token::Null);
                    return len + 1;
                }
            };
            let Some(field) = message.field(number) else {
                // Go writes zero values of fields that JSON omits.
                self.tape.has_unknown_fields |= !is_zero(content);
                continue;
            };
            let pruned_field = pruned.and_then(|level| level.field(field.name));
            if let Some(prune_paths::Field::Whole) = pruned_field {
                continue;
            }
            if seen.insert(number) {
                // A second member with this name: if it is a part of the identity, the object has no
                // key.
                self.push(Token::Text(Tape::span(field.name_at..field.name_at + field.name.len())));
                self.reject(SPLIT);
                len += 1;
                continue;
            }
            if field.is_inlined {
                let (Some(message), Content::Bytes(bytes)) = (field.message(), content) else {
                    self.tape.reject(&Malformed.to_string());
                    continue;
                };
                // Its JSON members are members of this message, on the same level.
                len += self.members(message, bytes, pruned, depth + 1);
                continue;
            }
            if is_absent(field, content) {
                continue;
            }
            let before = self.tape.len();
            self.push(Token::Text(Tape::span(field.name_at..field.name_at + field.name.len())));
            let inner = pruned_field.and_then(prune_paths::Field::inside);
            match field.shape {
                Shape::List => self.list(field, content, &mut fields, depth),
                Shape::Map => {
                    if self.map(field, content, &mut fields, inner, depth) == 0 {
                        // No entry is kept: all are pruned or rejected. Protobuf has no empty maps.
                        self.tape.truncate(before);
                        continue;
                    }
                }
                Shape::Plain | Shape::Always | Shape::Pointer => self.value(field, content, inner, depth),
            }
            len += 1;
        }
    }

    /// Reads a list: the element `first`, and the elements at the start of `fields`. Kubernetes
    /// uses proto2, so lists of integers are not packed.
    fn list(&mut self, field: &Field, first: Content<'_>, fields: &mut Fields<'_>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return self.reject(TOO_DEEP) };
        let opened = self.open();
        let (mut next, mut len) = (Some(first), 0);
        while let Some(element) = next {
            self.value(field, element, None, depth);
            len += 1;
            next = next_element(field.number, fields);
        }
        self.close(opened, Token::Array, len);
    }

    /// Reads a map: the entry `first`, and the entries at the start of `fields`. Appends the
    /// entries that are not pruned to the tape, and returns their number.
    fn map(
        &mut self,
        field: &Field,
        first: Content<'_>,
        fields: &mut Fields<'_>,
        pruned: Option<&Level>,
        depth: usize,
    ) -> usize {
        let Some(depth) = depth.checked_sub(1) else {
            self.tape.reject(TOO_DEEP);
            return 0;
        };
        let opened = self.open();
        let (mut next, mut len) = (Some(first), 0);
        while let Some(entry) = next {
            let entry = if let Content::Bytes(entry) = entry { key_and_value(entry) } else { Err(Malformed) };
            match entry {
                Ok((key, _)) if is_pruned_entry(key, pruned) => {}
                Ok((key, value)) => {
                    self.text(key);
                    self.value(field, value, None, depth);
                    len += 1;
                }
                Err(Malformed) => self.tape.reject(&Malformed.to_string()),
            }
            next = next_element(field.number, fields);
        }
        self.close(opened, Token::Object, len);
        len
    }

    /// Reads the value of a field, or of an element of a list or map.
    fn value(&mut self, field: &Field, content: Content<'_>, pruned: Option<&Level>, depth: usize) {
        match (field.value_type, content) {
            (Type::Text, Content::Bytes(text)) => self.text(text),
            (Type::Int, Content::Number(number)) => self.int(number.cast_signed()),
            (Type::Long, Content::Number(number)) => self.number(number.cast_signed()),
            (Type::Bool, Content::Number(number)) => self.push(Token::Bool(number != 0)),
            (Type::Double, Content::Double(number)) => self.double(number),
            (Type::Message(index), Content::Bytes(bytes)) => {
                self.message(Messages::all().at(index), bytes, pruned, depth);
            }
            (Type::Bytes, Content::Bytes(bytes)) => self.bytes(bytes),
            (Type::Time, Content::Bytes(bytes)) => self.time(bytes, false),
            (Type::MicroTime, Content::Bytes(bytes)) => self.time(bytes, true),
            (Type::Quantity, Content::Bytes(bytes)) => self.quantity(bytes),
            (Type::Json, Content::Bytes(bytes)) => self.json(bytes, depth),
            (Type::IntOrString, Content::Bytes(bytes)) => self.int_or_string(bytes),
            _ => self.reject_malformed(),
        }
    }

    /// Reads a message whose JSON is not an object, but the value of one of its fields
    /// ([`Message::is_choice`]).
    fn choice(&mut self, message: &Message, bytes: &[u8], depth: usize) {
        let mut fields = Fields(bytes);
        let (mut chosen, mut previous) = (None, 0);
        loop {
            let Ok(next) = fields.next() else { return self.reject_malformed() };
            let Some((number, content)) = next else { break };
            let is_again = chosen.is_some_and(|(chosen, _, _): (&Field, _, _)| chosen.number == number);
            if is_again && previous != number {
                return self.reject(SPLIT);
            }
            previous = number;
            // If several fields are present, the JSON is the value of the one with the highest
            // number.
            let later = message
                .field(number)
                .filter(|field| chosen.is_none_or(|(chosen, _, _)| field.number > chosen.number));
            chosen = later.map(|field| (field, content, fields)).or(chosen);
        }
        match chosen {
            None if message.fields.iter().all(|field| field.shape == Shape::List) => {
                let opened = self.open();
                self.close(opened, Token::Array, 0);
            }
            None => self.push(Token::Null),
            Some((field, content, mut rest)) if field.shape == Shape::List => {
                self.list(field, content, &mut rest, depth);
            }
            Some((field, content, _)) => self.value(field, content, None, depth),
        }
    }
}

/// Returns whether a field with this content is absent or `null` in the object's JSON. For example,
/// JSON omits an empty text in a [`Shape::Plain`] field, and has `null` for a time without a value.
fn is_absent(field: &Field, content: Content<'_>) -> bool {
    match field.value_type {
        Type::Time | Type::MicroTime | Type::Json => {
            field.shape != Shape::List && content == Content::Bytes(&[])
        }
        Type::Message(_) | Type::Quantity | Type::IntOrString => false,
        Type::Text | Type::Bool | Type::Int | Type::Long | Type::Double | Type::Bytes => {
            field.shape == Shape::Plain && is_zero(content)
        }
    }
}

/// Returns whether a content is zero or empty.
pub(super) fn is_zero(content: Content<'_>) -> bool {
    matches!(content, Content::Number(0) | Content::Bytes([]) | Content::Double(0.0))
}

/// Reads the next element of the list or map with the field number `list`. If the next field has
/// another number, returns `None` and leaves `fields` unchanged.
#[inline]
pub(super) fn next_element<'b>(list: u64, fields: &mut Fields<'b>) -> Option<Content<'b>> {
    let mut ahead = *fields;
    match ahead.next() {
        Ok(Some((number, content))) if number == list => {
            *fields = ahead;
            Some(content)
        }
        // An error is not lost, because the reader of the message then reads the same bytes again.
        _ => None,
    }
}

/// The field numbers that have been read so far in one message, as bits.
#[derive(Default)]
struct Seen(u128);

impl Seen {
    /// Adds a number, and returns whether it was already present.
    fn insert(&mut self, number: u64) -> bool {
        let bit = 1 << number.min(MAX_FIELD_NUMBER);
        let was_there = self.0 & bit != 0;
        self.0 |= bit;
        was_there
    }
}
