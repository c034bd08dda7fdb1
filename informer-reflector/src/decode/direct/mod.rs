//! [`Direct`]: decodes protobuf into the types of frequent kinds, without a tape (a list of
//! tokens).
//!
//! The decoders read only messages in the form that servers usually write, and return `None` for
//! all others. The caller then decodes the object with a tape, which also gives the error of an
//! invalid object. `messages.rs` is generated from [`kube_messages`] and k8s-openapi.

mod messages;

use std::collections::BTreeMap;

use informer_core::{AnyObject, OwnedObject};
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use kube_messages::{Content, Fields};

use super::protobuf::{IntOrText, is_zero, next_element, only_field, timestamp};

pub(super) use messages::direct;

/// Decodes the protobuf messages of one kind without a tape.
#[derive(Debug, Clone, Copy)]
pub(super) struct Direct {
    /// The name of the kind's protobuf message in [`kube_messages`].
    pub(super) message: &'static str,
    /// Decodes the bytes of a message. If the result is `None`, the caller must decode the message
    /// with a tape.
    pub(super) read: fn(&[u8]) -> Option<OwnedObject<AnyObject>>,
}

/// A field of a protobuf message, and the bytes of the message after this field.
struct Occurrence<'r, 'b> {
    number: u64,
    content: Content<'b>,
    /// The bytes of the message after this field. If the field is the first element of a list or
    /// map, the other elements are read from here.
    rest: &'r mut Fields<'b>,
}

/// A Rust type that is encoded as a message in protobuf.
trait Message: Default {
    /// Reads a protobuf field into its Rust field. Returns `None` if the object must be decoded
    /// with a tape.
    fn field(&mut self, field: Occurrence<'_, '_>) -> Option<()>;
}

/// A Rust type for a single value in protobuf: a string, bytes, a number or a message.
trait Value: Sized {
    /// Returns an initial value, such as 0 or an empty text, which [`read`](Self::read) replaces.
    fn blank() -> Self;

    /// Decodes the content of a protobuf field into `self`, which is a new [`blank`](Self::blank)
    /// value. Returns `None` if the content does not have this type, or is invalid.
    fn read(&mut self, content: Content<'_>) -> Option<()>;

    /// Returns whether a field with this content is not set. By default, this is true for zero and
    /// for empty content, which Go writes for such fields.
    fn is_absent(content: Content<'_>) -> bool {
        is_zero(content)
    }
}

/// Decodes a protobuf field into a Rust field that is a [`Value`] or an `Option` of one. The
/// methods return `None` if the content is invalid.
trait SingleField {
    /// Decodes the content into `self`. Leaves `self` unchanged if the content is
    /// [absent](Value::is_absent), such as a zero that Go writes for a field without a value.
    fn optional(&mut self, content: Content<'_>) -> Option<()>;

    /// Decodes the content into `self`, for a field in which zero or empty content is a value too.
    fn present(&mut self, content: Content<'_>) -> Option<()>;
}

/// Gives access to the list or map in a Rust field of type `C` or `Option<C>`.
trait AsCollection<C> {
    /// Returns the list or map. Replaces `None` by an empty list or map.
    fn collection(&mut self) -> &mut C;
}

/// Decodes a protobuf message into an object of type `M`. Returns `None` if the object must be
/// decoded with a tape. For example, `object::<Pod>` is the value of the field [`Direct::read`] for
/// pods.
fn object<M: Message + Send + Sync + 'static>(bytes: &[u8]) -> Option<OwnedObject<AnyObject>> {
    // Decode into the final heap allocation, because moving an object of several kilobytes is slow.
    let mut object = OwnedObject::new(M::default());
    each_field(bytes, |field| object.field(field))?;
    Some(object.cast())
}

/// Calls `read` with each field of a protobuf message. For a list or map, `read` is called with the
/// first element, and must read the others from [`Occurrence::rest`].
///
/// Returns `None` if the object must be decoded with a tape.
fn each_field(bytes: &[u8], mut read: impl FnMut(Occurrence<'_, '_>) -> Option<()>) -> Option<()> {
    let (mut rest, mut seen) = (Fields(bytes), 0_u128);
    while let Some((number, content)) = rest.next().ok()? {
        // Field numbers above 127, and a second occurrence of a number, need a tape.
        let bit = 1_u128.checked_shl(u32::try_from(number).ok()?)?;
        if seen & bit != 0 {
            return None;
        }
        seen |= bit;
        read(Occurrence { number, content, rest: &mut rest })?;
    }
    Some(())
}

/// Calls `read` with each field of the nested message in `field`. In Rust, these fields are fields
/// of the outer struct. Returns `None` if the object must be decoded with a tape.
fn inlined(field: &Occurrence<'_, '_>, read: impl FnMut(Occurrence<'_, '_>) -> Option<()>) -> Option<()> {
    let Content::Bytes(bytes) = field.content else { return None };
    each_field(bytes, read)
}

/// Reads the list element `first`, and the elements directly after it, into `target`. Returns
/// `None` if the object must be decoded with a tape.
fn list<V: Value>(target: &mut impl AsCollection<Vec<V>>, first: Occurrence<'_, '_>) -> Option<()> {
    let Occurrence { number, content, rest } = first;
    let mut ahead = *rest;
    let following = std::iter::from_fn(|| next_element(number, &mut ahead)).count();
    let list = target.collection();
    list.reserve_exact(1 + following);
    let mut next = Some(content);
    while let Some(content) = next {
        list.push(V::blank());
        list.last_mut()?.read(content)?;
        next = next_element(number, rest);
    }
    Some(())
}

/// Reads the map entry `first`, and the entries directly after it, into `target`. Returns `None` if
/// the object must be decoded with a tape.
fn map<V: Value>(
    target: &mut impl AsCollection<BTreeMap<String, V>>,
    first: Occurrence<'_, '_>,
) -> Option<()> {
    let Occurrence { number, content, rest } = first;
    let map = target.collection();
    let mut next = Some(content);
    while let Some(content) = next {
        let Content::Bytes(entry) = content else { return None };
        let (mut key, mut value) = (String::new(), V::blank());
        each_field(entry, |part| match part.number {
            1 => key.read(part.content),
            2 => value.read(part.content),
            _ => None,
        })?;
        map.insert(key, value);
        next = next_element(number, rest);
    }
    Some(())
}

/// Ignores a field that the generated decoder does not know. Returns `None` if the field is neither
/// zero nor empty, so that the object is decoded with a tape.
fn unknown(field: &Occurrence<'_, '_>) -> Option<()> {
    is_zero(field.content).then_some(())
}

impl<V: Value> SingleField for V {
    fn optional(&mut self, content: Content<'_>) -> Option<()> {
        if V::is_absent(content) { Some(()) } else { self.read(content) }
    }

