//! Computes the changes of a list or a resync, mostly while the queue is not locked. client-go:
//! `Replace` and `Resync` of `tools/cache/delta_fifo.go`, which queue everything under one lock.
//!
//! Objects are read in slices, so that the lock is held for one slice at a time. Meanwhile, objects
//! move from the queue to the batch in flight, and from there to the store. These three places are
//! read in the same order, so no object is missed. A requeued object moves back to the end of the
//! queue, where a later slice finds it.

use std::cell::Cell;

use foldhash::HashMap;

use super::Shared;
use super::list::{FirstList, Listed, Scope, is_same};
use super::state::{SLICE, State};
use crate::{Cached, Completion, Deleted, Delta, ObjectKey};

/// The newest unprocessed change of each key: a change in the batch in flight, or a queued change.
/// Resyncs are left out.
struct Unprocessed<K> {
    /// One change per key. Keys in flight come first, followed by keys that are only queued.
    newest: Vec<Delta<K>>,
    /// The position of each key in `newest`.
    by_key: HashMap<ObjectKey, usize>,
}

impl<K> Unprocessed<K> {
    /// Records `delta` as the newest change of its key. Call this for the changes of a key in their
    /// order, oldest first.
    fn add(&mut self, delta: Delta<K>) {
        // A resync is queued only for a key without other changes, so the object in the consumer's
        // store is the newest state.
        if matches!(delta, Delta::Sync(_)) {
            return;
        }
        if let Some(&position) = self.by_key.get(delta.key()) {
            self.newest[position] = delta;
        } else {
            self.by_key.insert(delta.key().clone(), self.newest.len());
            self.newest.push(delta);
        }
    }

    fn get(&self, key: &ObjectKey) -> Option<&Delta<K>> {
        self.by_key.get(key).map(|&position| &self.newest[position])
    }
}

/// A guard that prevents the consumer from taking batches while the guard exists. It holds no lock.
struct TakeBlock<'a, K: 'static>(&'a Shared<K>);

impl<'a, K: 'static> TakeBlock<'a, K> {
    fn new(shared: &'a Shared<K>) -> Self {
        shared.change(State::block_takes);
        Self(shared)
    }
}

impl<K: 'static> Drop for TakeBlock<'_, K> {
    fn drop(&mut self) {
        let (closed, is_finished) = self.0.change(|state| {
            state.unblock_takes();
            (state.closed, state.is_finished())
        });
        // I12: while batches cannot be taken, `pop` waits even if the queue is closed. So wake each
        // waiting `pop`: it must return `None` if the queue is also empty.
        if closed {
            self.0.wake.notify_waiters();
        }
        if is_finished {
            self.0.cancel_completions();
        }
    }
}

