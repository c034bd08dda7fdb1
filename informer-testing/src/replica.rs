//! [`Replica`]: a handler that rebuilds the informer's objects from its events, and detects invalid
//! events.
//!
//! A comparison of a replica with the server's list shows lost events.
//! [`violations`](Replica::violations) shows repeated and reordered events.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use informer_core::{Cached, Deleted, EventHandler, ObjectKey};
use parking_lot::Mutex;
use tokio::sync::watch;

/// A handler that rebuilds the informer's objects from the events that it receives, and records
/// [invalid](Self::violations) events. Clones share the objects and the records: give one clone to
/// the informer, and query another.
///
/// ```
/// use informer_core::{HandlerOptions, SharedProcessor};
/// use informer_testing::Replica;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let processor = SharedProcessor::<Pod>::new(None);
/// let replica = Replica::new();
/// let registration = processor.add_handler(replica.clone(), &HandlerOptions::default(), std::iter::empty);
/// assert!(replica.objects().is_empty() && replica.violations().is_empty());
/// # drop(registration);
/// ```
pub struct Replica<K> {
    state: Arc<State<K>>,
}

struct State<K> {
    copy: Mutex<Contents<K>>,
    /// The number of received calls. An increase wakes the tasks in [`Replica::wait_until`].
    calls: watch::Sender<u64>,
}

struct Contents<K> {
    objects: BTreeMap<ObjectKey, Cached<K>>,
    violations: Vec<String>,
}

impl<K> Replica<K> {
    /// Returns a handler whose copy of the informer's objects is empty.
    #[must_use]
    pub fn new() -> Self {
        let copy = Mutex::new(Contents { objects: BTreeMap::new(), violations: Vec::new() });
        Self { state: Arc::new(State { copy, calls: watch::Sender::new(0) }) }
    }

    /// Returns the objects that exist according to the received events.
    #[must_use]
    pub fn objects(&self) -> BTreeMap<ObjectKey, Cached<K>> {
        self.state.copy.lock().objects.clone()
    }

    /// Returns the keys and resource versions of [`objects`](Self::objects), for comparison with a
    /// list.
    #[must_use]
    pub fn versions(&self) -> BTreeMap<String, String> {
        let copy = self.state.copy.lock();
        copy.objects
            .values()
            .map(|object| (object.key().to_string(), object.resource_version().to_string()))
            .collect()
    }

    /// Returns a description of each invalid call of this handler. These calls are invalid:
    ///
    /// - `on_add` for an object that this replica already has
    /// - `on_update`, `on_delete` or `on_release` for an object that this replica does not have
    /// - `on_update` to an older resource version
    /// - `on_update` or `on_release` whose old or released object has a different resource version
    ///   than the object in this replica
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.state.copy.lock().violations.clone()
    }

    /// Returns the number of calls that this handler has received.
    #[must_use]
    pub fn calls(&self) -> u64 {
        *self.state.calls.borrow()
    }

    /// Waits until `condition` is true for the objects. The condition is checked at once, and then
    /// after calls of the handler.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    pub async fn wait_until(&self, condition: impl Fn(&BTreeMap<ObjectKey, Cached<K>>) -> bool) {
        let mut calls = self.state.calls.subscribe();
        // The condition gets a copy of the objects, so that it can call this replica while no lock
        // is held.
        while !condition(&self.objects()) {
            // This replica owns the sender, so `changed` cannot fail.
            _ = calls.changed().await;
        }
    }

    fn note(&self, change: impl FnOnce(&mut Contents<K>)) {
        change(&mut self.state.copy.lock());
        self.state.calls.send_modify(|calls| *calls += 1);
    }
}

impl<K> Contents<K> {
    fn violation(&mut self, call: &str, key: &ObjectKey, what: &str) {
        self.violations.push(format!("{call} of {key}: {what}"));
    }
}

impl<K: Send + Sync + 'static> EventHandler<K> for Replica<K> {
    fn on_add(&self, object: &Cached<K>, _is_in_initial_list: bool) {
        self.note(|copy| {
            if copy.objects.insert(object.key().clone(), object.clone()).is_some() {
                copy.violation("add", object.key(), "the object already existed");
            }
        });
    }

    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        self.note(|copy| {
            match copy.objects.insert(new.key().clone(), new.clone()) {
                None => copy.violation("update", new.key(), "the object did not exist"),
                Some(before) if before.resource_version() != old.resource_version() => {
                    copy.violation("update", new.key(), "the old object is not the object of the last event");
                }
                Some(_) => {}
            }
            if old.resource_version().is_newer_than(new.resource_version()) {
                copy.violation("update", new.key(), "the new version is older than the old version");
            }
        });
    }

    fn on_delete(&self, object: &Deleted<K>) {
        self.note(|copy| {
            if copy.objects.remove(object.key()).is_none() {
                copy.violation("delete", object.key(), "the object did not exist");
            }
        });
    }

    fn on_release(&self, object: &Cached<K>) {
        self.note(|copy| match copy.objects.remove(object.key()) {
            None => copy.violation("release", object.key(), "the object did not exist"),
            Some(before) if before.resource_version() != object.resource_version() => {
                copy.violation("release", object.key(), "the object is not the object of the last event");
            }
            Some(_) => {}
        });
    }

    fn needs_old_states(&self) -> bool {
        true
    }
}

impl<K> Clone for Replica<K> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<K> Default for Replica<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for Replica<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copy = self.state.copy.lock();
        f.debug_struct("Replica")
            .field("objects", &copy.objects.len())
            .field("violations", &copy.violations)
            .finish_non_exhaustive()
    }
}
