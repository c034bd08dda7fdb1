//! [`ListDecoder`]: decodes the items of a list while its body arrives.
//!
//! Note: `metadata` can come before or after `items`, because servers write the fields of built-in
//! types in their order and those of custom resources alphabetically. And an interrupted body can
//! end after an item; only the closing brace shows that the list is complete.

use std::fmt;
use std::marker::PhantomData;

use informer_core::{ListEnd, ListWatchError, OwnedObject, RejectedObject, ResourceVersion};
use kube::core::{ListMeta, Status};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::deserialize::deserialize;
use super::expected::ExpectedType;
use super::identity::rejected;
use super::json::{NoValue, read};
use super::prune_paths::{NOTHING_PRUNED, PrunePaths};
use super::repair::{INVALID_UTF8, Repaired};
use super::{BYTE_ORDER_MARK, DEFAULT_MAX_OBJECT_SIZE, Decode, decode};

/// The number of bytes that are collected before items are decoded, so that few items are
/// incomplete.
const SLICE: usize = 256 * 1024;

/// Decodes the JSON body of a list incrementally.
///
/// Bytes can be pushed in pieces of any size. Items are returned in the order of the list;
/// undecodable items are [`RejectedObject`]s. The decoder buffers at most a few hundred kilobytes
/// of the body, or twice the largest item.
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
    paths: PrunePaths,
    buffer: Vec<u8>,
    /// The number of decoded bytes at the start of the buffer.
    read: usize,
    /// The minimum number of bytes to collect, and the number at which the rest of the buffer is
    /// next decoded.
    slice: usize,
    look_at: usize,
    max_object_size: usize,
    state: State,
    head: Head,
    items: usize,
    /// The expected type of the items.
    expected: Option<ExpectedType>,
    decode: Decode,
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
    Closed,
    /// The body is a status, which is decoded as a whole.
    Status,
}

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
}

type Items<K> = Vec<Result<OwnedObject<K>, RejectedObject>>;

impl<K: DeserializeOwned + Send + Sync + 'static> ListDecoder<K> {
    /// Returns a decoder that prunes the given fields of each item.
    #[must_use]
    pub fn new(paths: PrunePaths) -> Self {
        Self::with(decode::<K>, paths)
    }
}

impl<K> ListDecoder<K> {
    /// Returns a decoder that decodes items with the given function.
    pub(crate) fn with(decode: Decode, paths: PrunePaths) -> Self {
        Self {
            paths,
            buffer: Vec::new(),
            read: 0,
            slice: SLICE,
            look_at: SLICE,
            max_object_size: DEFAULT_MAX_OBJECT_SIZE,
            state: State::Start,
            head: Head::default(),
            items: 0,
            expected: None,
            decode,
            _item: PhantomData,
        }
    }

    /// Rejects lists of other types.
    pub(crate) fn expecting(mut self, expected: ExpectedType) -> Self {
        self.paths = expected.paths(self.paths);
        self.expected = Some(expected);
        self
    }

    /// Sets the maximum size of an item, in bytes of JSON. Items are buffered as a whole. Default:
    /// 16 MiB; minimum: 256 KiB.
    #[must_use]
    pub fn max_object_size(mut self, bytes: usize) -> Self {
        self.max_object_size = bytes.max(self.slice);
        self
    }

