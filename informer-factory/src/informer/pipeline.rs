//! [`Pipeline`]: what becomes of a batch: one transaction of the store, and the events that go with it.
//!
//! This is the middle of the way from socket to handler; before it lies the queue, behind it the processor. client-go:
//! `processDeltas` and `processDeltasInBatch` of tools/cache/controller.go.

use std::sync::Arc;

use informer_core::{
    Batch, Cached, Deleted, Delta, Event, EventBatch, Pending, ResourceVersion, SharedProcessor,
};
use informer_store::{Change, Indexer, StoreWriter};
use tokio::sync::watch;

use super::failure_log::FailureLog;
use crate::source::Source;

/// Turns batches of deltas into states of the store and events.
pub(super) struct Pipeline<K: 'static> {
    pub(super) index_failures: FailureLog,
    pub(super) writer: StoreWriter<K>,
    pub(super) indexer: Indexer<K>,
    pub(super) processor: SharedProcessor<K>,
    pub(super) source: Arc<Source<K>>,
    /// Tells those who wait how far the store has come.
    pub(super) watermark: watch::Sender<ResourceVersion>,
}

/// The outcome of a batch, as it is put together.
struct Outcome<K> {
    changes: Vec<Change<K>>,
    events: Vec<Event<K>>,
}

impl<K: Send + Sync + 'static> Pipeline<K> {
    /// Makes a batch true in the store, and tells the handlers.
    pub(super) fn process(&mut self, batch: &Batch<K>) {
        let count = batch.items().len();
        let mut outcome = Outcome { changes: Vec::with_capacity(count), events: Vec::with_capacity(count) };
        // All are looked up before the first is followed: that is one lock, and the processor fetches what lies far apart in
        // memory side by side, which the counting of references in between would keep it from.
        let state = self.indexer.snapshot();
        let stored: Vec<_> = batch.items().iter().map(|pending| state.get(&pending.key)).collect();
        for (pending, stored) in batch.items().iter().zip(stored) {
            outcome.add(pending, stored);
        }
        // A state that somebody holds is copied where it changes.
        drop(state);
        let Outcome { changes, events } = outcome;
        let events = EventBatch { events, completes_initial_list: batch.completes_initial_list() };
        let mut transaction = self.writer.prepare(changes, batch.watermark(), batch.feed_news());
        // I3: the store changes before any handler can receive the events.
        let published = self.processor.publish(events, || transaction.commit());
        // I8: old objects are dropped, and then handlers are woken, when the store's write lock is free again.
        let failures = transaction.finish();
        drop(published);
        self.index_failures.report(&failures);
        if let Some(resource_version) = batch.watermark() {
            self.watermark.send_replace(resource_version.clone());
        } else if matches!(*self.source, Source::Namespaces(_)) {
            // Who waits for several namespaces looks at the store's own watermarks, and at which are followed: one that
            // was removed before anything came of it may have been the last that was behind.
            self.watermark.send_modify(|_| {});
        }
        if let Source::Namespaces(namespaces) = self.source.as_ref() {
            namespaces.reached(batch.feed_news());
        }
    }
}

impl<K> Outcome<K> {
    /// Follows one object through its deltas, from what the store has of it.
    fn add(&mut self, pending: &Pending<K>, stored: Option<&Cached<K>>) {
        let mut current = stored.cloned();
        for delta in &pending.deltas {
            current = match delta {
                Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => {
                    Some(self.put(current, object, pending.is_in_initial_list()))
                }
                Delta::Sync(_) => {
                    // The store knows best what there is to be resynced.
                    self.events.extend(current.clone().map(Event::Resynced));
                    current
                }
                Delta::Deleted(deleted) => {
                    // I4: of an object that no handler heard of, none hears that it is gone.
                    if let Some(last) = current {
                        self.events.push(Event::Deleted(deleted.clone().after(last)));
                    }
                    None
                }
                Delta::Released(_) => {
                    // I4: as above.
                    self.events.extend(current.map(Event::Released));
                    None
                }
            };
        }
        match (stored, current) {
            (Some(stored), Some(current)) if stored.ptr_eq(&current) => {}
            (_, Some(current)) => self.changes.push(Change::Put(current)),
            (Some(stored), None) => self.changes.push(Change::Remove(stored.key().clone())),
            (None, None) => {}
        }
    }

    /// One object takes the place of what there was; returns what is there now.
    fn put(&mut self, current: Option<Cached<K>>, object: &Cached<K>, is_in_initial_list: bool) -> Cached<K> {
        let Some(old) = current else {
            self.events.push(Event::Added { object: object.clone(), is_in_initial_list });
            return object.clone();
        };
        if old.ptr_eq(object) || old.same_version(object) {
            self.events.push(Event::Resynced(old.clone()));
            return old;
        }
        if old.uid() != object.uid() && !old.uid().is_missing() && !object.uid().is_missing() {
            // The same name, but another object: the end of the first was missed.
            self.events.push(Event::Deleted(Deleted::missed(old.key().clone(), None).after(old)));
            self.events.push(Event::Added { object: object.clone(), is_in_initial_list: false });
        } else {
            self.events.push(Event::Updated { old, new: object.clone() });
        }
        object.clone()
    }
}
