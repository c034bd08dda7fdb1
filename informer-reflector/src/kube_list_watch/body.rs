//! [`list`] and [`watch`]: a response's body as a stream of what is decoded from it.
//!
//! The fact people get wrong: decoding is work, and a stream that always has more at hand would never let another task
//! of its thread run. So bytes are decoded in slices, and there is a pause whenever a slice's worth is done.

use bytes::Bytes;
use futures::{Stream, stream};
use http::Response;
use http_body_util::BodyExt;
use informer_core::{ListEnd, ListPart, ListWatchError, WatchEvent};
use kube::client::Body;
use serde::de::DeserializeOwned;

use super::response::{Caused, claims};
use crate::{ListDecoder, PrunePaths, WatchDecoder};

/// How much is decoded in one go: some tens of pods, in less than a millisecond.
const SLICE: usize = 256 * 1024;

/// Returns the parts of the list in a response's body.
pub(super) fn list<K: DeserializeOwned>(
    response: Response<Body>,
    paths: PrunePaths,
) -> impl Stream<Item = Result<ListPart<K>, ListWatchError>> {
    let decoder = Some(ListDecoder::new(paths));
    let body = ListBody { slices: Slices::new(response), decoder, end: None };
    stream::unfold(body, async |mut body| {
        let part = body.next().await.map_err(|error| body.slices.explain(error)).transpose()?;
        Some((part, body))
    })
}

/// Returns the batches of events of the watch in a response's body.
pub(super) fn watch<K: DeserializeOwned>(
    response: Response<Body>,
    paths: PrunePaths,
) -> impl Stream<Item = Result<Vec<WatchEvent<K>>, ListWatchError>> {
    let body = WatchBody { slices: Slices::new(response), decoder: Some(WatchDecoder::new(paths)) };
    stream::unfold(body, async |mut body| {
        let batch = body.next().await.map_err(|error| body.slices.explain(error)).transpose()?;
        Some((batch, body))
    })
}

struct ListBody<K> {
    slices: Slices,
    /// Gone once the body was decoded to its end, or an error came up.
    decoder: Option<ListDecoder<K>>,
    /// The end of the list while the last items are on their way.
    end: Option<ListEnd>,
}

impl<K: DeserializeOwned> ListBody<K> {
    async fn next(&mut self) -> Result<Option<ListPart<K>>, ListWatchError> {
        let Some(mut decoder) = self.decoder.take() else {
            return Ok(self.end.take().map(ListPart::End));
        };
        while let Some(bytes) = self.slices.next().await? {
            let items = decoder.push(&bytes)?;
            if !items.is_empty() {
                self.decoder = Some(decoder);
                return Ok(Some(ListPart::Items(items)));
            }
        }
        let (items, end) = decoder.finish()?;
        if items.is_empty() {
            return Ok(Some(ListPart::End(end)));
        }
        self.end = Some(end);
        Ok(Some(ListPart::Items(items)))
    }
}

struct WatchBody<K> {
    slices: Slices,
    /// Gone once the body was decoded to its end, or an error came up.
    decoder: Option<WatchDecoder<K>>,
}

impl<K: DeserializeOwned> WatchBody<K> {
    async fn next(&mut self) -> Result<Option<Vec<WatchEvent<K>>>, ListWatchError> {
        let Some(mut decoder) = self.decoder.take() else { return Ok(None) };
        while let Some(bytes) = self.slices.next().await? {
            let events = decoder.push(&bytes)?;
            if !events.is_empty() {
                self.decoder = Some(decoder);
                return Ok(Some(events));
            }
        }
        Ok(decoder.finish()?.map(|event| vec![event]))
    }
}

/// The bytes of a body as they arrive, in slices that are decoded in one go.
struct Slices {
    body: Body,
    /// What the response says it is.
    claims: String,
    /// What has arrived beyond the last slice.
    rest: Bytes,
    since_pause: usize,
}

impl Slices {
    fn new(response: Response<Body>) -> Self {
        let claims = claims(response.headers());
        Self { body: response.into_body(), claims, rest: Bytes::new(), since_pause: 0 }
    }

    /// Returns the next bytes, never none of them, or `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, ListWatchError> {
        if self.since_pause >= SLICE {
            self.since_pause = 0;
            tokio::task::yield_now().await;
        }
        while self.rest.is_empty() {
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| ListWatchError::Interrupted(Caused::boxed(error)))?;
            // What is no data is a trailer, and says nothing.
            self.rest = frame.into_data().unwrap_or_default();
        }
        let slice = self.rest.split_to(self.rest.len().min(SLICE));
        self.since_pause += slice.len();
        Ok(Some(slice))
    }

    /// Adds what the response claimed to be to the error that it isn't.
    fn explain(&self, error: ListWatchError) -> ListWatchError {
        match error {
            ListWatchError::Protocol(error) => ListWatchError::Protocol(format!("{error} ({})", self.claims)),
            other => other,
        }
    }
}
