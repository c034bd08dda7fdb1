//! [`Slices`]: decompresses the body of a response, and divides it into pieces (slices) for the
//! decoder.
//!
//! Note: decoding takes CPU time, and a task whose data is always available would never yield. So
//! the task yields after every 256 KiB, also within compressed data.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_ENCODING, HeaderMap};
use http_body_util::BodyExt;
use informer_core::ListWatchError;
use kube::client::Body;

use super::compression::Compression;
use super::gzip::Gunzip;
use super::response::{Caused, describe_headers};

/// The maximum size of a slice, in bytes. Decoding it takes around a millisecond.
const SLICE: usize = 256 * 1024;

pub(super) struct Slices {
    body: Body,
    header_description: String,
    /// The bytes that have arrived but are not processed yet; still compressed, if the body is.
    rest: Bytes,
    slice: Bytes,
    gunzip: Option<Gunzip>,
    /// The number of bytes processed since this reader last called `yield_now`.
    since_pause: usize,
    /// The compression setting to change if kube's client fails to decompress this watch. `None`
    /// for a list.
    compression: Option<Compression>,
    /// Counts the received bytes, before this reader decompresses them.
    received: Option<Arc<AtomicU64>>,
}

impl Slices {
    /// Creates a reader of the response's body. Fails with [`ListWatchError::Protocol`] if the body
    /// has another encoding than gzip or `identity`.
    pub(super) fn new(response: Response<Body>) -> Result<Self, ListWatchError> {
        let header_description = describe_headers(response.headers());
        let Some(is_compressed) = is_gzip(response.headers()) else {
            let error = format!("the body has an encoding that was not requested ({header_description})");
            return Err(ListWatchError::Protocol(error));
        };
        Ok(Self {
            body: response.into_body(),
            header_description,
            rest: Bytes::new(),
            slice: Bytes::new(),
            gunzip: is_compressed.then(Gunzip::new),
            since_pause: 0,
            compression: None,
            received: None,
        })
    }

    /// Makes this reader pass read errors to [`Compression::observe_failure`].
    pub(super) fn reporting_to(self, compression: Compression) -> Self {
        Self { compression: Some(compression), ..self }
    }

    /// Makes this reader add the received bytes to this counter.
    pub(super) fn counted_in(self, received: &Arc<AtomicU64>) -> Self {
        Self { received: Some(Arc::clone(received)), ..self }
    }

    /// Returns the next slice, which is not empty, or `None` at the end of the body.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, ListWatchError> {
        loop {
            if self.since_pause >= SLICE {
                self.since_pause = 0;
                tokio::task::yield_now().await;
            }
            if self.take_slice()? {
                return Ok(Some(self.gunzip.as_ref().map_or(&self.slice, Gunzip::output)));
            }
            let Some(frame) = self.body.frame().await else {
                self.gunzip.as_ref().map_or(Ok(()), Gunzip::check_end)?;
                return Ok(None);
            };
            let frame = frame.map_err(|error| self.read_error(error))?;
            // Other frames are trailers, which are ignored.
            self.rest = frame.into_data().unwrap_or_default();
            if let Some(received) = &self.received {
                received.fetch_add(self.rest.len() as u64, Ordering::Relaxed);
            }
        }
    }

    /// Takes the next slice from the bytes that have arrived. Returns `false` if more bytes are
    /// needed.
    fn take_slice(&mut self) -> Result<bool, ListWatchError> {
        let Some(gunzip) = &mut self.gunzip else {
            self.slice = self.rest.split_to(self.rest.len().min(SLICE));
            self.since_pause += self.slice.len();
            return Ok(!self.slice.is_empty());
        };
        let compressed = gunzip.inflate(&self.rest)?;
        drop(self.rest.split_to(compressed));
        self.since_pause += compressed.max(gunzip.output().len());
        Ok(!gunzip.output().is_empty())
    }

    fn read_error(&self, error: kube::Error) -> ListWatchError {
        let error = Caused(error);
        if let Some(compression) = &self.compression {
            compression.observe_failure(&error);
        }
        ListWatchError::Interrupted(Box::new(error))
    }

    /// Adds a description of the response's headers to a protocol error.
    pub(super) fn explain(&self, error: ListWatchError) -> ListWatchError {
        match error {
            ListWatchError::Protocol(error) => {
                ListWatchError::Protocol(format!("{error} ({})", self.header_description))
            }
            other => other,
        }
    }
}

/// Returns whether the body is compressed with gzip. Returns `None` if it has another encoding.
fn is_gzip(headers: &HeaderMap) -> Option<bool> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter().map(|value| value.as_bytes().trim_ascii());
    let encoding = encodings.next().unwrap_or_default().to_ascii_lowercase();
    match (&encoding[..], encodings.next()) {
        (b"" | b"identity", None) => Some(false),
        (b"gzip" | b"x-gzip", None) => Some(true),
        _ => None,
    }
}
