//! [`list`] and [`watch`]: the body of a response as a stream of what is decoded from it.
//!
//! Bytes come from [`Slices`], and go into the decoders. The fact people get wrong: the last items of a list are complete
//! before its end is, and an end that never comes makes them worthless; so the end is a part of its own.

use std::any::Any;

use futures::{Stream, stream};
use informer_core::{ListEnd, ListPart, ListWatchError, OwnedObject, RejectedObject, WatchEvent};
use kube::core::{DynamicObject, TypeMeta};
use serde::de::DeserializeOwned;

use super::slices::Slices;
use crate::{ListDecoder, WatchDecoder};

/// Returns the parts of the list in a body, one for each piece of it that arrives; parts without items show that it does.
pub(super) fn list<K: DeserializeOwned + 'static>(
    slices: Slices,
    decoder: ListDecoder<K>,
    resource: TypeMeta,
) -> impl Stream<Item = Result<ListPart<K>, ListWatchError>> {
    let body = ListBody { slices, decoder: Some(decoder), resource, end: None };
    stream::unfold(body, async |mut body| {
        let part = body.next().await.map_err(|error| body.slices.explain(error)).transpose()?;
        Some((part, body))
    })
}

/// Returns the batches of events of the watch in a body, one for each piece of it that arrives.
pub(super) fn watch<K: DeserializeOwned>(
    slices: Slices,
    decoder: WatchDecoder<K>,
) -> impl Stream<Item = Result<Vec<WatchEvent<K>>, ListWatchError>> {
    let body = WatchBody { slices, decoder: Some(decoder) };
    stream::unfold(body, async |mut body| {
        let batch = body.next().await.map_err(|error| body.slices.explain(error)).transpose()?;
        Some((batch, body))
    })
}

struct ListBody<K> {
    slices: Slices,
    /// Gone once the body was decoded to its end, or an error came up.
    decoder: Option<ListDecoder<K>>,
    /// What the items are, of which only the list may say so.
    resource: TypeMeta,
    /// The end of the list while the last items are on their way.
    end: Option<ListEnd>,
}

impl<K: DeserializeOwned + 'static> ListBody<K> {
    async fn next(&mut self) -> Result<Option<ListPart<K>>, ListWatchError> {
        let Some(mut decoder) = self.decoder.take() else {
            return Ok(self.end.take().map(ListPart::End));
        };
        if let Some(bytes) = self.slices.next().await? {
            let items = decoder.push(bytes)?;
            self.decoder = Some(decoder);
            return Ok(Some(self.items(items)));
        }
        let (items, end) = decoder.finish()?;
        if items.is_empty() {
            return Ok(Some(ListPart::End(end)));
        }
        self.end = Some(end);
        Ok(Some(self.items(items)))
    }

    /// Has dynamic objects say what they are. Those of a watch do so by themselves, and it must not depend on how an
    /// object came.
    fn items(&self, mut items: Vec<Result<OwnedObject<K>, RejectedObject>>) -> ListPart<K> {
        for object in items.iter_mut().flatten() {
            let Some(object) = (&mut **object as &mut dyn Any).downcast_mut::<DynamicObject>() else { break };
            object.types.get_or_insert_with(|| self.resource.clone());
        }
        ListPart::Items(items)
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
        if let Some(bytes) = self.slices.next().await? {
            let events = decoder.push(bytes)?;
            self.decoder = Some(decoder);
            return Ok(Some(events));
        }
        Ok(decoder.finish()?.map(|event| vec![event]))
    }
}
