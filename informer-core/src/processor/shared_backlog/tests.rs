//! Coalescing for several slow handlers, and the events that each of them takes.

use super::*;
use crate::{Cached, Deleted, Event, EventBatch};

fn object(name: &str, value: u64) -> Cached<u64> {
    Cached::from_parts(ObjectKey::cluster_scoped(name), (value + 1).into(), Default::default(), value)
}

fn batch(events: Vec<Event<u64>>) -> SharedBatch<u64> {
    Arc::new(EventBatch { events, completes_initial_list: false })
}

fn update(name: &str, value: u64) -> Event<u64> {
    Event::Updated { old: object(name, value), new: object(name, value + 1) }
}

/// The part of one slow handler, which is `None` while the handler is not behind.
type Part = Option<SharedPart>;

/// Publishes a batch for all `parts`.
fn publish(backlog: &SharedBacklog<u64>, parts: &mut [&mut Part], events: Vec<Event<u64>>) {
    let batch = batch(events);
    for part in parts {
        backlog.push(&batch, part, Vec::new(), false);
    }
    backlog.finish();
}

/// Takes once, and returns the events in words.
fn take(backlog: &SharedBacklog<u64>, part: &mut Part) -> Vec<String> {
    let taken = backlog.with_sections(&mut Garbage::none(), |sections, garbage| {
        backlog.coalesce(sections, garbage);
        backlog.take(sections, part, None, garbage)
    });
    let (taken, wants_resyncs) = taken.expect("the section exists");
    let is_wanted = |event: &&Event<u64>| wants_resyncs || !matches!(event, Event::Resynced(_));
    taken.events.events.iter().filter(is_wanted).map(|event| format!("{event:?}")).collect()
}

/// Takes until the handler is no longer behind.
fn take_all(backlog: &SharedBacklog<u64>, part: &mut Part) -> Vec<String> {
    let mut all = Vec::new();
    while part.is_some() {
        all.extend(take(backlog, part));
    }
    all
}

/// Returns the number of sections.
fn sections(backlog: &SharedBacklog<u64>) -> usize {
    backlog.sections.lock().len()
}

#[test]
fn i11_batches_for_fifty_stuck_handlers_are_coalesced_once() {
    let backlog = SharedBacklog::new(true);
    let mut parts: Vec<Part> = (0..50).map(|_| None).collect();
    for value in 0..1_000 {
        publish(&backlog, &mut parts.iter_mut().collect::<Vec<_>>(), vec![update("a", value)]);
    }
    assert_eq!(sections(&backlog), 0, "the publisher coalesces nothing under its locks");
    backlog.settle(&mut Garbage::none());
    for part in &mut parts {
        assert_eq!(sections(&backlog), 1);
        assert_eq!(take_all(&backlog, part), ["Updated { old: Cached(a@1), new: Cached(a@1001) }"]);
    }
    assert_eq!(sections(&backlog), 0, "no handler needs the section any more");
}

#[test]
fn i11_publisher_does_not_wait_for_a_merging_handler() {
    let (backlog, mut part) = (SharedBacklog::new(true), None);
    publish(&backlog, &mut [&mut part], vec![update("a", 0)]);
    let held = backlog.sections.lock();
    publish(&backlog, &mut [&mut part], vec![update("a", 1)]);
    backlog.settle(&mut Garbage::none());
    drop(held);
    assert_eq!(take_all(&backlog, &mut part), ["Updated { old: Cached(a@1), new: Cached(a@3) }"]);
}

#[test]
fn i11_sections_that_nobody_begins_with_are_joined() {
    let (backlog, mut stuck, mut slow) = (SharedBacklog::new(true), None, None);
    for value in 0..100 {
        publish(&backlog, &mut [&mut stuck, &mut slow], vec![update("a", value)]);
        assert_eq!(take_all(&backlog, &mut slow).len(), 1, "the slow handler takes each section");
        assert!(sections(&backlog) <= 2);
    }
    let mut garbage = Garbage::none();
    let (events, merged) = backlog
        .with_sections(&mut garbage, |sections, _| backlog.count(sections, stuck.as_ref().expect("behind")));
    assert_eq!((events, merged), (1, 99));
    assert_eq!(take_all(&backlog, &mut stuck), ["Updated { old: Cached(a@1), new: Cached(a@101) }"]);
}

