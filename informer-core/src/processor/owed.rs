//! [`Owed`]: one step from what a handler last knew of a key to what is true now.
//!
//! Upholds I1 and I4 for handlers that are behind. Skipped states go to the caller (I8).

use crate::{Cached, Deleted, Event, ObjectKey};

/// The pending entry of one key.
pub(super) enum Owed<K> {
    One(Event<K>),
    /// The object that the handler knew has left, and there is one under its name again.
    Recreated(End<K>, Cached<K>),
    /// An object was added and deleted. This concerns only a handler with a pending release of the key from an earlier
    /// period: for that handler the object has now been deleted.
    Vanished(Deleted<K>),
}

/// How an object that the handler knew left the store.
pub(super) enum End<K> {
    Deleted(Deleted<K>),
    /// In the state that the handler knew.
    Released(Cached<K>),
    /// As [`Owed::Vanished`].
    Vanished(Deleted<K>),
}

impl<K> End<K> {
    fn into_owed(self) -> Owed<K> {
        match self {
            Self::Deleted(deleted) => Owed::One(Event::Deleted(deleted)),
            Self::Released(object) => Owed::One(Event::Released(object)),
            Self::Vanished(deleted) => Owed::Vanished(deleted),
        }
    }

    fn into_event(self) -> Option<Event<K>> {
        match self.into_owed() {
            Owed::One(event) => Some(event),
            _ => None,
        }
    }
}

impl<K> Owed<K> {
    pub(super) fn key(&self) -> &ObjectKey {
        match self {
            Self::One(event) => event.key(),
            Self::Recreated(_, new) => new.key(),
            Self::Vanished(deleted) => deleted.key(),
        }
    }

    pub(super) fn key_hash(&self) -> u64 {
        self.key().hash_value()
    }

    /// Merges `next` into this entry; returns `None` if nothing is left to deliver. Skipped states go to `garbage`, objects
    /// alone in the form of resyncs.
    pub(super) fn then(self, next: &Event<K>, garbage: &mut Vec<Event<K>>) -> Option<Self> {
        let owed = match (self, next) {
            // A resync adds nothing where an event of the object is pending anyway.
            (owed, Event::Resynced(_)) => owed,
            (Self::One(Event::Added { object: skipped, is_in_initial_list }), Event::Updated { new, .. }) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Added { object: new.clone(), is_in_initial_list })
            }
            (Self::One(skipped @ Event::Added { .. }), Event::Deleted(_) | Event::Released(_)) => {
                garbage.push(skipped);
                return None;
            }
            (Self::Vanished(deleted), Event::Added { object, .. }) => {
                Self::Recreated(End::Vanished(deleted), object.clone())
            }
            (Self::One(Event::Updated { old, new: skipped }), Event::Updated { new, .. }) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Updated { old, new: new.clone() })
            }
            (Self::One(Event::Resynced(old)), Event::Updated { new, .. }) => {
                Self::One(Event::Updated { old, new: new.clone() })
            }
            (Self::One(Event::Deleted(deleted)), Event::Added { object, .. }) => {
                Self::Recreated(End::Deleted(deleted), object.clone())
            }
            (Self::One(Event::Released(known)), Event::Added { object, .. }) => {
                Self::Recreated(End::Released(known), object.clone())
            }
            (Self::Recreated(end, skipped), Event::Updated { new, .. }) => {
                garbage.push(Event::Resynced(skipped));
                Self::Recreated(end, new.clone())
            }
            // What was released and is deleted later has been deleted: that must not be lost.
            (Self::Recreated(End::Released(known), skipped), Event::Deleted(deleted)) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Deleted(deleted.clone().after(known)))
            }
            // The life that the handler knew ended with the first end.
            (Self::Recreated(end, skipped), Event::Deleted(_) | Event::Released(_)) => {
                garbage.push(Event::Resynced(skipped));
                end.into_owed()
            }
            (Self::One(Event::Updated { old, new: skipped }), Event::Deleted(deleted)) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Deleted(deleted.clone().after(old)))
            }
            (Self::One(Event::Updated { old, new: skipped }), Event::Released(_)) => {
                garbage.push(Event::Resynced(skipped));
                Self::One(Event::Released(old))
            }
            // What is left is a resync then an end, or a sequence that no store produces: the newest word counts.
            (skipped, next) => {
                skipped.into_events(garbage);
                Self::One(next.clone())
            }
        };
        Some(owed)
    }

    /// Drops a state that only the handler would still use.
    pub(super) fn forgo_old(&mut self, garbage: &mut Vec<Event<K>>) {
        if let Self::One(Event::Updated { old, new }) = self
            && !old.ptr_eq(new)
        {
            garbage.push(Event::Resynced(std::mem::replace(old, new.clone())));
        }
    }

    pub(super) fn into_events(self, events: &mut Vec<Event<K>>) {
        match self {
            Self::One(event) => events.push(event),
            Self::Recreated(end, object) => {
                events.extend(end.into_event());
                events.push(Event::Added { object, is_in_initial_list: false });
            }
            Self::Vanished(_) => {}
        }
    }
}
