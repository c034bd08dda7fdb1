//! [`Batch`]: the events of one transaction, which all handlers share.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::{AnyObject, Event, EventBatch};

/// The events of one transaction of the store, or the coalesced events of several transactions.
///
/// A handler receives only handles that can be dereferenced. A stored handle to an encoded object
/// (an object that is stored as bytes) is closed: it must be opened first, and the open handle
/// keeps the object once it has been decoded. Opening the handles again for each of a hundred
/// handlers would be the largest cost of an event. So the handlers that have not read or kept an
/// encoded object share one copy of each event, with open handles. The other handlers open handles
/// of their own, so that the decoded objects can be freed before the batch.
pub(super) struct Batch<K> {
    batch: EventBatch<K>,
    /// A copy of each event, whose handles can be dereferenced even if they belong to encoded
    /// objects. A copy is made when the first handler needs it. A batch can contain a whole list,
    /// so copying all events at once would take long.
    open: OnceLock<Box<[OnceLock<Event<K>>]>>,
}

pub(super) type SharedBatch<K> = Arc<Batch<K>>;

impl<K> Batch<K> {
    pub(super) fn shared(batch: EventBatch<K>) -> SharedBatch<K> {
        Arc::new(Self { batch, open: OnceLock::new() })
    }
}

impl Batch<AnyObject> {
    /// Returns the event with the index `at` in a form that a handler can read: handles to encoded
    /// objects have been opened, so they can be dereferenced. All callers get the same copy of the
    /// event.
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
