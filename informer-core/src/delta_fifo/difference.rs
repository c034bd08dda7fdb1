//! What a list or a resync has to queue, worked out while the queue is not locked.
//!
//! Both look at every object that is queued, being processed or known. That is done in slices, so that the queue's lock is
//! held no longer than a slice takes. An object only moves on meanwhile: from the queue to a batch that is being
//! processed, and from there to the store. So they are looked at in this order, and none is overlooked. A listed object of the
//! version that is there already is not queued: a list costs its reader what has changed, and not what there is. client-go:
//! `Replace` and `Resync` of `tools/cache/delta_fifo.go`, which queue everything under one lock.

use foldhash::HashMap;

use super::Shared;
use super::list::{Listed, Scope, is_same};
use super::state::{SLICE, State};
use crate::{Cached, Completion, Deleted, Delta, ObjectKey};

/// The newest change to each key that is queued or being processed.
struct UnderWay<K> {
    /// In the order in which they came in.
    newest: Vec<Delta<K>>,
    /// Positions in `newest`.
    by_key: HashMap<ObjectKey, usize>,
}

impl<K> UnderWay<K> {
    fn new() -> Self {
        Self { newest: Vec::new(), by_key: HashMap::default() }
    }

    /// Adds a change that is newer than those of its key before.
    fn add(&mut self, delta: Delta<K>) {
        // A resync is queued only if nothing else is: then the known object is the newest.
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

/// Keeps everything in the queue until it is dropped, without holding a lock.
struct Hold<'a, K: 'static>(&'a Shared<K>);

impl<'a, K: 'static> Hold<'a, K> {
    fn new(shared: &'a Shared<K>) -> Self {
        shared.change(State::hold);
        Self(shared)
    }
}

impl<K: 'static> Drop for Hold<'_, K> {
    fn drop(&mut self) {
        self.0.change(State::release_hold);
        let (closed, is_over) = {
            let state = self.0.state.lock();
            (state.closed, state.is_over())
        };
        // I12: consumers wait for this instead of the lock.
        if closed {
            self.0.wake.notify_waiters();
        }
        if is_over {
            self.0.give_up();
        }
    }
}

impl<K: 'static> Shared<K> {
    /// Queues of a complete list what is news, then a deletion for all that is known or under way but not in it.
    pub(super) fn replace(&self, listed: &Listed<K>) {
        let first = self.state.lock().first_list(listed.scope());
        let tombstone = |key: &ObjectKey, last| Delta::Deleted(Deleted::missed(key.clone(), last));
        let changes = self.difference(listed, tombstone);
        self.queue(changes, |state| state.begin_list(listed), |state| state.end_list(listed, first));
    }

    /// Queues what there is of a namespace as released. Returns the promises that are to be kept at once, because there is
    /// nothing.
    pub(super) fn release(&self, scope: &Scope) -> Vec<Completion> {
        let nothing = Listed::nothing(scope.clone());
        let changes = self.difference(&nothing, |key, last| {
            // Whatever is known or under way comes with an object.
            let missed = |last| Delta::Deleted(Deleted::missed(key.clone(), last));
            last.map_or_else(|| missed(None), Delta::Released)
        });
        let mut kept = None;
        let release = |state: &mut State<K>| {
            let is_followed = state.feeds.is_followed(scope.id);
            if is_followed {
                kept = state.feeds.release(scope.id);
                state.await_feeds();
            }
            is_followed && kept.is_none()
        };
        self.queue(changes, release, |_| {});
        kept.unwrap_or_default()
    }

    /// Queues every known object once more, unless there is news of it anyway.
    pub(super) fn resync(&self) {
        let Some(known) = self.known.as_deref() else { return };
        if self.state.lock().is_first_list_arriving() {
            return;
        }
        let under_way = self.under_way();
        let mut quiet = Vec::new();
        let held = known.for_each_known(&mut |object| {
            if under_way.get(object.key()).is_none() {
                quiet.push(object.clone());
            }
        });
        drop((held, under_way));
        self.make_room(quiet.len());
        for slice in quiet.chunks(SLICE) {
            self.change_indexed(|state| {
                if !state.is_first_list_arriving() {
                    state.resync(slice, known);
                }
            });
        }
    }

    /// Makes a change for which keys are looked up among the batches that are being processed.
    pub(super) fn change_indexed(&self, change: impl FnOnce(&mut State<K>)) {
        let mut change = Some(change);
        while change.is_some() {
            for batch in self.state.lock().without_index() {
                batch.make_index();
            }
            self.change(|state| {
                // Another large batch may have been taken out meanwhile.
                if state.without_index().is_empty()
                    && let Some(change) = change.take()
                {
                    change(state);
                }
            });
        }
    }

    fn under_way(&self) -> UnderWay<K> {
        let (mut queued, mut in_flight, mut ticket) = (Vec::new(), Vec::new(), 0);
        loop {
            // The copies are small, and made of room that is there already.
            queued.reserve(SLICE);
            if self.state.lock().collect(&mut ticket, &mut queued, &mut in_flight) {
                break;
            }
        }
        in_flight.sort_by_key(|batch| batch.id);
        let mut under_way = UnderWay::new();
        for batch in &in_flight {
            batch.items.iter().for_each(|pending| under_way.add(pending.last().clone()));
        }
        queued.into_iter().for_each(|delta| under_way.add(delta));
        under_way
    }

    /// Returns what is news in a list, then the end of all that it should have and doesn't.
    fn difference(
        &self,
        listed: &Listed<K>,
        end: impl Fn(&ObjectKey, Option<Cached<K>>) -> Delta<K>,
    ) -> Vec<Delta<K>> {
        let under_way = self.under_way();
        let mut missing: Vec<Delta<K>> = Vec::new();
        let mut unchanged = vec![false; listed.objects().len()];
        if let Some(known) = &self.known {
            let mut compare = |object: &Cached<K>| {
                let key = object.key();
                if under_way.get(key).is_some() {
                    return;
                }
                match listed.position(key) {
                    Some(position) => unchanged[position] = is_same(object, &listed.objects()[position]),
                    None if listed.lacks(key) => missing.push(end(key, Some(object.clone()))),
                    None => {}
                }
            };
            let held = match listed.scope() {
                Some(scope) => known.for_each_known_in(&scope.namespace, &mut compare),
                None => known.for_each_known(&mut compare),
            };
            drop(held);
        }
        let lacked = under_way.newest.iter().filter(|last| !last.is_end() && listed.lacks(last.key()));
        missing.extend(lacked.map(|last| end(last.key(), last.object().cloned())));
        let mut changes = Vec::with_capacity(missing.len());
        for (position, object) in listed.objects().iter().enumerate() {
            let counts = listed.position(object.key()) == Some(position);
            let newest = under_way.get(object.key()).filter(|last| !last.is_end()).and_then(Delta::object);
            if counts && !unchanged[position] && !newest.is_some_and(|newest| is_same(newest, object)) {
                changes.push(Delta::Replaced(object.clone()));
            }
        }
        changes.extend(missing);
        changes
    }

    /// Queues changes in slices; the consumer takes them out in one step. `begin` returns whether they are wanted.
    fn queue(
        &self,
        changes: Vec<Delta<K>>,
        begin: impl FnOnce(&mut State<K>) -> bool,
        end: impl FnOnce(&mut State<K>),
    ) {
        let hold = (changes.len() > SLICE).then(|| Hold::new(self));
        self.make_room(changes.len());
        let mut changes = changes.into_iter();
        let mut is_wanted = false;
        let mut slice = |state: &mut State<K>| {
            changes.by_ref().take(SLICE).for_each(|delta| state.enqueue(delta));
            changes.len() == 0
        };
        let (mut is_all, mut end) = (false, Some(end));
        let mut finish = |state: &mut State<K>, is_all: bool| {
            if is_all && let Some(end) = end.take() {
                end(state);
            }
        };
        self.change(|state| {
            is_wanted = begin(state);
            if is_wanted {
                is_all = slice(state);
                finish(state, is_all);
            }
        });
        while is_wanted && !is_all {
            self.change(|state| {
                is_all = slice(state);
                finish(state, is_all);
            });
        }
        drop(hold);
    }
}
