//! [`Truth`]: the whole history of the server, and what of it an informer or a handler should see.

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

/// What became of an object at a revision of the server.
#[derive(Debug)]
struct Change {
    at: u64,
    /// None if it is gone.
    now: Option<Version>,
}

/// All versions of all objects by key, in order. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Truth(Arc<Mutex<BTreeMap<String, Vec<Change>>>>);

/// Which objects somebody sees.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) namespace: Option<&'static str>,
    pub(crate) side: Option<&'static str>,
    /// Whether only even numbers are seen, through a handler's filter.
    pub(crate) even: bool,
}

/// What somebody can come to see of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// A version, and which of the objects of this name it is of.
    Version(u64, Uid),
    /// A version that can't be taken in; what was seen before stays.
    SetAside,
    /// It is gone, or out of sight, since this revision.
    Gone(u64),
}

impl Sight {
    /// What somebody sees who has this object.
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

    fn sight(&self, key: &str, change: &Change) -> Sight {
        match &change.now {
            Some(version) if self.selects(key, version) => match version.content {
                content if !content.is_good() => Sight::SetAside,
                content if self.even && !content.is_even() => Sight::Gone(change.at),
                _ => Sight::Version(version.resource_version, version.uid.clone()),
            },
            _ => Sight::Gone(change.at),
        }
    }
}

impl Truth {
    /// Takes over what the server has of an object now, at `revision`. To be called after each
    /// write.
    pub(crate) fn update(&self, store: &ObjectStore, key: &str, revision: u64) {
        let after = store.get(key).ok().map(|object| read(&object));
        let mut keys = self.0.lock();
        let changes = keys.entry(key.to_owned()).or_default();
        let before = changes.last().and_then(|change| change.now.as_ref());
        if before == after.as_ref() {
            return;
        }
        // Another object under the same name, in one step: the end of the first is part of it.
        if before.zip(after.as_ref()).is_some_and(|(before, after)| before.uid != after.uid) {
            changes.push(Change { at: revision, now: None });
        }
        changes.push(Change { at: revision, now: after });
    }

    /// Takes over all that the server has now, after something that may have changed everything.
    pub(crate) fn update_all(&self, store: &ObjectStore, revision: u64) {
        let stored = store.list();
        let mut keys: BTreeSet<String> = stored.iter().map(key_of).collect();
        keys.extend(self.0.lock().keys().cloned());
        for key in keys {
            self.update(store, &key, revision);
        }
    }

    /// Returns what there was to be seen of each object at a revision.
    pub(crate) fn at(&self, scope: &Scope, revision: u64) -> BTreeMap<String, Sight> {
        let keys = self.0.lock();
        let seen = keys.iter().filter_map(|(key, changes)| {
            let past = &changes[..changes.partition_point(|change| change.at <= revision)];
            Some((key.clone(), scope.sight(key, past.last()?)))
        });
        seen.collect()
    }

    /// Returns whether a store that has `stored` of an object may already have told of `told`: it
    /// has that very version, or something that came after it.
    pub(crate) fn may_tell(&self, scope: &Scope, key: &str, stored: Option<u64>, told: u64) -> bool {
        let keys = self.0.lock();
        let sights = keys.get(key).into_iter().flatten().map(|change| scope.sight(key, change));
        let mut since = sights.skip_while(|sight| !sight.is_version(told));
        since.any(|sight| match (sight, stored) {
            (Sight::Version(version, _), Some(stored)) => version == stored,
            (Sight::Gone(_), None) => true,
            _ => false,
        })
    }

    /// Returns all that there ever was to be seen of an object.
    pub(crate) fn sights(&self, scope: &Scope, key: &str) -> Vec<Sight> {
        let keys = self.0.lock();
        keys.get(key).into_iter().flatten().map(|change| scope.sight(key, change)).collect()
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
