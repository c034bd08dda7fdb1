//! [`ListDecoder`]: decodes the items of a list while its body arrives.
//!
//! Note: `metadata` can come before or after `items`, because servers write the fields of built-in
//! types in the order of the Go struct, and the fields of custom resources alphabetically. An
//! interrupted body can end after an item; only the closing brace (in protobuf, the length of the
//! list) shows that the list is complete.

mod json;
mod protobuf;

use std::fmt;
use std::marker::PhantomData;

use informer_core::{ListEnd, ListWatchError, OwnedObject, RejectedObject, ResourceVersion};
use kube::core::ListMeta;
use kube_messages::Message;
use serde::de::DeserializeOwned;

use super::deserialize::deserialize;
use super::expected::ExpectedType;
use super::form::{Arrived, Form};
use super::identity::rejected;
use super::prune_paths::PrunePaths;
use super::repair::Repaired;
use super::skipped::Skipped;
use super::tape::Tape;
use super::{DEFAULT_MAX_OBJECT_SIZE, Decode, Encoding, status_in};

/// The number of bytes to collect before items are decoded. Smaller amounts would end within an
/// item more often, and each incomplete item is read again.
const SLICE: usize = 256 * 1024;

/// Decodes the body of a list incrementally.
///
/// Bytes can be pushed in pieces of any size. Items are returned in the order of the list;
/// undecodable items are [`RejectedObject`]s. Besides the bytes of the last push, the decoder
/// buffers only a limited part of the body. The limit is about 256 KiB or, if that is more, twice
/// the size of the largest item or of all fields before the items. A body without items is buffered
/// as a whole, up to about twice the [maximum size](Self::max_object_size) of an item.
///
/// ```
/// use informer_reflector::{ListDecoder, PrunePaths};
/// use kube::core::DynamicObject;
///
/// let mut decoder = ListDecoder::<DynamicObject>::new(PrunePaths::default());
/// let mut items = decoder.push(br#"{"items": [{"metadata": {"name": "a"}}], "metadata": {"resour"#)?;
/// items.extend(decoder.push(br#"ceVersion": "7"}}"#)?);
/// let (rest, end) = decoder.finish()?;
/// items.extend(rest);
/// assert_eq!((items.len(), end.resource_version), (1, "7".into()));
/// # Ok::<_, informer_core::ListWatchError>(())
/// ```
pub struct ListDecoder<K> {
    encoding: Encoding,
    skipped: Skipped,
    buffer: Vec<u8>,
    /// The number of bytes at the start of the buffer that are already decoded.
    read: usize,
    /// The minimum number of undecoded bytes to collect before items are decoded: 256 KiB
    /// ([`SLICE`]), or less in tests.
    slice: usize,
    /// The number of undecoded bytes to collect before items are decoded: `slice`, or more while a
    /// large item is incomplete.
    decode_threshold: usize,
    max_object_size: usize,
    state: State,
    head: Head,
    items: usize,
    /// The type that the items must have; `None` if any type is accepted. For items of the type
    /// `Pod`, a list of the type `NodeList` is refused.
    expected: Option<ExpectedType>,
    form: Form,
    _item: PhantomData<fn() -> K>,
}

/// The decoder's position in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    FirstField,
    Field,
    AfterField,
    Value(Field),
    FirstItem,
    Item,
    AfterItem,
    /// Between the fields of the protobuf envelope around the list.
    Envelope,
    /// Between the fields of a list in protobuf. Contains the number of bytes to the end of the
    /// list.
    Content(usize),
    Closed,
    /// The body is a Kubernetes `Status`, which is decoded as a whole.
    Status,
}

/// A field of a list in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Kind,
    ApiVersion,
    Metadata,
    Items,
    Other,
}

/// The fields of the list besides its items.
#[derive(Default)]
struct Head {
    kind: Option<String>,
    api_version: Option<String>,
    metadata: ListMeta,
    has_items: bool,
    /// The description of the items' protobuf message type; `None` in JSON, or if the kind is
    /// unknown.
    message: Option<&'static Message>,
}

type Items<K> = Vec<Result<OwnedObject<K>, RejectedObject>>;

impl<K: DeserializeOwned + Send + Sync + 'static> ListDecoder<K> {
    /// Returns a decoder that prunes the given fields of each item.
    #[must_use]
    pub fn new(paths: PrunePaths) -> Self {
        Self::with(Form::Decoded(Decode::of::<K>()), paths)
    }
}

impl<K> ListDecoder<K> {
    pub(crate) fn with(form: Form, paths: PrunePaths) -> Self {
        Self {
            encoding: Encoding::Json,
            skipped: Skipped::new(paths),
            buffer: Vec::new(),
            read: 0,
            slice: SLICE,
            decode_threshold: SLICE,
            max_object_size: DEFAULT_MAX_OBJECT_SIZE,
            state: State::Start,
            head: Head::default(),
            items: 0,
            expected: None,
            form,
            _item: PhantomData,
        }
    }

    /// Sets the encoding of the body. Default: JSON.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Makes the decoder fail if the type of the list or of an item is not `expected`.
    pub(crate) fn expecting(mut self, expected: ExpectedType) -> Self {
        self.skipped.change(|paths| expected.paths(paths));
        self.expected = Some(expected);
        self
    }

    /// Sets the maximum size of an item in the body, in bytes. Default: 16 MiB; minimum: 256 KiB.
    ///
    /// The limit is not exact, because the decoder checks the size of an incomplete item only each
    /// time its buffered bytes have doubled. An item of up to twice the maximum size, plus the
    /// bytes of one push, can still be decoded. A larger item is an error.
    #[must_use]
    pub fn max_object_size(mut self, bytes: usize) -> Self {
        self.max_object_size = bytes.max(self.slice);
        self
    }

