//! [`Event`]: a change of the store, and [`EventBatch`]: changes that are delivered together.
//!
//! The events of a store have closed handles to encoded objects. A closed handle cannot be
//! dereferenced. Handlers receive copies of the events with open handles. An open handle decodes
//! the object at the first dereference, and then keeps the decoded object.

use crate::{AnyObject, Cached, Deleted, ObjectKey};

/// An event about one object: the object entered, changed in, or left the store, or a resync is
/// due.
#[derive(Debug)]
pub enum Event<K> {
    /// An object was added to the store.
    Added {
        /// The added object.
        object: Cached<K>,
        /// Whether the object was in the initial list, or was in the store when the handler was
        /// added.
        is_in_initial_list: bool,
    },
    /// An object in the store was replaced by a new version.
    Updated {
        /// The version of the object that the handler received last. With
        /// [`HandlerOptions::coalesce_drops_old`](crate::HandlerOptions::coalesce_drops_old), `old`
        /// can be the same version as `new`.
        old: Cached<K>,
        /// The new version of the object.
        new: Cached<K>,
    },
    /// A resync: the object has not changed. Handlers receive this event when their resync is due.
    Resynced(Cached<K>),
    /// An object was deleted.
    Deleted(Deleted<K>),
    /// An object was released: it left the store because its namespace is no longer watched. The
    /// object can still exist in the cluster, so a handler must not clean up after it. The handler
    /// can drop its own data about the object.
    ///
    /// The field is the last version that the handler received. With
    /// [`HandlerOptions::coalesce_drops_old`](crate::HandlerOptions::coalesce_drops_old), it can be
    /// a newer version, which the handler has skipped because it was slow.
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

    /// Changes the type of the objects, to or from [`AnyObject`].
    pub(crate) fn cast<T: 'static>(self) -> Event<T>
    where
        K: 'static,
    {
        self.map(Cached::cast)
    }

    fn map<T>(self, change: fn(Cached<K>) -> Cached<T>) -> Event<T> {
        match self {
            Self::Added { object, is_in_initial_list } => {
                Event::Added { object: change(object), is_in_initial_list }
            }
            Self::Updated { old, new } => Event::Updated { old: change(old), new: change(new) },
            Self::Resynced(object) => Event::Resynced(change(object)),
            Self::Deleted(deleted) => Event::Deleted(deleted.map(change)),
            Self::Released(object) => Event::Released(change(object)),
        }
    }
}

impl Event<AnyObject> {
    /// Returns a copy of this event with open handles instead of closed handles. Returns `None` if
    /// this event has no closed handle.
    pub(crate) fn with_open_handles(&self) -> Option<Self> {
        self.is_closed().then(|| self.clone().map(Cached::opened))
    }

    /// Returns whether a handler has dereferenced an open handle of this event, or has a clone of
    /// one. Always `false` if the event has no open handle.
    pub(crate) fn is_in_use(&self) -> bool {
        self.any(Cached::is_in_use)
    }

    /// Returns whether this event has a closed handle, which cannot be dereferenced.
    pub(crate) fn is_closed(&self) -> bool {
        self.any(Cached::is_closed)
    }

    fn any(&self, test: impl Fn(&Cached<AnyObject>) -> bool) -> bool {
        match self {
            Self::Added { object, .. } | Self::Resynced(object) | Self::Released(object) => test(object),
            Self::Updated { old, new } => test(old) || test(new),
            Self::Deleted(deleted) => deleted.any(test),
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

/// Events in order: those of one transaction of the store, or the coalesced events of several
/// transactions.
#[derive(Debug)]
pub struct EventBatch<K> {
    /// The events, in order.
    pub events: Vec<Event<K>>,
    /// Whether the initial list is complete with these events.
    pub completes_initial_list: bool,
}

impl<K> EventBatch<K> {
    pub(crate) fn cast<T: 'static>(self) -> EventBatch<T>
    where
        K: 'static,
    {
        let events = self.events.into_iter().map(Event::cast).collect();
        EventBatch { events, completes_initial_list: self.completes_initial_list }
    }

    pub(crate) fn without_resyncs(&self) -> Self {
        let others = self.events.iter().filter(|event| !matches!(event, Event::Resynced(_)));
        Self { events: others.cloned().collect(), completes_initial_list: self.completes_initial_list }
    }
}