    fn present(&mut self, content: Content<'_>) -> Option<()> {
        self.read(content)
    }
}

impl<V: Value> SingleField for Option<V> {
    fn optional(&mut self, content: Content<'_>) -> Option<()> {
        if V::is_absent(content) { Some(()) } else { self.present(content) }
    }

    fn present(&mut self, content: Content<'_>) -> Option<()> {
        self.insert(V::blank()).read(content)
    }
}

impl<C> AsCollection<C> for C {
    fn collection(&mut self) -> &mut C {
        self
    }
}

impl<C: Default> AsCollection<C> for Option<C> {
    fn collection(&mut self) -> &mut C {
        self.get_or_insert_default()
    }
}

impl<M: Message> Value for M {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Bytes(bytes) = content else { return None };
        each_field(bytes, |field| self.field(field))
    }

    fn is_absent(_: Content<'_>) -> bool {
        false
    }
}

impl Value for String {
    fn blank() -> Self {
        Self::new()
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Bytes(bytes) = content else { return None };
        str::from_utf8(bytes).ok()?.clone_into(self);
        Some(())
    }
}

impl Value for bool {
    fn blank() -> Self {
        false
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Number(number) = content else { return None };
        *self = number != 0;
        Some(())
    }
}

impl Value for i32 {
    fn blank() -> Self {
        0
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Number(number) = content else { return None };
        *self = number.cast_signed().try_into().ok()?;
        Some(())
    }
}

impl Value for i64 {
    fn blank() -> Self {
        0
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Number(number) = content else { return None };
        *self = number.cast_signed();
        Some(())
    }
}

impl Value for ByteString {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Bytes(bytes) = content else { return None };
        bytes.clone_into(&mut self.0);
        Some(())
    }
}

impl Value for Quantity {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Bytes(bytes) = content else { return None };
        self.0.read(Content::Bytes(only_field(bytes).ok()?))
    }

    fn is_absent(_: Content<'_>) -> bool {
        false
    }
}

impl Value for IntOrString {
    fn blank() -> Self {
        Self::Int(0)
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Bytes(bytes) = content else { return None };
        *self = match IntOrText::read(bytes).ok()? {
            IntOrText::Int(number) => Self::Int(number.try_into().ok()?),
            IntOrText::Text(text) => Self::String(str::from_utf8(text).ok()?.to_owned()),
        };
        Some(())
    }

    fn is_absent(_: Content<'_>) -> bool {
        false
    }
}

impl Value for Time {
    fn blank() -> Self {
        Self(Timestamp::UNIX_EPOCH)
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Bytes(bytes) = content else { return None };
        self.0 = timestamp(bytes, false)?;
        Some(())
    }

    fn is_absent(content: Content<'_>) -> bool {
        content == Content::Bytes(&[])
    }
}

impl Value for MicroTime {
    fn blank() -> Self {
        Self(Timestamp::UNIX_EPOCH)
    }

    fn read(&mut self, content: Content<'_>) -> Option<()> {
        let Content::Bytes(bytes) = content else { return None };
        self.0 = timestamp(bytes, true)?;
        Some(())
    }

    fn is_absent(content: Content<'_>) -> bool {
        content == Content::Bytes(&[])
    }
}

#[cfg(test)]
mod tests;
