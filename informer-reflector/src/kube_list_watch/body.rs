//! [`list`] and [`watch`]: turn the body of a response into a stream of decoded parts or events.
//!
//! The end of a list is a separate part after the last items: only this part shows that the list is
//! complete.

use futures::{Stream, stream};
use informer_core::{ListEnd, ListPart, ListWatchError, OwnedObject, RejectedObject, WatchEvent};
use kube::core::{DynamicObject, TypeMeta};

use super::slices::Slices;
use crate::{ListDecoder, WatchDecoder};

/// Returns the parts of a list. A part without items shows that bytes have arrived, from which no
/// item has been decoded yet.
pub(super) fn list<K>(
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

/// Returns the events of a watch in batches. An empty batch shows that bytes have arrived, but no
/// complete event.
pub(super) fn watch<K>(
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
    /// The decoder of the body; `None` after the end of the body, or after [`next`](Self::next) has
    /// returned an error.
    decoder: Option<ListDecoder<K>>,
    /// The `apiVersion` and `kind` of the items, which servers omit from lists of built-in kinds.
    resource: TypeMeta,
    /// The end of the list, which [`next`](Self::next) returns after the last items.
    end: Option<ListEnd>,
}

impl<K> ListBody<K> {
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

    /// Returns the items as a part of the list. Adds `apiVersion` and `kind` to decoded dynamic
    /// objects that lack them.
    fn items(&self, mut items: Vec<Result<OwnedObject<K>, RejectedObject>>) -> ListPart<K> {
        for object in items.iter_mut().flatten().filter(|object| !object.is_encoded()) {
            let Some(object) = object.downcast_mut::<DynamicObject>() else { break };
            object.types.get_or_insert_with(|| self.resource.clone());
        }
        ListPart::Items(items)
    }
}

struct WatchBody<K> {
    slices: Slices,
    /// The decoder of the body; `None` after the end of the body, or after [`next`](Self::next) has
    /// returned an error.
    decoder: Option<WatchDecoder<K>>,
}

impl<K> WatchBody<K> {
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
