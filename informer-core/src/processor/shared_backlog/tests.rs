//! Coalescing for several slow handlers, and the events that each of them takes.

use super::*;
use crate::processor::batch::HandlerBatch;
use crate::{Cached, Event, EventBatch, ObjectKey};

fn object(name: &str, value: u64) -> Cached<u64> {
    Cached::from_parts(ObjectKey::cluster_scoped(name), (value + 1).into(), Default::default(), value)
}

fn batch(events: Vec<Event<u64>>) -> SharedBatch<u64> {
    HandlerBatch::shared(EventBatch { events, completes_initial_list: false })
}

fn update(name: &str, value: u64) -> Event<u64> {
    Event::Updated { old: object(name, value), new: object(name, value + 1) }
}

/// The batches that one slow handler has not taken; `None` while the handler is not behind.
type Part = Option<SharedPart>;

/// Publishes a batch for all `parts`.
fn publish(backlog: &SharedBacklog<u64>, parts: &mut [&mut Part], events: Vec<Event<u64>>) {
    let batch = batch(events);
    for part in parts {
        backlog.push(&batch, part, false);
    }
    backlog.finish();
}

/// Takes the next events of one handler, and returns their `Debug` output.
fn take(backlog: &SharedBacklog<u64>, part: &mut Part) -> Vec<String> {
    let taken = backlog.with_sections(&mut Garbage::none(), |sections, garbage| {
        backlog.coalesce(sections, garbage);
        backlog.seal(sections, part.as_ref().expect("the handler is behind").from);
        let taken = backlog.take(sections, part, None);
        backlog.tidy(sections, garbage);
        taken
    });
    let (taken, wants_resyncs) = taken.expect("the section exists");
    let is_wanted = |event: &&Event<u64>| wants_resyncs || !matches!(event, Event::Resynced(_));
    taken.events.events.iter().filter(is_wanted).map(|event| format!("{event:?}")).collect()
}

/// Takes all events of one handler, and returns their `Debug` output.
fn take_all(backlog: &SharedBacklog<u64>, part: &mut Part) -> Vec<String> {
    let mut all = Vec::new();
    while part.is_some() {
        all.extend(take(backlog, part));
    }
    all
}

/// Returns the number of sections of the backlog.
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
        backlog.push(&published, &mut quick, false);
        assert_eq!(take_all(&backlog, &mut quick).len(), 1 + usize::from(is_behind));
        backlog.push(&published, &mut late, false);
        backlog.finish();
        assert_eq!(take_all(&backlog, &mut late), ["Updated { old: Cached(b@1), new: Cached(b@2) }"]);
        assert_eq!(sections(&backlog), 0);
    }
}

#[test]
fn i11_section_that_was_taken_while_published_is_removed() {
    let (backlog, mut part) = (SharedBacklog::new(true), None);
    backlog.push(&batch(vec![update("a", 0)]), &mut part, false);
    assert_eq!(take_all(&backlog, &mut part).len(), 1);
    assert_eq!(sections(&backlog), 1, "another handler can still need the batch");
    backlog.finish();
    backlog.settle(&mut Garbage::none());
    assert_eq!(sections(&backlog), 0);
}

#[test]
fn i11_section_is_removed_with_its_last_handler() {
    let (backlog, mut part) = (SharedBacklog::new(true), None);
    publish(&backlog, &mut [&mut part], vec![update("a", 0)]);
    backlog.settle(&mut Garbage::none());
    assert_eq!(sections(&backlog), 1);
    // Another thread, which reads the statistics, has the sections while the handler is removed.
    backlog.with_sections(&mut Garbage::none(), |_, _| {
        backlog.remove(part.as_ref().expect("behind"), &mut Garbage::none());
    });
    assert_eq!(sections(&backlog), 0);
}

#[test]
fn i11_resyncs_and_later_updates_are_one_event_per_key() {
    let (backlog, mut part) = (SharedBacklog::new(true), None);
    backlog.push(&batch(vec![Event::Resynced(object("a", 0))]), &mut part, true);
    backlog.finish();
    publish(&backlog, &mut [&mut part], vec![update("a", 0)]);
    assert_eq!(take_all(&backlog, &mut part), ["Updated { old: Cached(a@1), new: Cached(a@2) }"]);
}

#[test]
fn slow_handler_receives_resyncs_only_if_they_were_due() {
    let (backlog, mut due, mut other) = (SharedBacklog::new(true), None, None);
    let resynced = batch(vec![Event::Resynced(object("a", 0))]);
    backlog.push(&resynced, &mut due, true);
    backlog.push(&resynced, &mut other, false);
    backlog.finish();
    assert_eq!(take_all(&backlog, &mut due), ["Resynced(Cached(a@1))"]);
    assert_eq!(take_all(&backlog, &mut other), [""; 0]);
    assert_eq!(sections(&backlog), 0);
}