#[test]
fn i11_only_reader_takes_few_events_and_the_rest_is_merged() {
    let (backlog, mut part) = (SharedBacklog::new(true), None);
    publish(&backlog, &mut [&mut part], (0..200).map(|name| update(&name.to_string(), 0)).collect());
    let first = take(&backlog, &mut part);
    assert!(first.len() < 100, "{}", first.len());
    publish(&backlog, &mut [&mut part], vec![update("0", 1), update("199", 1)]);
    let rest = take_all(&backlog, &mut part);
    assert_eq!(first.len() + rest.len(), 200 + 1, "the second update of 199 is merged into the first");
    assert_eq!(rest.last().map(String::as_str), Some("Updated { old: Cached(0@2), new: Cached(0@3) }"));
}

#[test]
fn i1_batch_taken_while_published_reaches_each_handler_once() {
    for is_behind in [false, true] {
        let (backlog, mut quick, mut late) = (SharedBacklog::new(true), None, None);
        if is_behind {
            publish(&backlog, &mut [&mut quick], vec![update("a", 0)]);
        }
        let published = batch(vec![update("b", 0)]);
        backlog.push(&published, &mut quick, Vec::new(), false);
        assert_eq!(take_all(&backlog, &mut quick).len(), 1 + usize::from(is_behind));
        backlog.push(&published, &mut late, Vec::new(), false);
        backlog.finish();
        assert_eq!(take_all(&backlog, &mut late), ["Updated { old: Cached(b@1), new: Cached(b@2) }"]);
        assert_eq!(sections(&backlog), 0);
    }
}

#[test]
fn i1_deletion_after_a_release_is_kept_for_slow_handlers() {
    let (backlog, mut early, mut late) = (SharedBacklog::new(true), None, None);
    publish(&backlog, &mut [&mut early], vec![Event::Released(object("a", 0))]);
    let add = Event::Added { object: object("a", 1), is_in_initial_list: false };
    publish(&backlog, &mut [&mut early, &mut late], vec![add]);
    let delete = Event::Deleted(Deleted::exact(object("a", 1)));
    publish(&backlog, &mut [&mut early, &mut late], vec![delete]);
    let taken = take_all(&backlog, &mut early);
    assert!(taken.len() == 3 && taken[2].starts_with("Deleted"), "{taken:?}");
    assert_eq!(take_all(&backlog, &mut late).len(), 2, "an add and a delete");
}

#[test]
fn i1_release_and_deletion_in_joined_sections_are_one_deletion() {
    let (backlog, mut early, mut late) = (SharedBacklog::new(true), None, None);
    publish(&backlog, &mut [&mut early], vec![Event::Released(object("a", 0))]);
    let add = Event::Added { object: object("a", 1), is_in_initial_list: false };
    let delete = Event::Deleted(Deleted::exact(object("a", 1)));
    publish(&backlog, &mut [&mut early, &mut late], vec![add, delete]);
    take_all(&backlog, &mut late);
    let taken = take_all(&backlog, &mut early);
    assert!(taken.len() == 1 && taken[0].starts_with("Deleted"), "{taken:?}");
}

#[test]
fn slow_handler_receives_only_the_resyncs_of_its_checks() {
    let (backlog, mut due, mut other) = (SharedBacklog::new(true), None, None);
    let mut resync = |name: &str, is_due: bool| {
        let batch = batch(vec![Event::Resynced(object(name, 0))]);
        backlog.push(&batch, &mut due, Vec::new(), is_due);
        backlog.push(&batch, &mut other, Vec::new(), false);
        backlog.finish();
    };
    resync("a", true);
    resync("b", false);
    assert_eq!(take_all(&backlog, &mut due), ["Resynced(Cached(a@1))"]);
    assert_eq!(take_all(&backlog, &mut other), [""; 0]);
    assert_eq!(sections(&backlog), 0);
}
