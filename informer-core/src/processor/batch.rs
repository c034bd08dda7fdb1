//! [`Batch`]: the events of one transaction, which all handlers share.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::{AnyObject, Event, EventBatch};

/// The events of one transaction of the store, or the coalesced events of several.
///
/// The handles to encoded objects are closed: they must be opened before they can be dereferenced.
/// So the batch also has the same events with open handles, for handlers that neither read nor keep
/// encoded objects. Opening the handles once for each of a hundred handlers would be the largest
/// cost of an event. Handlers that use the objects open handles of their own, so that the decoded
/// objects are not in memory as long as the batch.
pub(super) struct Batch<K> {
    batch: EventBatch<K>,
    /// The events with open handles, which can be dereferenced. The handles of an event are opened
    /// for the first handler that gets to the event, because a batch can contain a whole list.
    open: OnceLock<Box<[OnceLock<Event<K>>]>>,
}

pub(super) type SharedBatch<K> = Arc<Batch<K>>;

impl<K> Batch<K> {
    pub(super) fn shared(batch: EventBatch<K>) -> SharedBatch<K> {
        Arc::new(Self { batch, open: OnceLock::new() })
    }
}

impl Batch<AnyObject> {
    /// Returns the event with the index `at`. Its handles can be dereferenced, and all callers
    /// share them.
    pub(super) fn open_event(&self, at: usize) -> &Event<AnyObject> {
        let events = &self.batch.events;
        let open = self.open.get_or_init(|| events.iter().map(|_| OnceLock::new()).collect());
        open[at].get_or_init(|| events[at].with_open_handles().unwrap_or_else(|| events[at].clone()))
    }
}

impl<K> Deref for Batch<K> {
    type Target = EventBatch<K>;

    fn deref(&self) -> &EventBatch<K> {
        &self.batch
    }
}
