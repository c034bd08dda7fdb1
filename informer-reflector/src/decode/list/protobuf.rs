//! Decodes lists in protobuf.
//!
//! The body is a `runtime.Unknown` message, and its field 2 contains the message of the list. In
//! both messages, all fields have the protobuf wire type of bytes (length-delimited).

use informer_core::ListWatchError;
use kube_messages::{Malformed, Messages};

use super::{Items, ListDecoder, State};
use crate::decode::envelope::{Header, MAGIC, Unknown};
use crate::decode::form::Arrived;
use crate::decode::protobuf::read;
use crate::decode::prune_paths::NOTHING_PRUNED;

impl<K> ListDecoder<K> {
    /// Decodes `body`, the buffered part of the response, from position `self.read`. Returns the
    /// items that have arrived completely.
    pub(super) fn decode_protobuf(&mut self, body: &[u8]) -> Result<Items<K>, ListWatchError> {
        let mut items = Vec::new();
        if self.state == State::Start {
            let start = &body[..body.len().min(MAGIC.len())];
            if !MAGIC.starts_with(start) {
                return Err(self.not_a_list("it does not begin like Kubernetes protobuf"));
            }
            if start.len() < MAGIC.len() {
                return Ok(items);
            }
            self.read = MAGIC.len();
            self.state = State::Envelope;
        }
        while self.state != State::Status && self.read < body.len() {
            if !self.next_field(&body[self.read..], &mut items)? {
                break;
            }
        }
        Ok(items)
    }

    /// Reads one protobuf field of the body. Returns `false` if more bytes are needed.
    fn next_field(&mut self, rest: &[u8], items: &mut Items<K>) -> Result<bool, ListWatchError> {
        let Some(header) = Header::read(rest).map_err(|Malformed| self.malformed())? else {
            return Ok(false);
        };
        if let (State::Envelope, 2) = (self.state, header.number) {
            self.read += header.len;
            self.begin_content(header.content)?;
            return Ok(true);
        }
        let Some(content) = rest[header.len..].get(..header.content) else { return Ok(false) };
        let len = header.len + header.content;
        if let State::Content(left) = self.state {
            let left = left.checked_sub(len).ok_or_else(|| self.malformed())?;
            self.content_field(header.number, content, items)?;
            self.state = if left == 0 { State::Closed } else { State::Content(left) };
        } else if let (State::Envelope, 1) = (self.state, header.number) {
            self.type_meta(content)?;
        }
        self.read += len;
        Ok(true)
    }

    /// Reads the `kind` and `apiVersion` of the list.
    fn type_meta(&mut self, bytes: &[u8]) -> Result<(), ListWatchError> {
        let mut list = Unknown::default();
        list.read_type(bytes).map_err(|Malformed| self.malformed())?;
        self.head.kind = Some(list.kind.to_owned());
        self.head.api_version = Some(list.api_version.to_owned());
        match list.kind.strip_suffix("List") {
            _ if list.kind == "Status" => self.state = State::Status,
            Some(kind) => self.head.message = Messages::all().of_kind(list.api_version, kind),
            None => {}
        }
        self.check_type()
    }

    /// Prepares the decoder for the message of the list, which has `len` bytes. Fails in two cases:
    /// - The `kind` of the list does not end in `List`.
    /// - The protobuf message of the items, such as `Pod` for a `PodList`, is unknown.
    fn begin_content(&mut self, len: usize) -> Result<(), ListWatchError> {
        match &self.head.kind {
            Some(kind) if !kind.ends_with("List") => {
                return Err(self.not_a_list("it is an object without items"));
            }
            _ if self.head.message.is_none() => {
                return Err(self.not_a_list("the protobuf message of its items is unknown"));
            }
            _ => {}
        }
        self.head.has_items = true;
        self.state = if len == 0 { State::Closed } else { State::Content(len) };
        Ok(())
    }

    fn content_field(
        &mut self,
        number: u64,
        bytes: &[u8],
        items: &mut Items<K>,
    ) -> Result<(), ListWatchError> {
        match (number, self.head.message, Messages::all().find("meta.v1.ListMeta")) {
            (1, _, Some(message)) => {
                let metadata = read(message, bytes, &NOTHING_PRUNED);
                self.head.metadata = self.typed(&metadata, "its metadata is not that of a list")?;
            }
            (2, Some(message), _) => {
                if let Some(object) = self.form.direct(message, bytes, self.skipped.root()) {
                    self.items += 1;
                    items.push(Ok(object.cast()));
                    return Ok(());
                }
                let tape = read(message, bytes, self.form.unread_fields(self.skipped.root()));
                self.push_item(&Arrived { tape, protobuf: Some((message, bytes)) }, items)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn malformed(&self) -> ListWatchError {
        self.not_a_list("it is not valid protobuf")
    }
}
