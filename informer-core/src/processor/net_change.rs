//! [`NetChange`]: the pending change of one key, from the last object that a handler received to
//! the current object.
//!
//! Slow handlers skip states, but never receive an older state after a newer one (invariant I1).
//! For each key, they receive an add, then updates, then a delete (invariant I4). If the object's
//! namespace is no longer watched, they receive [`Event::Released`] instead of the delete. Unused
//! objects are returned to the caller, which drops them while no lock is held.

use crate::{Cached, Deleted, Event, ObjectKey};

/// The change of one key that a slow handler has not received yet, merged from one or more events.
pub(super) enum NetChange<K> {
    One(Event<K>),
    /// Two events for the handler: an object was removed (deleted or released), and then an object
    /// with the same key was added.
    Recreated(Removal<K>, Cached<K>),
}

/// The deletion or release of an object. The handler has not received this event yet.
pub(super) enum Removal<K> {
    Deleted(Deleted<K>),
    /// The object's namespace is no longer watched. Contains the object of the [`Event::Released`].
    Released(Cached<K>),
}

impl<K> Removal<K> {
    fn into_event(self) -> Event<K> {
        match self {
            Self::Deleted(deleted) => Event::Deleted(deleted),
            Self::Released(object) => Event::Released(object),
        }
    }
}

impl<K> NetChange<K> {
    pub(super) fn key(&self) -> &ObjectKey {
        match self {
            Self::One(event) => event.key(),
            Self::Recreated(_, new) => new.key(),
        }
    }

    pub(super) fn key_hash(&self) -> u64 {
        self.key().hash_value()
    }

    /// Returns the number of events of this change.
    pub(super) fn event_count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Recreated(..) => 2,
        }
    }

    /// Merges the event `next` into this change. Returns `None` if an add and a removal have
    /// cancelled each other. Moves unused objects to `garbage`.
    pub(super) fn then(self, next: &Event<K>, garbage: &mut Vec<Event<K>>) -> Option<Self> {
        let merged = match (self, next) {
            // A resync adds nothing to a pending event of the object.
            (pending, Event::Resynced(_)) => pending,
            (Self::One(Event::Added { object: skipped, is_in_initial_list }), Event::Updated { new, .. }) => {
                // `garbage` contains events, so a single object is wrapped in a resync.
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Added { object: new.clone(), is_in_initial_list })
            }
            (Self::One(skipped @ Event::Added { .. }), Event::Deleted(_) | Event::Released(_)) => {
                garbage.push(skipped);
                return None;
            }
            (Self::One(Event::Updated { old, new: skipped }), Event::Updated { new, .. }) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Updated { old, new: new.clone() })
            }
            (Self::One(Event::Resynced(old)), Event::Updated { new, .. }) => {
                Self::One(Event::Updated { old, new: new.clone() })
            }
            (Self::One(Event::Deleted(deleted)), Event::Added { object, .. }) => {
                Self::Recreated(Removal::Deleted(deleted), object.clone())
            }
            (Self::One(Event::Released(known)), Event::Added { object, .. }) => {
                Self::Recreated(Removal::Released(known), object.clone())
            }
            (Self::Recreated(removal, skipped), Event::Updated { new, .. }) => {
                garbage.push(Event::Resynced(skipped));
                Self::Recreated(removal, new.clone())
            }
            // The object left the cluster, and not only the scope.
            (Self::Recreated(Removal::Released(known), skipped), Event::Deleted(deleted)) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Deleted(deleted.clone().after(known)))
            }
            // The handler has not received the recreated object, so the pending removal stays.
            (Self::Recreated(removal, skipped), Event::Deleted(_) | Event::Released(_)) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(removal.into_event())
            }
            (Self::One(Event::Updated { old, new: skipped }), Event::Deleted(deleted)) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Deleted(deleted.clone().after(old)))
            }
            (Self::One(Event::Updated { old, new: skipped }), Event::Released(_)) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Released(old))
            }
            // The remaining cases are a resync before a deletion or release, and sequences that no
            // store produces. The newest event is kept.
            (skipped, next) => {
                skipped.into_events(garbage);
                Self::One(next.clone())
            }
        };
        Some(merged)
    }

    /// Replaces the old object of an update with the new object, so that the update does not keep
    /// the old object in memory. Moves the old object to `garbage`.
    pub(super) fn drop_old(&mut self, garbage: &mut Vec<Event<K>>) {
        if let Self::One(Event::Updated { old, new }) = self
            && !old.ptr_eq(new)
        {
            garbage.push(Event::Resynced(std::mem::replace(old, new.clone())));
        }
    }

    pub(super) fn into_events(self, events: &mut Vec<Event<K>>) {
        match self {
            Self::One(event) => events.push(event),
            Self::Recreated(removal, object) => {
                events.extend([removal.into_event(), Event::Added { object, is_in_initial_list: false }]);
            }
        }
    }
}
