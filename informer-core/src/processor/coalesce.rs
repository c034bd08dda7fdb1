//! [`Coalesced`]: what a handler that has fallen behind is still owed, at most one entry per key.
//!
//! Upholds I11, and I1 and I4 within it: an entry leads from what the handler last knew to what is true now, without
//! the steps between.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::{Cached, Deleted, Event};

/// Owed events, in the order in which their keys first came in.
pub(super) struct Coalesced<K> {
    /// Holes are entries that came to nothing: added and deleted before the handler heard of it.
    owed: Vec<Option<Owed<K>>>,
    index: HashTable<usize>,
    len: usize,
}

enum Owed<K> {
    One(Event<K>),
    /// The object the handler knew is gone, and there is another under its name.
    Recreated(Deleted<K>, Cached<K>),
}

impl<K> Owed<K> {
    fn key_hash(&self) -> u64 {
        match self {
            Self::One(event) => event.key().hash_value(),
            Self::Recreated(_, new) => new.key().hash_value(),
        }
    }

    fn is_for(&self, event: &Event<K>) -> bool {
        match self {
            Self::One(own) => own.key() == event.key(),
            Self::Recreated(_, new) => new.key() == event.key(),
        }
    }

    /// What is owed after `next` as well; `None` if that is nothing.
    fn then(self, next: &Event<K>) -> Option<Self> {
        let owed = match (self, next) {
            // A resync has nothing to say to somebody who is about to hear of the object anyway.
            (owed, Event::Resynced(_)) => owed,
            (Self::One(Event::Added { is_in_initial_list, .. }), Event::Updated { new, .. }) => {
                Self::One(Event::Added { object: new.clone(), is_in_initial_list })
            }
            (Self::One(Event::Added { .. }), Event::Deleted(_)) => return None,
            (Self::One(Event::Updated { old, .. } | Event::Resynced(old)), Event::Updated { new, .. }) => {
                Self::One(Event::Updated { old, new: new.clone() })
            }
            (Self::One(Event::Deleted(deleted)), Event::Added { object, .. }) => {
                Self::Recreated(deleted, object.clone())
            }
            (Self::Recreated(deleted, _), Event::Updated { new, .. }) => {
                Self::Recreated(deleted, new.clone())
            }
            // The life that the handler knew ended with the first deletion.
            (Self::Recreated(deleted, _), Event::Deleted(_)) => Self::One(Event::Deleted(deleted)),
            (Self::One(Event::Updated { old, .. }), Event::Deleted(deleted)) => {
                Self::One(Event::Deleted(deleted.clone().after(old)))
            }
            // What is left is a resync then a delete, or a sequence that no store produces: the newest word counts.
            (_, next) => Self::One(next.clone()),
        };
        Some(owed)
    }
}

impl<K> Coalesced<K> {
    pub(super) fn new() -> Self {
        Self { owed: Vec::new(), index: HashTable::new(), len: 0 }
    }

    /// How many keys something is owed of.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an event; returns whether it was merged into what was owed already.
    pub(super) fn push(&mut self, event: &Event<K>) -> bool {
        self.close_holes();
        let Self { owed, index, len } = self;
        let at = |position: usize, owed: &[Option<Owed<K>>], event: &Event<K>| {
            owed[position].as_ref().is_some_and(|own| own.is_for(event))
        };
        let entry = index.entry(
            event.key().hash_value(),
            |&position| at(position, owed, event),
            |&position| owed[position].as_ref().map_or(0, Owed::key_hash),
        );
        match entry {
            Entry::Vacant(vacant) => {
                vacant.insert(owed.len());
                owed.push(Some(Owed::One(event.clone())));
                *len += 1;
                false
            }
            Entry::Occupied(occupied) => {
                let slot = &mut owed[*occupied.get()];
                *slot = slot.take().and_then(|own| own.then(event));
                if slot.is_none() {
                    occupied.remove();
                    *len -= 1;
                }
                true
            }
        }
    }

