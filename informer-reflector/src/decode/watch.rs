//! [`WatchDecoder`]: decodes the events of a watch. In JSON, each event is a line; in protobuf,
//! four bytes with its length precede it.
//!
//! Only an event whose end has not arrived yet is buffered.

use std::fmt;
use std::marker::PhantomData;

use informer_core::{ListWatchError, WatchEvent};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::event::EventDecoder;
use super::expected::ExpectedType;
use super::form::Form;
use super::prune_paths::PrunePaths;
use super::skipped::Skipped;
use super::{BYTE_ORDER_MARK, DEFAULT_MAX_OBJECT_SIZE, Decode, Encoding};

/// The size of the length that precedes each event in protobuf, in bytes.
const LENGTH: usize = size_of::<u32>();

/// Decodes the body of a watch incrementally.
///
/// An undecodable event is returned as [`WatchEvent::RejectedObject`], and the stream continues. An
/// `ERROR` event is returned as [`WatchEvent::Error`], even if its status can't be decoded.
///
/// ```
/// use informer_core::WatchEvent;
/// use informer_reflector::{PrunePaths, WatchDecoder};
/// use kube::core::DynamicObject;
///
/// let mut decoder = WatchDecoder::<DynamicObject>::new(PrunePaths::default());
/// assert!(decoder.push(br#"{"type":"ADDED","object":{"metadata":{"na"#)?.is_empty());
/// let events = decoder.push(b"me\":\"a\"}}}\n")?;
/// assert!(matches!(&events[..], [WatchEvent::Added(object)] if object.metadata.name.as_deref() == Some("a")));
/// # Ok::<_, informer_core::ListWatchError>(())
/// ```
pub struct WatchDecoder<K> {
    events: EventDecoder,
    /// The start of an incomplete event.
    partial: Vec<u8>,
    max_object_size: usize,
    /// Whether the first line of a JSON body that is not blank has arrived. Not used for protobuf.
    recognized: bool,
    _object: PhantomData<fn() -> K>,
}

impl<K: DeserializeOwned + Send + Sync + 'static> WatchDecoder<K> {
    /// Returns a decoder that prunes the given fields of each object.
    #[must_use]
    pub fn new(paths: PrunePaths) -> Self {
        Self::with(Form::Decoded(Decode::of::<K>()), paths)
    }
}

impl<K> WatchDecoder<K> {
    pub(crate) fn with(form: Form, paths: PrunePaths) -> Self {
        Self {
            events: EventDecoder {
                encoding: Encoding::Json,
                skipped: Skipped::new(paths),
                expected: None,
                form,
            },
            partial: Vec::new(),
            max_object_size: DEFAULT_MAX_OBJECT_SIZE,
            recognized: false,
            _object: PhantomData,
        }
    }