    /// Adds bytes of the body and returns the items that they complete, if any.
    ///
    /// # Errors
    /// [`ListWatchError::Protocol`] if the body is no list, or an item is too large. Do not use the
    /// decoder after an error.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Items<K>, ListWatchError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() - self.read < self.look_at {
            return Ok(Vec::new());
        }
        let items = self.decode()?;
        if self.head.has_items {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        if self.buffer.len() > self.max_object_size {
            let limit = format!("one of its values is larger than {} bytes", self.max_object_size);
            return Err(self.not_a_list(&limit));
        }
        // Decoding the start of an item after each piece would take quadratic time.
        self.look_at = self.slice.max(2 * (self.buffer.len() - self.read));
        Ok(items)
    }

    /// Ends the body and returns the last items and the end of the list.
    ///
    /// # Errors
    /// [`ListWatchError::Interrupted`] if the body ended early, [`ListWatchError::Protocol`] if it
    /// is no list, and [`ListWatchError::Status`] if it is a failure's status.
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

    /// Decodes all complete values.
    fn decode(&mut self) -> Result<Items<K>, ListWatchError> {
        let buffer = std::mem::take(&mut self.buffer);
        let text = Repaired::new(&buffer);
        let items = self.decode_text(&text);
        self.buffer = buffer;
        items
    }

    fn decode_text(&mut self, body: &Repaired<'_>) -> Result<Items<K>, ListWatchError> {
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

    /// Makes one step. Returns `false` if more bytes are needed.
    fn advance(&mut self, body: &Repaired<'_>, items: &mut Items<K>) -> Result<bool, ListWatchError> {
        let rest = &body.text[self.read..];
        self.state = match (self.state, rest.as_bytes()[0]) {
            (State::Start, b'{') => State::FirstField,
            // Some proxies insert a byte order mark.
            (State::Start, _) if self.read == 0 && rest.starts_with('\u{feff}') => {
                self.read = BYTE_ORDER_MARK.len();
                return Ok(true);
            }
            (State::Start, _) => return Err(self.not_a_list("it is no JSON object")),
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

    /// Reads the name of a field and the colon.
    fn field(&mut self, rest: &str) -> Result<bool, ListWatchError> {
        let Some((name, len)) = self.typed::<String>(rest, "it is not valid JSON")? else {
            return Ok(false);
        };
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

    /// Reads the value of a field other than an array of items.
    fn value(&mut self, rest: &str, field: Field) -> Result<bool, ListWatchError> {
        let len = match field {
            Field::Kind => self.typed::<Option<String>>(rest, "its kind is no text")?.map(|(kind, len)| {
                self.head.kind = kind;
                len
            }),
            Field::ApiVersion => {
                let version = self.typed::<Option<String>>(rest, "its API version is no text")?;
                version.map(|(version, len)| {
                    self.head.api_version = version;
                    len
                })
            }
            Field::Metadata => {
                let metadata = self.typed::<Option<ListMeta>>(rest, "its metadata is not that of a list")?;
                metadata.map(|(metadata, len)| {
                    self.head.metadata = metadata.unwrap_or_default();
                    len
                })
            }
            // Go writes a nil slice as null.
            Field::Items => self.typed::<()>(rest, "its items are no array")?.map(|((), len)| {
                self.head.has_items = true;
                len
            }),
            Field::Other => {
                self.typed::<IgnoredAny>(rest, "it is not valid JSON")?.map(|(IgnoredAny, len)| len)
            }
        };
        let Some(len) = len else { return Ok(false) };
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

    /// Checks the type of the list once it is known.
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
        ListWatchError::Protocol(format!("the list is not of what was asked for: {why}{}", self.place()))
    }

    fn item(&mut self, body: &Repaired<'_>, items: &mut Items<K>) -> Result<bool, ListWatchError> {
        let mut found = match read(&body.text[self.read..], self.paths.root()) {
            Ok(found) => found,
            Err(NoValue::Incomplete) => return Ok(false),
            Err(NoValue::Broken) => return Err(self.not_a_list("it is not valid JSON")),
        };
        if let Some(why) = self.expected.as_ref().and_then(|expected| expected.refusal(&found.tape)) {
            return Err(self.unexpected(&why));
        }
        if body.is_repaired(self.read..self.read + found.len) {
            found.tape.reject(INVALID_UTF8);
        }
        // I10: an undecodable item is an item, and the list continues.
        let object = (self.decode)(&found.tape);
        let item = object.map(OwnedObject::cast).map_err(|error| rejected(&found.tape, error.to_string()));
        self.read += found.len;
        items.push(item);
        self.items += 1;
        self.state = State::AfterItem;
        Ok(true)
    }

    /// Decodes the next value of the list itself, or returns `None` if more bytes are needed.
    fn typed<T: DeserializeOwned>(
        &self,
        rest: &str,
        otherwise: &str,
    ) -> Result<Option<(T, usize)>, ListWatchError> {
        match read(rest, &NOTHING_PRUNED) {
            Ok(found) => match deserialize(&found.tape) {
                Ok(value) => Ok(Some((value, found.len))),
                Err(_) => Err(self.not_a_list(otherwise)),
            },
            Err(NoValue::Incomplete) => Ok(None),
            Err(NoValue::Broken) => Err(self.not_a_list("it is not valid JSON")),
        }
    }

    fn not_a_list(&self, because: &str) -> ListWatchError {
        ListWatchError::Protocol(format!("the body is not a Kubernetes list: {because}{}", self.place()))
    }

    fn place(&self) -> String {
        if self.items == 0 { String::new() } else { format!(" after {} items", self.items) }
    }

    /// Returns the error of a body that is a status. The buffer still has the whole body.
    fn status(&self) -> ListWatchError {
        let json = self.buffer.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.buffer);
        match serde_json::from_slice::<Status>(json) {
            Ok(status) if !status.is_success() => {
                ListWatchError::Status { status: Box::new(status), retry_after: None }
            }
            Ok(_) => self.not_a_list("it is the Status of a success"),
            Err(error) if error.is_eof() => ListWatchError::Interrupted("the status ended early".into()),
            Err(_) => self.not_a_list("it is a Status that can't be decoded"),
        }
    }
}

impl<K> fmt::Debug for ListDecoder<K> {
    /// Shows the position, not the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListDecoder")
            .field("state", &self.state)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

impl Head {
    /// Returns whether the body is a list. Without items it must state the type of a list, because
    /// an empty list deletes all cached objects, and an error page in JSON must not.
    fn is_list(&self) -> bool {
        self.has_items || self.kind.as_deref().is_some_and(|kind| kind.ends_with("List"))
    }
}

#[cfg(test)]
mod tests;
