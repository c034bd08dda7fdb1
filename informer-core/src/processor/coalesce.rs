//! [`Coalesced`]: what a handler that has fallen behind is still owed, at most one entry per key.
//!
//! Upholds I11, and I1 and I4 within it: an entry leads from what the handler last knew to what is true now, without
//! the steps between. Easy to get wrong: those steps hold user objects, and dropping them here would run the user's code
//! under the inbox's lock. So whatever falls out goes to the caller (I8).

use std::collections::VecDeque;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::{Cached, Deleted, Event};

/// Owed events, in the order in which their keys first came in.
pub(super) struct Coalesced<K> {
    /// Holes are entries that came to nothing: added and deleted before the handler heard of it.
    owed: VecDeque<Option<Owed<K>>>,
    /// The place of a key's entry, counted from the first entry that there ever was.
    index: HashTable<usize>,
    /// How many entries have left at the front.
    taken: usize,
    /// Whether an update comes with the state that the handler was told last, and not with the new one twice.
    keeps_old: bool,
    /// The end of the entries with which the first list is complete.
    initial_end: Option<usize>,
    len: usize,
}

enum Owed<K> {
    One(Event<K>),
    /// The object the handler knew has been deleted or released, and there is one under its name again.
    Recreated(End<K>, Cached<K>),
}

/// How an object that the handler knew left the store.
enum End<K> {
    Deleted(Deleted<K>),
    /// In the state that the handler knew.
    Released(Cached<K>),
}

impl<K> End<K> {
    fn into_event(self) -> Event<K> {
        match self {
            Self::Deleted(deleted) => Event::Deleted(deleted),
            Self::Released(object) => Event::Released(object),
        }
    }
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