    /// Sets the encoding of the body. Default: JSON.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.events.encoding = encoding;
        self
    }

    /// Makes the decoder fail if the type of an object is not `expected`.
    pub(crate) fn expecting(mut self, expected: ExpectedType) -> Self {
        self.events.skipped.change(|paths| expected.paths(paths));
        self.events.expected = Some(expected);
        self
    }

    /// Sets the maximum size of an event in the body, in bytes. The decoder keeps an
    /// event until it is complete, and a larger event is an error. Default: 16 MiB.
    #[must_use]
    pub fn max_object_size(mut self, bytes: usize) -> Self {
        // So that `LENGTH` can be added without overflow on 32-bit targets.
        self.max_object_size = bytes.min(usize::MAX - LENGTH);
        self
    }

    /// Adds bytes of the body and returns the events that they complete, if any.
    ///
    /// # Errors
    /// [`ListWatchError::Protocol`] if an event is too large or the body is not a watch. Do not use
    /// the decoder after an error.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<WatchEvent<K>>, ListWatchError> {
        match self.events.encoding {
            Encoding::Json => self.push_lines(bytes),
            Encoding::Protobuf => self.push_frames(bytes),
        }
    }

    fn push_lines(&mut self, bytes: &[u8]) -> Result<Vec<WatchEvent<K>>, ListWatchError> {
        let (mut events, mut start) = (Vec::new(), 0);
        for newline in memchr::memchr_iter(b'\n', bytes) {
            let end_of_line = &bytes[start..newline];
            start = newline + 1;
            if self.partial.is_empty() {
                events.extend(self.decode_line(end_of_line)?);
            } else {
                self.gather(end_of_line)?;
                let line = std::mem::take(&mut self.partial);
                events.extend(self.decode_line(&line)?);
            }
        }
        self.gather(&bytes[start..])?;
        Ok(events)
    }

    fn push_frames(&mut self, bytes: &[u8]) -> Result<Vec<WatchEvent<K>>, ListWatchError> {
        let (mut events, mut rest) = (Vec::new(), bytes);
        while !self.partial.is_empty() && !rest.is_empty() {
            let (piece, after) = rest.split_at(self.missing_bytes().min(rest.len()));
            self.partial.extend_from_slice(piece);
            rest = after;
            if self.frame_length(&self.partial)? == Some(self.partial.len()) {
                let frame = std::mem::take(&mut self.partial);
                events.push(self.events.decode(&frame[LENGTH..])?);
            }
        }
        while let Some(len) = self.frame_length(rest)?
            && let Some((frame, after)) = rest.split_at_checked(len)
        {
            events.push(self.events.decode(&frame[LENGTH..])?);
            rest = after;
        }
        self.partial.extend_from_slice(rest);
        Ok(events)
    }

    /// Returns the number of protobuf bytes to wait for: the rest of the event or, before that, the
    /// rest of its length.
    fn missing_bytes(&self) -> usize {
        match self.partial.first_chunk() {
            Some(len) => LENGTH + u32::from_be_bytes(*len) as usize - self.partial.len(),
            None => LENGTH - self.partial.len(),
        }
    }

    /// Returns the length of the first protobuf event, including the four bytes with the length;
    /// `None` if these four bytes are incomplete.
    fn frame_length(&self, bytes: &[u8]) -> Result<Option<usize>, ListWatchError> {
        let Some(len) = bytes.first_chunk() else { return Ok(None) };
        let len = u32::from_be_bytes(*len) as usize;
        self.check_length(len)?;
        Ok(Some(LENGTH + len))
    }

    /// Ends the body. Returns the last JSON event if no newline followed it, otherwise `None`.
    ///
    /// # Errors
    /// [`ListWatchError::Interrupted`] if the body ended within an event,
    /// [`ListWatchError::Protocol`] if the body is not a watch.
    pub fn finish(mut self) -> Result<Option<WatchEvent<K>>, ListWatchError> {
        let interrupted = || Err(ListWatchError::Interrupted("the watch ended within an event".into()));
        if self.events.encoding == Encoding::Protobuf {
            return if self.partial.is_empty() { Ok(None) } else { interrupted() };
        }
        let line = std::mem::take(&mut self.partial);
        let event = self.decode_line(&line)?;
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line);
        match serde_json::from_slice::<IgnoredAny>(line) {
            Err(error) if error.is_eof() && event.is_some() => interrupted(),
            _ => Ok(event),
        }
    }

    fn gather(&mut self, piece: &[u8]) -> Result<(), ListWatchError> {
        self.check_length(self.partial.len() + piece.len())?;
        self.partial.extend_from_slice(piece);
        Ok(())
    }

    fn decode_line(&mut self, line: &[u8]) -> Result<Option<WatchEvent<K>>, ListWatchError> {
        self.check_length(line.len())?;
        let unmarked = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| !self.recognized);
        let line = unmarked.unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        if !self.recognized && line[0] != b'{' {
            let error = "the body is not a Kubernetes watch: its first line is not a JSON object";
            return Err(ListWatchError::Protocol(error.to_owned()));
        }
        self.recognized = true;
        self.events.decode(line).map(Some)
    }

    fn check_length(&self, len: usize) -> Result<(), ListWatchError> {
        if len <= self.max_object_size {
            return Ok(());
        }
        let limit = self.max_object_size;
        let error = format!(
            "an event of the watch is larger than {limit} bytes; if the event is valid, raise `max_object_size`"
        );
        Err(ListWatchError::Protocol(error))
    }
}

impl<K> fmt::Debug for WatchDecoder<K> {
    /// Does not show the content, which can be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchDecoder").field("partial", &self.partial.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
