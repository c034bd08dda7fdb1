//! [`Truth`]: the whole history of the server, and the part of it that an informer or a handler
//! should observe.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use informer_factory::{Cached, Uid};
use informer_testing::{ObjectStore, StoredObject};
use parking_lot::Mutex;

use crate::item::{Content, Item};

/// One version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) resource_version: u64,
    uid: Uid,
    pub(crate) content: Content,
    side: String,
}

/// A change of an object at a revision of the server.
#[derive(Debug)]
struct Change {
    at: u64,
    /// `None` if the object is deleted.
    now: Option<Version>,
}

/// All versions of all objects by key, in order. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Truth(Arc<Mutex<BTreeMap<String, Vec<Change>>>>);

/// The objects that an informer or a handler observes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) namespace: Option<&'static str>,
    pub(crate) side: Option<&'static str>,
    /// Whether a handler's filter passes only objects with even numbers.
    pub(crate) even: bool,
}

/// The state of an object at a revision, as an observer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// A version, and the UID of its object.
    Version(u64, Uid),
    /// A version that is quarantined; the observer keeps the previous version.
    Quarantined,
    /// The object was deleted, or left the scope, at this revision.
    Gone(u64),
}

impl Observation {
    /// Returns the observation of an observer that has this version of the object.
    pub(crate) fn of(object: &Cached<Item>) -> Self {
        let version = object.resource_version().to_string().parse();
        Self::Version(version.unwrap_or_default(), object.uid().clone())
    }

    pub(crate) fn is_version(&self, wanted: u64) -> bool {
        matches!(self, Self::Version(version, _) if *version == wanted)
    }
}

impl Scope {
    fn selects(&self, key: &str, version: &Version) -> bool {
        self.namespace.is_none_or(|namespace| key.split_once('/').is_some_and(|(own, _)| own == namespace))
            && self.side.is_none_or(|side| version.side == side)
    }

    fn observation(&self, key: &str, change: &Change) -> Observation {
        match &change.now {
            Some(version) if self.selects(key, version) => match version.content {
                content if !content.is_good() => Observation::Quarantined,
                content if self.even && !content.is_even() => Observation::Gone(change.at),
                _ => Observation::Version(version.resource_version, version.uid.clone()),
            },
            _ => Observation::Gone(change.at),
        }
    }
}

impl Truth {
    /// Records the server's current state of an object, at `revision`. Call it after each write.
    pub(crate) fn update(&self, store: &ObjectStore, key: &str, revision: u64) {
        let after = store.get(key).ok().map(|object| read(&object));
        let mut keys = self.0.lock();
        let changes = keys.entry(key.to_owned()).or_default();
        let before = changes.last().and_then(|change| change.now.as_ref());
        if before == after.as_ref() {
            return;
        }
        // The object was deleted and created again in one step. Record the deletion first.
        if before.zip(after.as_ref()).is_some_and(|(before, after)| before.uid != after.uid) {
            changes.push(Change { at: revision, now: None });
        }
        changes.push(Change { at: revision, now: after });
    }

    /// Records the server's current state of all objects, after a step that may have changed any of
    /// them.
    pub(crate) fn update_all(&self, store: &ObjectStore, revision: u64) {
        let stored = store.list();
        let mut keys: BTreeSet<String> = stored.iter().map(key_of).collect();
        keys.extend(self.0.lock().keys().cloned());
        for key in keys {
            self.update(store, &key, revision);
        }
    }

    /// Returns the observation of each object at a revision.
    pub(crate) fn at(&self, scope: &Scope, revision: u64) -> BTreeMap<String, Observation> {
        let keys = self.0.lock();
        let seen = keys.iter().filter_map(|(key, changes)| {
            let past = &changes[..changes.partition_point(|change| change.at <= revision)];
            Some((key.clone(), scope.observation(key, past.last()?)))
        });
        seen.collect()
    }

    /// Returns whether a handler may have received version `delivered` while the store has version
    /// `stored`: the store must have the delivered version or a later state.
    pub(crate) fn may_deliver(&self, scope: &Scope, key: &str, stored: Option<u64>, delivered: u64) -> bool {
        let keys = self.0.lock();
        let observations = keys.get(key).into_iter().flatten().map(|change| scope.observation(key, change));
        let mut since = observations.skip_while(|observation| !observation.is_version(delivered));
        since.any(|observation| match (observation, stored) {
            (Observation::Version(version, _), Some(stored)) => version == stored,
            (Observation::Gone(_), None) => true,
            _ => false,
        })
    }

    /// Returns all observations of an object, in order.
    pub(crate) fn observations(&self, scope: &Scope, key: &str) -> Vec<Observation> {
        let keys = self.0.lock();
        keys.get(key).into_iter().flatten().map(|change| scope.observation(key, change)).collect()
    }
}

fn key_of(object: &StoredObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name())
}

fn read(object: &StoredObject) -> Version {
    let value = object.value();
    Version {
        resource_version: object.resource_version(),
        uid: object.uid().into(),
        content: Content::read(&value),
        side: value["metadata"]["labels"]["side"].as_str().unwrap_or_default().to_owned(),
    }
}