    /// What is owed after `next` as well; `None` if that is nothing. What the handler need not hear any more goes to
    /// `garbage`, objects alone in the form of resyncs.
    fn then(self, next: &Event<K>, garbage: &mut Vec<Event<K>>) -> Option<Self> {
        let owed = match (self, next) {
            // A resync has nothing to say to somebody who is about to hear of the object anyway.
            (owed, Event::Resynced(_)) => owed,
            (Self::One(Event::Added { object: skipped, is_in_initial_list }), Event::Updated { new, .. }) => {
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
                Self::One(end.into_event())
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

    /// Lets go of a state that nobody but the handler would still want.
    fn forgo_old(&mut self, garbage: &mut Vec<Event<K>>) {
        if let Self::One(Event::Updated { old, new }) = self
            && !old.ptr_eq(new)
        {
            garbage.push(Event::Resynced(std::mem::replace(old, new.clone())));
        }
    }

    fn into_events(self, events: &mut Vec<Event<K>>) {
        match self {
            Self::One(event) => events.push(event),
            Self::Recreated(end, object) => {
                events.extend([end.into_event(), Event::Added { object, is_in_initial_list: false }]);
            }
        }
    }
}

impl<K> Coalesced<K> {
    pub(super) fn new(keeps_old: bool) -> Self {
        Self {
            owed: VecDeque::new(),
            index: HashTable::new(),
            taken: 0,
            keeps_old,
            initial_end: None,
            len: 0,
        }
    }

    /// How many keys something is owed of.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an event; returns whether it was merged into what was owed already. What falls out goes to `garbage`.
    pub(super) fn push(&mut self, event: &Event<K>, garbage: &mut Vec<Event<K>>) -> bool {
        self.close_holes();
        let Self { owed, index, taken, keeps_old, len, .. } = self;
        let entry = index.entry(
            event.key().hash_value(),
            |&place| owed[place - *taken].as_ref().is_some_and(|own| own.is_for(event)),
            |&place| owed[place - *taken].as_ref().map_or(0, Owed::key_hash),
        );
        match entry {
            Entry::Vacant(vacant) => {
                vacant.insert(*taken + owed.len());
                let mut own = Owed::One(event.clone());
                if !*keeps_old {
                    own.forgo_old(garbage);
                }
                owed.push_back(Some(own));
                *len += 1;
                false
            }
            Entry::Occupied(occupied) => {
                let slot = &mut owed[*occupied.get() - *taken];
                *slot = slot.take().and_then(|own| own.then(event, garbage));
                match slot {
                    Some(own) if !*keeps_old => own.forgo_old(garbage),
                    Some(_) => {}
                    None => {
                        occupied.remove();
                        *len -= 1;
                    }
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
        if let Some(end) = &mut self.initial_end {
            let initial = end.saturating_sub(self.taken);
            *end = self.owed.iter().take(initial).flatten().count();
        }
        self.owed.retain(Option::is_some);
        self.index.clear();
        self.taken = 0;
        let hash = |place: &usize| self.owed[*place].as_ref().map_or(0, Owed::key_hash);
        for place in 0..self.owed.len() {
            self.index.insert_unique(hash(&place), place, hash);
        }
    }

    /// Notes that with what is owed now the first list is complete.
    pub(super) fn complete_initial(&mut self) {
        self.initial_end = Some(self.taken + self.owed.len());
    }

    /// Says once, when all that belongs to the first list has been taken, that it is so.
    pub(super) fn take_initial_end(&mut self) -> bool {
        self.initial_end.take_if(|end| *end <= self.taken).is_some()
    }

    /// Says whether nothing is owed, and no end of the first list either.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0 && self.initial_end.is_none()
    }

    /// Takes the oldest entries, about as many as make `limit` events, in order. Events for the keys of those that stay
    /// can still be merged into them.
    pub(super) fn take(&mut self, limit: usize) -> Vec<Event<K>> {
        let mut events = Vec::with_capacity(limit.min(self.len));
        while events.len() < limit
            && let Some(front) = self.owed.pop_front()
        {
            let place = self.taken;
            self.taken += 1;
            if let Some(owed) = front {
                if let Ok(entry) = self.index.find_entry(owed.key_hash(), |&other| other == place) {
                    entry.remove();
                }
                self.len -= 1;
                owed.into_events(&mut events);
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

    fn released(value: &'static str) -> Event<&'static str> {
        Event::Released(object(value))
    }

    fn shown(event: &Event<&'static str>) -> String {
        match event {
            Event::Added { object, is_in_initial_list } => {
                format!("+{}{}", **object, if *is_in_initial_list { "!" } else { "" })
            }
            Event::Updated { old, new } => format!("{}>{}", **old, **new),
            Event::Resynced(object) => format!("={}", **object),
            Event::Deleted(deleted) => format!("-{}", deleted.last_known().map_or("?", |last| last)),
            Event::Released(object) => format!("^{}", **object),
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
            (vec![added("a"), updated("a", "b"), released("b")], ""),
            (vec![updated("a", "b"), released("b")], "^a"),
            (vec![resynced(), released("a")], "^a"),
            (vec![released("a"), added("b")], "^a +b"),
            (vec![released("a"), added("b"), updated("b", "c")], "^a +c"),
            (vec![released("a"), added("b"), released("b")], "^a"),
            (vec![released("a"), added("b"), deleted("b")], "-b"),
            (vec![updated("a", "b"), released("b"), added("b"), deleted("c")], "-c"),
            (vec![deleted("a"), added("b"), released("b")], "-a"),
        ];
        for (events, expected) in table {
            let mut coalesced = Coalesced::new(true);
            for event in &events {
                coalesced.push(event, &mut Vec::new());
            }
            let owed: Vec<_> = coalesced.take(9).iter().map(shown).collect();
            assert_eq!(owed.join(" "), expected, "of {:?}", events.iter().map(shown).collect::<Vec<_>>());
        }
    }

    #[test]
    fn i11_an_entry_for_a_handler_that_forgoes_old_states_holds_only_what_is_true_now() {
        let table = [
            (vec![updated("a", "b")], "b>b"),
            (vec![updated("a", "b"), updated("b", "c")], "c>c"),
            (vec![Event::Resynced(object("a")), updated("a", "b")], "b>b"),
            (vec![added("a"), updated("a", "b")], "+b!"),
            (vec![updated("a", "b"), deleted("b")], "-b"),
            (vec![updated("a", "b"), deleted("b"), added("c"), updated("c", "d")], "-b +d"),
        ];
        for (events, expected) in table {
            let (mut coalesced, mut garbage) = (Coalesced::new(false), Vec::new());
            for event in &events {
                coalesced.push(event, &mut garbage);
            }
            let owed: Vec<_> = coalesced.take(9).iter().map(shown).collect();
            assert_eq!(owed.join(" "), expected, "of {:?}", events.iter().map(shown).collect::<Vec<_>>());
        }
    }

    #[test]
    fn i11_entries_that_come_to_nothing_take_no_room_for_ever() {
        let mut coalesced = Coalesced::new(true);
        for name in 0..10_000 {
            let key = ObjectKey::cluster_scoped(&name.to_string());
            let object = Cached::from_parts(key, 1.into(), Default::default(), ());
            let garbage = &mut Vec::new();
            coalesced.push(&Event::Added { object: object.clone(), is_in_initial_list: false }, garbage);
            coalesced.push(&Event::Deleted(Deleted::exact(object)), garbage);
        }
        assert_eq!(coalesced.len(), 0);
        assert!(coalesced.owed.len() <= 64 && coalesced.index.capacity() < 200);
    }

    #[test]
    fn i6_entries_that_go_and_holes_that_are_closed_leave_places_and_the_end_of_the_first_list_right() {
        let named = |name: &str, value| {
            Cached::from_parts(ObjectKey::cluster_scoped(name), 1.into(), Default::default(), value)
        };
        let add = |name: &str, value| Event::Added { object: named(name, value), is_in_initial_list: true };
        let (mut coalesced, garbage) = (Coalesced::new(true), &mut Vec::new());
        let vanish = |coalesced: &mut Coalesced<u64>, garbage: &mut Vec<_>| {
            for name in 0..200 {
                coalesced.push(&add(&format!("x{name}"), name), garbage);
                coalesced.push(&Event::Deleted(Deleted::exact(named(&format!("x{name}"), name))), garbage);
            }
        };
        vanish(&mut coalesced, garbage);
        ["a", "b", "c", "d"].iter().for_each(|name| _ = coalesced.push(&add(name, 0), garbage));
        assert_eq!(coalesced.take(2).len(), 2);
        coalesced.complete_initial();
        vanish(&mut coalesced, garbage);
        coalesced.push(&add("e", 0), garbage);
        assert!(coalesced.push(&Event::Updated { old: named("c", 0), new: named("c", 1) }, garbage));
        assert!(!coalesced.take_initial_end());
        let values = |events: Vec<Event<u64>>| {
            let shown = |event: &Event<u64>| match event {
                Event::Added { object, .. } => format!("{}={}", object.key(), **object),
                other => format!("{other:?}"),
            };
            events.iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(values(coalesced.take(2)), ["c=1", "d=0"]);
        assert!(coalesced.take_initial_end() && !coalesced.take_initial_end());
        assert_eq!(values(coalesced.take(2)), ["e=0"]);
        assert!(coalesced.is_empty());
    }
}
