//! [`HandlerBatch`]: a batch of events that all handlers share.
//!
//! A handler cannot read an encoded object directly. The handler receives a copy of the event. The
//! copy decodes the object at the first read, and then keeps the decoded object in memory.
//!
//! While a batch waits for several handlers, those that read no encoded objects can share one copy
//! of each event. A handler usually reads its first encoded object in a shared copy, where the
//! decoded object stays until all handlers have received the batch. From its next event on, this
//! handler gets copies of its own. Each of these copies is freed after the handler's call.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::{AnyObject, Event, EventBatch};

/// The events of one transaction of the store, or, for slow handlers, the merged events of several
/// transactions.
pub(super) struct HandlerBatch<K> {
    batch: EventBatch<K>,
    /// For each event: the copy for all handlers that have never read an encoded object.
    // Each copy is made when the first handler needs it. A batch can contain a whole list, so
    // copying all events at once would take long.
    shared_copies: OnceLock<Box<[OnceLock<Event<K>>]>>,
}

pub(super) type SharedBatch<K> = Arc<HandlerBatch<K>>;

impl<K> HandlerBatch<K> {
    pub(super) fn shared(batch: EventBatch<K>) -> SharedBatch<K> {
        Arc::new(Self { batch, shared_copies: OnceLock::new() })
    }
}

impl HandlerBatch<AnyObject> {
    /// Returns the shared copy of the event with the index `at`. The copy decodes an encoded object
    /// when a handler first reads the object.
    pub(super) fn shared_copy(&self, at: usize) -> &Event<AnyObject> {
        // Opening the handles again for each of a hundred handlers would be the largest cost of an
        // event.
        let events = &self.batch.events;
        let copies = self.shared_copies.get_or_init(|| events.iter().map(|_| OnceLock::new()).collect());
        copies[at].get_or_init(|| events[at].with_open_handles().unwrap_or_else(|| events[at].clone()))
    }
}

impl<K> Deref for HandlerBatch<K> {
    type Target = EventBatch<K>;

    fn deref(&self) -> &EventBatch<K> {
        &self.batch
    }
}