    /// Keeps the holes fewer than the entries, so that memory stays in step with the keys that are owed something.
    fn close_holes(&mut self) {
        if self.owed.len() < 2 * self.len + 64 {
            return;
        }
        self.owed.retain(Option::is_some);
        self.index.clear();
        for (position, own) in self.owed.iter().enumerate() {
            let hash = |position: &usize| self.owed[*position].as_ref().map_or(0, Owed::key_hash);
            self.index.insert_unique(own.as_ref().map_or(0, Owed::key_hash), position, hash);
        }
    }

    /// Returns the owed events in order.
    pub(super) fn into_events(self) -> Vec<Event<K>> {
        let mut events = Vec::with_capacity(self.len);
        for owed in self.owed.into_iter().flatten() {
            match owed {
                Owed::One(event) => events.push(event),
                Owed::Recreated(deleted, object) => {
                    events.push(Event::Deleted(deleted));
                    events.push(Event::Added { object, is_in_initial_list: false });
                }
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectKey;

    fn object(value: &'static str) -> Cached<&'static str> {
        Cached::from_parts(ObjectKey::cluster_scoped("a"), 1.into(), Default::default(), value)
    }

    fn added(value: &'static str) -> Event<&'static str> {
        Event::Added { object: object(value), is_in_initial_list: true }
    }

    fn updated(old: &'static str, new: &'static str) -> Event<&'static str> {
        Event::Updated { old: object(old), new: object(new) }
    }

    fn deleted(value: &'static str) -> Event<&'static str> {
        Event::Deleted(Deleted::exact(object(value)))
    }

    fn shown(event: &Event<&'static str>) -> String {
        match event {
            Event::Added { object, is_in_initial_list } => {
                format!("+{}{}", **object, if *is_in_initial_list { "!" } else { "" })
            }
            Event::Updated { old, new } => format!("{}>{}", **old, **new),
            Event::Resynced(object) => format!("={}", **object),
            Event::Deleted(deleted) => format!("-{}", deleted.last_known().map_or("?", |last| last)),
        }
    }

    #[test]
    fn i11_events_of_a_key_become_the_one_step_the_handler_has_to_hear_of() {
        let resynced = || Event::Resynced(object("a"));
        let table = [
            (vec![added("a"), updated("a", "b")], "+b!"),
            (vec![added("a"), updated("a", "b"), deleted("b")], ""),
            (vec![updated("a", "b"), updated("b", "c")], "a>c"),
            (vec![updated("a", "b"), deleted("b")], "-b"),
            (vec![deleted("a"), added("b")], "-a +b"),
            (vec![deleted("a"), added("b"), updated("b", "c")], "-a +c"),
            (vec![deleted("a"), added("b"), deleted("b")], "-a"),
            (vec![deleted("a"), added("b"), deleted("b"), added("c")], "-a +c"),
            (vec![resynced(), resynced()], "=a"),
            (vec![resynced(), updated("a", "b")], "a>b"),
            (vec![resynced(), deleted("a")], "-a"),
            (vec![updated("z", "a"), resynced()], "z>a"),
            (vec![added("a"), deleted("a"), added("b")], "+b!"),
        ];
        for (events, expected) in table {
            let mut coalesced = Coalesced::new();
            for event in &events {
                coalesced.push(event);
            }
            let owed: Vec<_> = coalesced.into_events().iter().map(shown).collect();
            assert_eq!(owed.join(" "), expected, "of {:?}", events.iter().map(shown).collect::<Vec<_>>());
        }
    }

    #[test]
    fn i11_entries_that_come_to_nothing_take_no_room_for_ever() {
        let mut coalesced = Coalesced::new();
        for name in 0..10_000 {
            let key = ObjectKey::cluster_scoped(&name.to_string());
            let object = Cached::from_parts(key, 1.into(), Default::default(), ());
            coalesced.push(&Event::Added { object: object.clone(), is_in_initial_list: false });
            coalesced.push(&Event::Deleted(Deleted::exact(object)));
        }
        assert_eq!(coalesced.len(), 0);
        assert!(coalesced.owed.len() <= 64 && coalesced.index.capacity() < 200);
    }
}
