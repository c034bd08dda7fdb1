//! [`Pipeline`]: turns a batch of the queue into one transaction of the store and one batch of
//! events.
//!
//! client-go: `processDeltas` and `processDeltasInBatch` of tools/cache/controller.go.

use std::sync::Arc;

use informer_core::{
    AnyObject, Batch, Cached, Deleted, Delta, Event, EventBatch, Pending, ResourceVersion, SharedProcessor,
};
use informer_store::{Change, Indexer, StoreWriter};
use tokio::sync::watch;
use tracing::field::Empty;
use tracing::trace_span;

use super::failure_log::FailureLog;
use super::progress::Progress;
use crate::source::Source;

pub(super) struct Pipeline {
    pub(super) index_failures: FailureLog,
    pub(super) writer: StoreWriter<AnyObject>,
    pub(super) indexer: Indexer<AnyObject>,
    pub(super) processor: SharedProcessor<AnyObject>,
    pub(super) source: Arc<Source<AnyObject>>,
    /// Sends the store's watermark: the resource version that the store has reached. Each send
    /// wakes the callers that wait until the store reaches a certain version.
    pub(super) watermark: watch::Sender<ResourceVersion>,
    pub(super) progress: Arc<Progress>,
}

struct Outcome {
    changes: Vec<Change<AnyObject>>,
    events: Vec<Event<AnyObject>>,
}

impl Pipeline {
    pub(super) fn process(&mut self, batch: &Batch<AnyObject>) {
        let count = batch.items().len();
        // This function is not async, so it can enter the span. A disabled span costs one atomic
        // load, and its fields are not evaluated.
        let span = trace_span!(
            "batch",
            resource = self.source.status().description(),
            resource_version = batch.watermark().map(tracing::field::display),
            items = count,
            events = Empty,
        )
        .entered();
        let mut outcome = Outcome { changes: Vec::with_capacity(count), events: Vec::with_capacity(count) };
        // All lookups come before the first change. They use one snapshot, so the store is locked
        // only once. They return references, so no atomic reference count changes between two
        // lookups, and the CPU can load several objects in parallel.
        let state = self.indexer.snapshot();
        let stored: Vec<_> = batch.items().iter().map(|pending| state.stored(&pending.key)).collect();
        for (pending, stored) in batch.items().iter().zip(stored) {
            outcome.add(pending, stored);
        }
        // The snapshot is dropped before the write: otherwise, the writer would have to copy the
        // data that it shares with the snapshot.
        drop(state);
        let Outcome { changes, events } = outcome;
        span.record("events", events.len());
        let events = EventBatch { events, completes_initial_list: batch.completes_initial_list() };
        let mut transaction = self.writer.prepare(changes, batch.watermark(), batch.namespaces());
        // I3: the store changes before any handler can receive the events.
        let published = self.processor.publish(events, || transaction.commit());
        // I8: old objects are dropped, and then handlers are woken, after the store's write lock is
        // released.
        let failures = transaction.finish();
        drop(published);
        self.index_failures.report(&failures);
        self.progress.record(count, batch.watermark().is_some());
        if let Some(resource_version) = batch.watermark() {
            // I9: the store has changed before waiting callers are woken.
            self.watermark.send_replace(resource_version.clone());
        } else if matches!(*self.source, Source::Namespaces(_)) {
            // With several namespaces, waiting callers compare the watermarks of all watched
            // namespaces. The removal of a namespace can end such a wait, so waiting callers are
            // woken even without a new watermark.
            self.watermark.send_modify(|_| {});
        }
        if let Source::Namespaces(namespaces) = self.source.as_ref() {
            namespaces.set_watermarks(batch.namespaces());
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // I12: waits for the watermark of the whole store end because `watermark` is dropped.
        if let Source::Namespaces(namespaces) = self.source.as_ref() {
            namespaces.end_watermarks();
        }
    }
}

impl Outcome {
    /// Adds the events and the change of the store that result from the deltas of one key. `stored`
    /// is the object that the store has under this key.
    fn add(&mut self, pending: &Pending<AnyObject>, stored: Option<&Cached<AnyObject>>) {
        let mut current = stored.cloned();
        for delta in &pending.deltas {
            current = match delta {
                Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => {
                    Some(self.put(current, object, pending.is_in_initial_list()))
                }
                Delta::Sync(_) => {
                    self.events.extend(current.clone().map(Event::Resynced));
                    current
                }
                Delta::Deleted(deleted) => {
                    // I4: handlers receive a delete only after an add.
                    if let Some(last) = current {
                        self.events.push(Event::Deleted(deleted.clone().after(last)));
                    }
                    None
                }
                Delta::Released(_) => {
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

    /// Adds the events for the received `object`, and returns the object that the store keeps.
    ///
    /// `current` is the object before this change. If both are the same version, this function adds
    /// a resync and returns `current`. In all other cases, it returns `object`.
    fn put(
        &mut self,
        current: Option<Cached<AnyObject>>,
        object: &Cached<AnyObject>,
        is_in_initial_list: bool,
    ) -> Cached<AnyObject> {
        let Some(old) = current else {
            self.events.push(Event::Added { object: object.clone(), is_in_initial_list });
            return object.clone();
        };
        if old.ptr_eq(object) || old.same_version(object) {
            self.events.push(Event::Resynced(old.clone()));
            return old;
        }
        if old.uid() != object.uid() && !old.uid().is_missing() && !object.uid().is_missing() {
            // The new object has the same name and another UID, so the delete of the old object was
            // missed.
            self.events.push(Event::Deleted(Deleted::missed(old.key().clone(), None).after(old)));
            self.events.push(Event::Added { object: object.clone(), is_in_initial_list: false });
        } else {
            self.events.push(Event::Updated { old, new: object.clone() });
        }
        object.clone()
    }
}
