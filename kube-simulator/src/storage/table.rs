//! [`Table`]: the objects of one resource, their history, and the listeners for changes.
//!
//! Several methods serve watches. Their parameter `known` is the revision that the source of the
//! watch has reached: the watch cache of an API server, or etcd. The watch receives no later
//! events. The watch cache of a lagging server has an older revision than the storage.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::error::ReadError;
use super::history::{Event, History, Reader, ReaderError};
use super::notifier::{Listener, Notifier};
use super::object::Object;
use super::past::{self, At, Page, PageRequest};
use super::revision::Revision;
use super::slow_watch_limit::SlowWatchLimit;
use super::transaction::Transaction;
use super::window::Retention;
use crate::kinds::ResourceKind;

/// The storage of one resource.
pub(crate) struct Table {
    pub(crate) kind: ResourceKind,
    revision: Revision,
    state: RwLock<State>,
    /// Notifies watch streams after each write.
    changed: Notifier,
}

/// The state that a table's lock protects. Each write changes the objects and the history together.
pub(crate) struct State {
    /// The objects by storage key: `namespace/name`, or the name of a cluster-scoped object.
    pub(crate) objects: BTreeMap<String, Arc<Object>>,
    pub(crate) history: History,
    /// The keys of the dependants of each owner, by the UID of the owner. Dependants are the
    /// objects that name the owner in `ownerReferences`.
    pub(crate) dependants: BTreeMap<Box<str>, BTreeSet<String>>,
}

impl Table {
    pub(crate) fn new(kind: ResourceKind, retention: Retention, revision: Revision) -> Self {
        let history = History::new(retention, revision.current());
        let state = RwLock::new(State { objects: BTreeMap::new(), history, dependants: BTreeMap::new() });
        Self { kind, revision, state, changed: Notifier::default() }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<Object>> {
        self.state.read().objects.get(key).cloned()
    }

    /// Returns the object with this key. A caller that has locked another table must use this
    /// method instead of [`get`](Self::get), to prevent the deadlock that [`lock`](Self::lock)
    /// describes.
    pub(crate) fn get_nested(&self, key: &str) -> Option<Arc<Object>> {
        self.lock().objects.get(key).cloned()
    }

    /// Locks the table for reading. Does not wait for threads that wait for the write lock.
    ///
    /// A caller that has locked another table must use this method. An ordinary read lock would
    /// wait for such a writer. The writer can wait for a backup. If the backup also waited for the
    /// table that the caller has locked, this would be a deadlock.
    pub(super) fn lock(&self) -> RwLockReadGuard<'_, State> {
        self.state.read_recursive()
    }

