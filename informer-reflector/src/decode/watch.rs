//! [`WatchDecoder`]: the events of a watch, framed by newlines.
//!
//! The fact people get wrong: chunks of a body are not lines. Mostly they are (the server flushes after each event), so
//! those lines are decoded where they lie, and only a line that comes in pieces is put together.

use std::fmt;
use std::marker::PhantomData;

use informer_core::{ListWatchError, WatchEvent};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::event::decode_event;
use super::expected::ExpectedType;
use super::prune_paths::PrunePaths;
use super::{BYTE_ORDER_MARK, DEFAULT_MAX_OBJECT_SIZE};

/// A line that came in pieces leaves no more room behind than this.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Decodes the body of a watch from bytes as they come.
///
/// An event that can't be decoded comes out as [`WatchEvent::RejectedObject`], and the stream goes on.
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
    paths: PrunePaths,
    /// The start of a line whose end hasn't come.
    partial: Vec<u8>,
    max_object_size: usize,
    /// Whether a line has come that looks like an event, so that this is a watch indeed.
    recognized: bool,
    /// What objects have to be, if that was said.
    expected: Option<ExpectedType>,
    _object: PhantomData<fn() -> K>,
}

impl<K: DeserializeOwned> WatchDecoder<K> {
    /// Returns a decoder that steps over the given fields of each object.
    #[must_use]
    pub fn new(paths: PrunePaths) -> Self {
        Self {
            paths,
            partial: Vec::new(),
            max_object_size: DEFAULT_MAX_OBJECT_SIZE,
            recognized: false,
            expected: None,
            _object: PhantomData,
        }
    }

    /// Refuses a watch of anything else than this.
    pub(crate) fn expecting(mut self, expected: ExpectedType) -> Self {
        self.paths = expected.paths(&self.paths);
        self.expected = Some(expected);
        self
    }

    /// Sets how large an event may be, in bytes of JSON. It is held as a whole. Default: 16 MiB.
    #[must_use]
    pub fn max_object_size(mut self, bytes: usize) -> Self {
        self.max_object_size = bytes;
        self
    }

    /// Takes more of the body, and returns the events that this completes; often none.
    ///
    /// # Errors
    /// [`ListWatchError::Protocol`] if an event is too large or the body is no watch. The decoder is of no use after that.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<WatchEvent<K>>, ListWatchError> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            let (end_of_line, after) = (&rest[..newline], &rest[newline + 1..]);
            if self.partial.is_empty() {
                events.extend(self.decode(end_of_line)?);
            } else {
                self.gather(end_of_line)?;
                let line = std::mem::take(&mut self.partial);
                events.extend(self.decode(&line)?);
                self.reuse(line);
            }
            rest = after;
        }
        self.gather(rest)?;
        Ok(events)
    }

    /// Takes the end of the body, and returns the last event if no newline followed it.
    ///
    /// # Errors
    /// [`ListWatchError::Interrupted`] if the body ended within a line, [`ListWatchError::Protocol`] if it is no watch.
    pub fn finish(mut self) -> Result<Option<WatchEvent<K>>, ListWatchError> {
        let line = std::mem::take(&mut self.partial);
        let event = self.decode(&line)?;
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line);
        match serde_json::from_slice::<IgnoredAny>(line) {
            Err(error) if error.is_eof() && event.is_some() => {
                Err(ListWatchError::Interrupted("the watch ended within an event".into()))
            }
            _ => Ok(event),
        }
    }

    fn gather(&mut self, piece: &[u8]) -> Result<(), ListWatchError> {
        self.check_length(self.partial.len() + piece.len())?;
        self.partial.extend_from_slice(piece);
        Ok(())
    }

    fn decode(&mut self, line: &[u8]) -> Result<Option<WatchEvent<K>>, ListWatchError> {
        self.check_length(line.len())?;
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(line) if !self.recognized => line,
            _ => line,
        };
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        if !self.recognized && line[0] != b'{' {
            let error = "the body is not a Kubernetes watch: its first line is no JSON object";
            return Err(ListWatchError::Protocol(error.to_owned()));
        }
        self.recognized = true;
        decode_event(line, &self.paths, self.expected.as_ref()).map(Some)
    }

    fn check_length(&self, len: usize) -> Result<(), ListWatchError> {
        if len <= self.max_object_size {
            return Ok(());
        }
        let error = format!("an event of the watch is larger than {} bytes", self.max_object_size);
        Err(ListWatchError::Protocol(error))
    }

    fn reuse(&mut self, mut line: Vec<u8>) {
        line.clear();
        line.shrink_to(KEPT_CAPACITY);
        self.partial = line;
    }
}

impl<K> fmt::Debug for WatchDecoder<K> {
    /// Shows where the decoder stands, not what it holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchDecoder").field("partial", &self.partial.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