    /// Adds bytes of the body, and returns decoded items, if any. The decoder collects 256 KiB
    /// before it decodes, so the items of these bytes can come with a later call or with
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// [`ListWatchError::Protocol`] if the body is not a list, or an item is too large. Do not use
    /// the decoder after an error.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Items<K>, ListWatchError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() - self.read < self.decode_threshold {
            return Ok(Vec::new());
        }
        let items = self.decode()?;
        if self.head.has_items {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        if self.buffer.len() > self.max_object_size {
            let limit = self.max_object_size;
            let why = format!(
                "a value is larger than {limit} bytes; if the value is valid, raise `max_object_size`"
            );
            return Err(self.unexpected(&why));
        }
        // Decoding the start of an item after each piece would take quadratic time.
        self.decode_threshold = self.slice.max(2 * (self.buffer.len() - self.read));
        Ok(items)
    }

    /// Ends the body and returns the last items and the end of the list.
    ///
    /// # Errors
    /// [`ListWatchError::Interrupted`] if the list ended early, [`ListWatchError::Protocol`] if the
    /// body is not a list, and [`ListWatchError::Status`] if it is the status of a failure.
    pub fn finish(mut self) -> Result<(Items<K>, ListEnd), ListWatchError> {
        let items = self.decode()?;
        match self.state {
            State::Status => return Err(self.status()),
            State::Closed if self.head.is_list() => {}
            State::Closed => return Err(self.not_a_list("it is an object without items")),
            _ => {
                let error = format!("the list ended early, after {} items", self.items);
                return Err(ListWatchError::Interrupted(error.into()));
            }
        }
        let metadata = self.head.metadata;
        let end = ListEnd {
            resource_version: ResourceVersion::from(metadata.resource_version.as_deref()),
            continue_token: metadata.continue_.filter(|token| !token.is_empty()),
            remaining_item_count: metadata.remaining_item_count.and_then(|count| count.try_into().ok()),
        };
        Ok((items, end))
    }

    /// Decodes the items and other fields of the list that have arrived completely. Returns the
    /// items.
    fn decode(&mut self) -> Result<Items<K>, ListWatchError> {
        let buffer = std::mem::take(&mut self.buffer);
        let items = match self.encoding {
            Encoding::Json => self.decode_json(&Repaired::new(&buffer)),
            Encoding::Protobuf => self.decode_protobuf(&buffer),
        };
        self.buffer = buffer;
        items
    }

    /// Converts an arrived item to the form in which it is stored, and appends it to `items`. Fails
    /// if the item does not have the expected type.
    fn push_item(&mut self, item: &Arrived<'_>, items: &mut Items<K>) -> Result<(), ListWatchError> {
        if let Some(why) = self.expected.as_ref().and_then(|expected| expected.refusal(&item.tape)) {
            return Err(self.unexpected(&why));
        }
        self.items += 1;
        let object = self.form.object(item, &mut self.skipped);
        // I10: an undecodable item is returned as a rejected object, and the list continues.
        items.push(object.map(OwnedObject::cast).map_err(|error| rejected(&item.tape, error.to_string())));
        Ok(())
    }

    /// Converts a value to its Rust type. `otherwise` is the error message for a value of the wrong
    /// type.
    fn typed<T: DeserializeOwned>(&self, value: &Tape<'_>, otherwise: &str) -> Result<T, ListWatchError> {
        deserialize(value).map_err(|_| self.not_a_list(otherwise))
    }

    /// Checks the type of the list, once both `kind` and `apiVersion` have been read.
    fn check_type(&self) -> Result<(), ListWatchError> {
        let (Some(expected), Some(kind), Some(version)) =
            (&self.expected, &self.head.kind, &self.head.api_version)
        else {
            return Ok(());
        };
        if kind == "Status" {
            return Ok(());
        }
        expected.refusal_of_list(kind, version).map_or(Ok(()), |why| Err(self.unexpected(&why)))
    }

    fn unexpected(&self, why: &str) -> ListWatchError {
        ListWatchError::Protocol(format!("the list has unexpected content{}: {why}", self.place()))
    }

    fn not_a_list(&self, because: &str) -> ListWatchError {
        ListWatchError::Protocol(format!("the body is not a Kubernetes list: {because}{}", self.place()))
    }

    fn place(&self) -> String {
        if self.items == 0 { String::new() } else { format!(" after {} items", self.items) }
    }

    /// Returns the error for a body that is a Kubernetes `Status` instead of a list.
    fn status(&self) -> ListWatchError {
        // `push` removes bytes only from the body of a list, so the buffer has the whole body.
        match status_in(self.encoding, &self.buffer) {
            Some(status) if !status.is_success() => ListWatchError::from(Box::new(status)),
            Some(_) => self.not_a_list("it is a Status that reports success"),
            None => self.not_a_list("it is a Status that is incomplete or can't be decoded"),
        }
    }
}

impl<K> fmt::Debug for ListDecoder<K> {
    /// Does not show the content, which can be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListDecoder")
            .field("state", &self.state)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

impl Head {
    /// Returns whether the body is a list: it has the field `items`, or a `kind` that ends with
    /// `List`.
    fn is_list(&self) -> bool {
        // An empty list deletes all objects in the store, so an error page in JSON must not count
        // as one.
        self.has_items || self.kind.as_deref().is_some_and(|kind| kind.ends_with("List"))
    }
}

#[cfg(test)]
mod tests;