impl<K: 'static> Shared<K> {
    /// Queues the new and changed objects of a whole list, then a deletion for each object that the
    /// list lacks.
    pub(super) fn replace(&self, listed: &Listed<K>) {
        let tombstone = |last: Cached<K>| Delta::Deleted(Deleted::missed(last.key().clone(), Some(last)));
        let changes = self.difference(listed, tombstone);
        let first = Cell::new(FirstList::Over);
        let begin = |state: &mut State<K>| {
            // I6: decided after the comparison, because the queue's initial list can end meanwhile.
            first.set(state.first_list(listed.scope()));
            state.begin_list(listed)
        };
        self.queue(changes, begin, |state| state.end_list(listed, first.get()));
    }

    /// Queues a [`Delta::Released`] for each object of a namespace that is no longer watched.
    ///
    /// If the feed of the namespace has received neither a list nor a change, queues nothing, and
    /// returns the feed's [`released`](super::feeds::FeedCompletions::released) completions, which
    /// the caller must set now. Returns an empty list if the consumer must first remove objects of
    /// the namespace, if the namespace has an earlier feed, or if the feed was released before.
    pub(super) fn release(&self, scope: &Scope) -> Vec<Completion> {
        let nothing = Listed::empty(scope.clone());
        let changes = self.difference(&nothing, Delta::Released);
        let mut completed = None;
        let release = |state: &mut State<K>| {
            let is_watched = state.feeds.is_watched(scope.id);
            if is_watched {
                completed = state.feeds.release(scope.id);
                state.check_initial_list();
            }
            is_watched && completed.is_none()
        };
        self.queue(changes, release, |_| {});
        completed.unwrap_or_default()
    }

    /// Queues a [`Delta::Sync`] for each stored object that has no unprocessed change. Skips
    /// namespaces whose initial list is still arriving.
    pub(super) fn resync(&self) {
        let Some(known) = self.known.as_deref() else { return };
        if self.state.lock().is_first_list_arriving() {
            return;
        }
        let unprocessed = self.unprocessed();
        let mut quiet = Vec::new();
        let held = known.for_each_known(&mut |object| {
            if unprocessed.get(object.key()).is_none() {
                quiet.push(object.clone());
            }
        });
        drop((held, unprocessed));
        self.make_room(quiet.len());
        for slice in quiet.chunks(SLICE) {
            self.index_in_flight_then_change(|state| {
                if !state.is_first_list_arriving() {
                    state.resync(slice, known);
                }
            });
        }
    }

    /// Locks the queue and calls `change` with its state.
    ///
    /// `change` looks up keys in the batch in flight, with an index that maps each key to its item.
    /// If the batch has more than [`SLICE`] items, the index is built before the queue is locked.
    pub(super) fn index_in_flight_then_change(&self, change: impl FnOnce(&mut State<K>)) {
        let mut change = Some(change);
        while change.is_some() {
            let batch = self.state.lock().large_batch_without_index();
            if let Some(batch) = &batch {
                batch.index();
            }
            self.change(|state| {
                // If another large batch has been taken meanwhile, the loop builds its index, too.
                if state.large_batch_without_index().is_none()
                    && let Some(change) = change.take()
                {
                    change(state);
                }
            });
        }
    }

    fn unprocessed(&self) -> Unprocessed<K> {
        let (mut queued, mut in_flight, mut ticket) = (Vec::new(), Vec::new(), 0);
        loop {
            // Reserves memory before the lock is taken, so that only handles are copied under it.
            queued.reserve(SLICE);
            if self.state.lock().collect(&mut ticket, &mut queued, &mut in_flight) {
                break;
            }
        }
        let mut unprocessed = Unprocessed { newest: Vec::new(), by_key: HashMap::default() };
        for batch in &in_flight {
            batch.items.iter().for_each(|pending| unprocessed.add(pending.last().clone()));
        }
        queued.into_iter().for_each(|delta| unprocessed.add(delta));
        unprocessed
    }

    /// Returns a [`Delta::Replaced`] for each new or changed object of the list, then a `removal`
    /// for each object that the list lacks.
    fn difference(&self, listed: &Listed<K>, removal: impl Fn(Cached<K>) -> Delta<K>) -> Vec<Delta<K>> {
        let unprocessed = self.unprocessed();
        let mut missing: Vec<Delta<K>> = Vec::new();
        let mut unchanged = vec![false; listed.objects().len()];
        if let Some(known) = &self.known {
            let mut compare = |object: &Cached<K>| {
                let key = object.key();
                if unprocessed.get(key).is_some() {
                    return;
                }
                match listed.position(key) {
                    Some(position) => unchanged[position] = is_same(object, &listed.objects()[position]),
                    None if listed.lacks(key) => missing.push(removal(object.clone())),
                    None => {}
                }
            };
            let held = match listed.scope() {
                Some(scope) => known.for_each_known_in(&scope.namespace, &mut compare),
                None => known.for_each_known(&mut compare),
            };
            drop(held);
        }
        let lacked = unprocessed.newest.iter().filter(|last| !last.is_end() && listed.lacks(last.key()));
        // Each of these changes has an object, because resyncs are left out.
        missing.extend(lacked.filter_map(Delta::object).cloned().map(removal));
        let mut changes = Vec::with_capacity(missing.len());
        for (position, object) in listed.objects().iter().enumerate() {
            let counts = listed.position(object.key()) == Some(position);
            let newest = unprocessed.get(object.key()).filter(|last| !last.is_end()).and_then(Delta::object);
            if counts && !unchanged[position] && !newest.is_some_and(|newest| is_same(newest, object)) {
                changes.push(Delta::Replaced(object.clone()));
            }
        }
        changes.extend(missing);
        changes
    }

    /// Queues changes in slices, which the consumer can take only when all are queued.
    ///
    /// Calls `begin` before the first change, and `end` after the last one. If `begin` returns
    /// `false`, does nothing else.
    fn queue(
        &self,
        changes: Vec<Delta<K>>,
        begin: impl FnOnce(&mut State<K>) -> bool,
        end: impl FnOnce(&mut State<K>),
    ) {
        let block = (changes.len() > SLICE).then(|| TakeBlock::new(self));
        self.make_room(changes.len());
        let mut changes = changes.into_iter();
        let (mut begin, mut end) = (Some(begin), Some(end));
        let mut is_wanted = true;
        while is_wanted && end.is_some() {
            self.change(|state| {
                is_wanted = begin.take().is_none_or(|begin| begin(state));
                if is_wanted {
                    changes.by_ref().take(SLICE).for_each(|delta| state.enqueue(delta));
                    let is_all = changes.len() == 0;
                    if is_all && let Some(end) = end.take() {
                        end(state);
                    }
                }
            });
        }
        drop(block);
    }
}