    /// Locks the table for writing. After the release of the lock, the caller must call
    /// [`notify`](Self::notify). A caller that locks several tables must lock them in the order of
    /// `Catalogue::tables`.
    pub(super) fn lock_for_writing(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// Returns the dependants of the owner with this UID, in key order.
    pub(crate) fn dependants_of(&self, uid: &str) -> Vec<Arc<Object>> {
        let state = self.state.read();
        let keys = state.dependants.get(uid).into_iter().flatten();
        keys.filter_map(|key| state.objects.get(key).cloned()).collect()
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<Object>> {
        let prefix = format!("{namespace}/");
        let state = self.state.read();
        let found = state.objects.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
        found.map(|(_, object)| object.clone()).collect()
    }

    /// Returns whether the namespace contains an object.
    pub(crate) fn is_in_use(&self, namespace: &str) -> bool {
        let prefix = format!("{namespace}/");
        let state = self.state.read();
        let next = state.objects.range(prefix.clone()..).next();
        next.is_some_and(|(key, _)| key.starts_with(&prefix))
    }

    /// Returns the object in the table's state `at`. Returns `None` if the object did not exist in
    /// this state.
    pub(crate) fn get_at(&self, key: &str, at: At) -> Result<Option<Arc<Object>>, ReadError> {
        let state = self.state.read();
        past::object(&state, key, at, &self.revision)
    }

    pub(crate) fn len(&self) -> usize {
        self.state.read().objects.len()
    }

    /// Returns all objects in key order.
    pub(crate) fn objects(&self) -> Vec<Arc<Object>> {
        self.state.read().objects.values().cloned().collect()
    }

    pub(crate) fn page(&self, request: &PageRequest<'_>) -> Result<Page, ReadError> {
        let state = self.state.read();
        past::page(&state, request, &self.revision)
    }

    /// Runs `change` under the write lock. Notifies watches after the lock is released.
    pub(crate) fn write<R>(&self, change: impl FnOnce(&mut Transaction<'_>) -> R) -> R {
        let outcome = {
            let mut state = self.state.write();
            change(&mut Transaction::new(&self.kind, &self.revision, &mut state))
        };
        self.notify();
        outcome
    }

    /// Makes the history before the current revision unavailable to new watches, and to lists at an
    /// exact version. For exceptions, see [`History::compact`]. Open watches continue.
    pub(crate) fn compact(&self) {
        let mut state = self.state.write();
        let revision = self.revision.current();
        state.history.compact(revision);
    }

    /// Makes the history up to the current revision unavailable to new watches, like a refill of
    /// the watch cache. For an exception, see [`History::refill`]. Open watches and lists are not
    /// affected.
    pub(crate) fn refill_watch_cache(&self) {
        let mut state = self.state.write();
        let revision = self.revision.current();
        state.history.refill(revision);
    }

    /// Clears the history, so that open watches end.
    pub(crate) fn clear_history(&self) {
        {
            let mut state = self.state.write();
            let revision = self.revision.current();
            state.history.reset(revision);
        }
        self.notify();
    }

    /// Notifies watches after a change.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    pub(crate) fn changes(&self) -> Listener {
        self.changed.listen()
    }

    /// Returns the lowest resource version from which a watch can start, and a reader. The reader
    /// returns the events after `resource_version`.
    ///
    /// If `resource_version` is lower than the returned version, the reader can lack events, and
    /// the caller must reject the watch.
    pub(crate) fn start_after(
        &self,
        resource_version: u64,
        known: &Revision,
        slow_watch_limit: SlowWatchLimit,
    ) -> (u64, Reader) {
        let state = self.state.read();
        let floor = if self.kind.is_cached() {
            state.history.oldest_watch_start(known.current())
        } else {
            state.history.oldest_stored_watch_start(self.revision.compacted())
        };
        (floor, state.history.reader_after(resource_version, slow_watch_limit))
    }

    /// Returns how many unsent events fit into one channel of a watch on a real server. The result
    /// is at most `max`, which must be at least 10.
    pub(crate) fn channel_size(&self, max: usize) -> u64 {
        self.state.read().history.window.channel_size(max)
    }

    /// Returns all objects at one revision, the revision itself, and a reader of the later events.
    /// The revision is `known`, or later if the history begins later.
    pub(crate) fn snapshot_and_reader(
        &self,
        known: &Revision,
        slow_watch_limit: SlowWatchLimit,
    ) -> Result<(Vec<Arc<Object>>, u64, Reader), ReadError> {
        let state = self.state.read();
        let (objects, version) = past::everything(&state, known.cached_state(), &self.revision)?;
        Ok((objects, version, state.history.reader_after(version, slow_watch_limit)))
    }

    /// Returns all unread events of a watch up to the revision `known`, and `known` as a number.
    ///
    /// For `is_selected`, see [`History::read`].
    pub(crate) fn read(
        &self,
        reader: &Reader,
        known: &Revision,
        is_selected: impl Fn(&Event) -> bool,
    ) -> Result<(Vec<Arc<Event>>, u64), ReaderError> {
        let state = self.state.read();
        let up_to = known.current();
        Ok((state.history.read(reader, up_to, is_selected)?, up_to))
    }

    /// Returns whether the event buffer of a watch would be full on a real server.
    ///
    /// For the parameters, see [`History::is_full`]. Its parameter `up_to` is the revision `known`.
    pub(crate) fn is_full(
        &self,
        reader: &Reader,
        known: &Revision,
        unsent: usize,
        is_waiting: impl Fn(&Event) -> bool,
    ) -> bool {
        self.state.read().history.is_full(reader, known.current(), unsent, is_waiting)
    }
}

impl State {
    /// Replaces the objects, and clears the history, so that open watches end. `revision` is the
    /// new revision of the storage.
    pub(super) fn restore(&mut self, objects: BTreeMap<String, Arc<Object>>, revision: u64) {
        self.history.reset(revision);
        self.dependants.clear();
        for object in objects.values() {
            self.update_dependants(None, Some(object));
        }
        self.objects = objects;
    }

    /// Updates [`dependants`](Self::dependants) after a write that replaced the object `before`
    /// with `after`. A creation has no `before`, and a deletion has no `after`.
    pub(super) fn update_dependants(&mut self, before: Option<&Object>, after: Option<&Object>) {
        for (object, owner) in owners(before) {
            if let Some(keys) = self.dependants.get_mut(owner) {
                keys.remove(&object.key);
                if keys.is_empty() {
                    self.dependants.remove(owner);
                }
            }
        }
        for (object, owner) in owners(after) {
            self.dependants.entry(owner.clone()).or_default().insert(object.key.clone());
        }
    }
}

fn owners(object: Option<&Object>) -> impl Iterator<Item = (&Object, &Box<str>)> {
    object.into_iter().flat_map(|object| object.owners.iter().map(move |(owner, _)| (object, owner)))
}

/// Omits the objects, because there can be many.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("kind", &self.kind).finish_non_exhaustive()
    }
}
