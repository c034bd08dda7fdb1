//! [`Event`]: what has happened to an object in the store, and [`EventBatch`]: all that has happened to it in one step.

use crate::{Cached, Deleted, ObjectKey};

/// A change of the store, as handlers hear of it.
#[derive(Debug)]
pub enum Event<K> {
    /// An object is in the store that was not there before.
    Added {
        /// The object.
        object: Cached<K>,
        /// Whether it comes from the first list, or from the replay for a handler that joined later.
        is_in_initial_list: bool,
    },
    /// An object has a new version.
    Updated {
        /// What the handler was told before.
        old: Cached<K>,
        /// What is in the store now.
        new: Cached<K>,
    },
    /// An object has not changed, but is handed out again; only to handlers that are due a resync.
    Resynced(Cached<K>),
    /// An object has been deleted, and is no longer in the store.
    Deleted(Deleted<K>),
    /// An object is no longer in the store, because its namespace is not followed any more. It has not been deleted, as
    /// far as anybody knows, so nothing that belongs to it is to be cleaned up; what is kept of it is to be dropped.
    ///
    /// It is in the state in which this handler was last told of it.
    Released(Cached<K>),
}

impl<K> Event<K> {
    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added { object, .. }
            | Self::Updated { new: object, .. }
            | Self::Resynced(object)
            | Self::Released(object) => object.key(),
            Self::Deleted(deleted) => deleted.key(),
        }
    }
}

impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, is_in_initial_list } => {
                Self::Added { object: object.clone(), is_in_initial_list: *is_in_initial_list }
            }
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Resynced(object) => Self::Resynced(object.clone()),
            Self::Deleted(deleted) => Self::Deleted(deleted.clone()),
            Self::Released(object) => Self::Released(object.clone()),
        }
    }
}

/// The events of one step of the store, in the order in which they happened.
#[derive(Debug)]
pub struct EventBatch<K> {
    /// What happened.
    pub events: Vec<Event<K>>,
    /// Whether with these events the first list is complete.
    pub completes_initial_list: bool,
}

impl<K> EventBatch<K> {
    /// The same for somebody who is not due the resyncs in it.
    pub(crate) fn without_resyncs(&self) -> Self {
        let others = self.events.iter().filter(|event| !matches!(event, Event::Resynced(_)));
        Self { events: others.cloned().collect(), completes_initial_list: self.completes_initial_list }
    }
}
