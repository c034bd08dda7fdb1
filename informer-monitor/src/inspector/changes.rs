//! [`Changes`]: the last changes of an informer's objects. A change refers to the old and the new
//! state of an object, and copies neither.

use std::collections::VecDeque;

use informer_core::{AnyObject, Cached, Deleted, EventHandler, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum number of changes that the inspector keeps for one informer. Each change except an
/// addition keeps the old state of an object in memory.
const MAX_CHANGES: usize = 200;

#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) at: Instant,
    /// `added`, `updated`, `deleted`, or `released` if the object's namespace is no longer watched.
    pub(super) kind: &'static str,
    pub(super) key: ObjectKey,
    pub(super) old: Option<Cached<AnyObject>>,
    pub(super) new: Option<Cached<AnyObject>>,
}

/// An event handler that keeps the last changes of an informer's objects, oldest first.
#[derive(Debug, Default)]
pub(super) struct Changes {
    changes: Mutex<VecDeque<Change>>,
}

impl Changes {
    fn record<K: 'static>(&self, kind: &'static str, old: Option<&Cached<K>>, new: Option<&Cached<K>>) {
        let Some(key) = new.or(old).map(|object| object.key().clone()) else { return };
        // The result of the cast does not hold the decoded form of an encoded object. So the change
        // keeps only the encoded form in memory.
        let closed = |object: &Cached<K>| object.clone().cast::<AnyObject>();
        let change = Change { at: Instant::now(), kind, key, old: old.map(closed), new: new.map(closed) };
        let oldest = {
            let mut changes = self.changes.lock();
            let oldest = if changes.len() == MAX_CHANGES { changes.pop_front() } else { None };
            changes.push_back(change);
            oldest
        };
        // I8: the destructor of an object is user code, so it runs without the lock.
        drop(oldest);
    }

    /// Returns the changes of one object, newest first.
    pub(super) fn of(&self, key: &str) -> Vec<Change> {
        self.changes.lock().iter().rev().filter(|change| change.key.as_str() == key).cloned().collect()
    }

    /// Returns the last `count` changes of all objects, newest first.
    pub(super) fn newest(&self, count: usize) -> Vec<Change> {
        self.changes.lock().iter().rev().take(count).cloned().collect()
    }
}

impl<K: Send + Sync + 'static> EventHandler<K> for Changes {
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        if !is_in_initial_list {
            self.record("added", None, Some(object));
        }
    }

    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        // A resync is not a change.
        if !old.ptr_eq(new) {
            self.record("updated", Some(old), Some(new));
        }
    }

    fn on_delete(&self, object: &Deleted<K>) {
        self.record("deleted", object.last_known(), None);
    }

    fn on_release(&self, object: &Cached<K>) {
        self.record("released", Some(object), None);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(name: &str, version: &str) -> Cached<ConfigMap> {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.into());
        object.metadata.resource_version = Some(version.into());
        Cached::new(object).expect("a name")
    }

    #[test]
    fn newest_changes_replace_the_oldest() {
        let changes = Changes::default();
        changes.on_add(&object("initial", "1"), true);
        changes.on_add(&object("a", "1"), false);
        changes.on_update(&object("a", "1"), &object("a", "2"));
        let resynced = object("a", "2");
        changes.on_update(&resynced, &resynced);
        let kinds: Vec<_> = changes.of("a").iter().map(|change| change.kind).collect();
        assert_eq!(kinds, ["updated", "added"]);
        assert!(changes.of("initial").is_empty());
        for number in 0..MAX_CHANGES {
            changes.on_add(&object(&format!("b-{number}"), "3"), false);
        }
        assert!(changes.of("a").is_empty());
        assert_eq!(changes.newest(MAX_CHANGES + 1).len(), MAX_CHANGES);
        assert_eq!(changes.newest(1)[0].key.as_str(), format!("b-{}", MAX_CHANGES - 1));
    }
}
