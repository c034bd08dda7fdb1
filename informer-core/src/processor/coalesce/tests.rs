//! Tests of the coalesced result of sequences of events of one key.

use super::*;
use crate::{Cached, Deleted, ObjectKey};

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
fn i11_events_of_a_key_coalesce_to_one_step() {
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
        let taken: Vec<_> = coalesced.take(9).iter().map(shown).collect();
        assert_eq!(taken.join(" "), expected, "of {:?}", events.iter().map(shown).collect::<Vec<_>>());
    }
}

#[test]
fn i11_entry_without_old_states_holds_only_the_newest() {
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
        let taken: Vec<_> = coalesced.take(9).iter().map(shown).collect();
        assert_eq!(taken.join(" "), expected, "of {:?}", events.iter().map(shown).collect::<Vec<_>>());
    }
}

#[test]
fn i11_holes_do_not_grow_the_backlog() {
    let mut coalesced = Coalesced::new(true);
    for name in 0..10_000 {
        let key = ObjectKey::cluster_scoped(&name.to_string());
        let object = Cached::from_parts(key, 1.into(), Default::default(), ());
        let garbage = &mut Vec::new();
        coalesced.push(&Event::Added { object: object.clone(), is_in_initial_list: false }, garbage);
        coalesced.push(&Event::Deleted(Deleted::exact(object)), garbage);
    }
    assert_eq!(coalesced.len(), 0);
    assert!(coalesced.entries.len() <= 64 && coalesced.index.capacity() < 200);
}

#[test]
fn i6_removed_entries_keep_order_and_sync_position() {
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
    ["a", "b", "c", "d"].iter().for_each(|name| coalesced.push(&add(name, 0), garbage));
    assert_eq!(coalesced.take(2).len(), 2);
    coalesced.push_all(&EventBatch { events: Vec::new(), completes_initial_list: true }, garbage);
    vanish(&mut coalesced, garbage);
    coalesced.push(&add("e", 0), garbage);
    coalesced.push(&Event::Updated { old: named("c", 0), new: named("c", 1) }, garbage);
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
