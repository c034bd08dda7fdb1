//! Coalescing for several slow handlers, and its counts.

use super::*;
use crate::{Cached, Deleted, EventBatch};

fn object(name: &str, value: u64) -> Cached<u64> {
    Cached::from_parts(ObjectKey::cluster_scoped(name), (value + 1).into(), Default::default(), value)
}

fn batch(event: Event<u64>) -> SharedBatch<u64> {
    Arc::new(EventBatch { events: vec![event], completes_initial_list: false })
}

fn updated(value: u64) -> SharedBatch<u64> {
    batch(Event::Updated { old: object("a", value), new: object("a", value + 1) })
}

fn publish(backlog: &SharedBacklog<u64>, batch: &SharedBatch<u64>) {
    backlog.stage(batch);
    backlog.finish();
}

fn events(periods: &[Arc<Period<u64>>]) -> Vec<String> {
    let (mut all, mut garbage) = (Coalesced::new(true), Vec::new());
    for period in periods {
        let places = 0..period.coalesced.places();
        all.absorb(&period.coalesced, places, Merge::Handler { wants_resyncs: false }, &mut garbage);
    }
    all.take(99).iter().map(|event| format!("{event:?}")).collect()
}

#[test]
fn i11_batches_for_fifty_stuck_handlers_are_coalesced_once() {
    let backlog = SharedBacklog::new(true);
    let places: Vec<_> = (0..50).map(|_| backlog.join(&updated(0), Some(Vec::new()))).collect();
    backlog.finish();
    for value in 1..1_000 {
        publish(&backlog, &updated(value));
    }
    assert_eq!(backlog.periods.lock().periods.len(), 0, "the publisher coalesces nothing");
    let garbage = &mut Garbage::none();
    backlog.settle(garbage);
    let lengths = |backlog: &SharedBacklog<u64>| {
        let periods = backlog.periods.lock();
        periods.periods.iter().map(|period| period.coalesced.len()).collect::<Vec<_>>()
    };
    assert_eq!(lengths(&backlog), [1]);
    for from in places {
        let taken = backlog.take(from, 1_000, garbage);
        assert_eq!(events(&taken), ["Updated { old: Cached(a@1), new: Cached(a@1001) }"]);
    }
    assert_eq!(lengths(&backlog), [0; 0], "no handler needs the period any more");
}

#[test]
fn i11_publisher_does_not_wait_for_a_merging_handler() {
    let backlog = SharedBacklog::new(true);
    let from = backlog.join(&updated(0), Some(Vec::new()));
    let held = backlog.periods.lock();
    backlog.finish();
    publish(&backlog, &updated(1));
    backlog.settle(&mut Garbage::none());
    drop(held);
    let taken = backlog.take(from, 2, &mut Garbage::none());
    assert_eq!(events(&taken), ["Updated { old: Cached(a@1), new: Cached(a@3) }"]);
}

#[test]
fn i11_periods_are_joined_when_no_handler_begins_between_them() {
    let (backlog, garbage) = (SharedBacklog::new(true), &mut Garbage::none());
    let stuck = backlog.join(&updated(0), Some(Vec::new()));
    backlog.finish();
    for value in 1..100 {
        let slow = backlog.join(&updated(value), Some(Vec::new()));
        backlog.finish();
        drop(backlog.take(slow, value + 1, garbage));
        backlog.caught_up();
    }
    assert!(backlog.periods.lock().periods.len() <= 3);
    let taken = backlog.take(stuck, 100, garbage);
    assert_eq!(events(&taken), ["Updated { old: Cached(a@1), new: Cached(a@101) }"]);
}

#[test]
fn i1_deletion_after_a_release_is_kept_for_slow_handlers() {
    let (backlog, garbage) = (SharedBacklog::new(true), &mut Garbage::none());
    let early = backlog.join(&batch(Event::Released(object("a", 0))), Some(Vec::new()));
    backlog.finish();
    let late = backlog.join(&batch(Event::Added { object: object("a", 1), is_in_initial_list: false }), None);
    backlog.finish();
    publish(&backlog, &batch(Event::Deleted(Deleted::exact(object("a", 1)))));
    assert_eq!(events(&backlog.take(late, 3, garbage)), [""; 0], "the object was added and deleted");
    let told = events(&backlog.take(early, 3, garbage));
    assert!(told.len() == 1 && told[0].starts_with("Deleted"), "{told:?}");
}
