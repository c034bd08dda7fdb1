//! [`HandlerBatch`]: the events of one transaction, which all handlers share.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::{AnyObject, Event, EventBatch};

/// The events of one transaction of the store, or the coalesced events of several transactions.
pub(super) struct HandlerBatch<K> {
    batch: EventBatch<K>,
    /// A copy of each event in which encoded objects can be dereferenced, shared by the handlers
    /// that do not read objects. A handler that has read or kept an encoded object gets its own
    /// copies of all later events.
    // Each copy is made when the first handler needs it. A batch can contain a whole list, so
    // copying all events at once would take long.
    open: OnceLock<Box<[OnceLock<Event<K>>]>>,
}

pub(super) type SharedBatch<K> = Arc<HandlerBatch<K>>;

impl<K> HandlerBatch<K> {
    pub(super) fn shared(batch: EventBatch<K>) -> SharedBatch<K> {
        Arc::new(Self { batch, open: OnceLock::new() })
    }
}

impl HandlerBatch<AnyObject> {
    /// Returns a copy of the event with the index `at` that a handler can read, even if its objects
    /// are encoded. All callers get the same copy.
    pub(super) fn open_event(&self, at: usize) -> &Event<AnyObject> {
        // Opening the handles again for each of a hundred handlers would be the largest cost of an
        // event.
        let events = &self.batch.events;
        let open = self.open.get_or_init(|| events.iter().map(|_| OnceLock::new()).collect());
        open[at].get_or_init(|| events[at].with_open_handles().unwrap_or_else(|| events[at].clone()))
    }
}

impl<K> Deref for HandlerBatch<K> {
    type Target = EventBatch<K>;

    fn deref(&self) -> &EventBatch<K> {
        &self.batch
    }
}
