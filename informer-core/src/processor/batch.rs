//! [`HandlerBatch`]: the events of one transaction, which all handlers share.
//!
//! A handler cannot read an encoded object directly. The handler receives a copy of the event, and
//! the copy decodes an object at the first read. The copy then keeps the decoded object in memory.
//!
//! Handlers that have not read an encoded object so far share one copy of each event. After its
//! first read, a handler gets its own copies, because the shared copies exist until all handlers
//! have received the batch.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::{AnyObject, Event, EventBatch};

/// The events of one transaction of the store, or the coalesced events of several transactions.
pub(super) struct HandlerBatch<K> {
    batch: EventBatch<K>,
    /// For each event, the copy for all handlers that have not read an encoded object so far.
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
    /// Returns the shared copy of the event with the index `at`, for handlers that have not read an
    /// encoded object so far. If such a handler then reads an object, the copy decodes the object.
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
