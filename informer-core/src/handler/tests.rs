//! The calls that each kind of handler receives: client-go's scenarios of `typed_test.go`.

use std::marker::PhantomData;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{AnyHandler as _, SyncHandler};
use crate::{Cached, Deleted, Event, EventHandler, Filtered, Handlers, ObjectKey};

fn _is_object_safe(_: &dyn EventHandler<()>, _: &dyn crate::AsyncEventHandler<()>) {}

fn object(value: u64) -> Cached<u64> {
    Cached::from_parts(ObjectKey::namespaced("ns", "a"), value.into(), Default::default(), value)
}

/// Returns a handler with all closures, and the log of their calls.
fn closures() -> (Handlers<u64>, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let [add, update, delete, release] = [0; 4].map(|_| Arc::clone(&calls));
    let handlers = Handlers::new()
        .on_add(move |object: &Cached<u64>, initial| add.lock().push(format!("+{} {initial}", **object)))
        .on_update(move |old, new| update.lock().push(format!("{}>{}", **old, **new)))
        .on_delete(move |gone: &Deleted<u64>| {
            let state = gone.last_known().map(|last| **last);
            delete.lock().push(format!("-{} {state:?} {}", gone.key(), gone.is_exact()));
        })
        .on_release(move |object| release.lock().push(format!("^{}", **object)));
    (handlers, calls)
}

fn all_kinds() -> [Event<u64>; 6] {
    [
        Event::Added { object: object(1), is_in_initial_list: true },
        Event::Updated { old: object(1), new: object(2) },
        Event::Resynced(object(2)),
        Event::Deleted(Deleted::exact(object(3))),
        Event::Deleted(Deleted::missed(object(3).key().clone(), None)),
        Event::Released(object(4)),
    ]
}

fn deliver(handler: impl EventHandler<u64>, events: impl IntoIterator<Item = Event<u64>>) {
    let handler = SyncHandler(handler, PhantomData);
    for event in events {
        assert!(handler.call(&event.cast()).is_none(), "a sync call returns no future");
    }
}

#[test]
fn each_closure_receives_its_kind_of_event() {
    let (handlers, calls) = closures();
    deliver(handlers, all_kinds());
    assert_eq!(*calls.lock(), ["+1 true", "1>2", "2>2", "-ns/a Some(3) true", "-ns/a None false", "^4"]);
}

#[test]
fn missing_closures_do_nothing() {
    let handlers = Handlers::default();
    let shown = format!("{handlers:?}");
    deliver(handlers, all_kinds());
    assert_eq!(shown, "Handlers { on_add: false, on_update: false, on_delete: false, on_release: false }");
}

#[test]
fn filter_converts_crossing_updates_to_adds_and_deletes() {
    let (handlers, calls) = closures();
    let even = Filtered::new(|value: &u64| value.is_multiple_of(2), handlers);
    let updates = [(2, 4), (1, 2), (2, 3), (1, 3)];
    deliver(even, updates.map(|(old, new)| Event::Updated { old: object(old), new: object(new) }));
    assert_eq!(*calls.lock(), ["2>4", "+2 false", "-ns/a Some(2) true"]);
}

#[test]
fn delete_that_a_filter_makes_has_the_previous_state() {
    let previous = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&previous);
    let note = move |gone: &Deleted<u64>| *seen.lock() = gone.previous().map(|object| **object);
    let even = Filtered::new(|value: &u64| value.is_multiple_of(2), Handlers::new().on_delete(note));
    deliver(even, [Event::Updated { old: object(2), new: object(3) }]);
    assert_eq!(*previous.lock(), Some(2));
}

#[test]
fn filter_passes_events_of_matching_objects() {
    let (handlers, calls) = closures();
    let even = Filtered::new(|value: &u64| value.is_multiple_of(2), handlers);
    let events = [1, 2].map(|value| {
        [
            Event::Added { object: object(value), is_in_initial_list: true },
            Event::Deleted(Deleted::exact(object(value))),
            Event::Released(object(value)),
        ]
    });
    deliver(even, events.into_iter().flatten());
    assert_eq!(*calls.lock(), ["+2 true", "-ns/a Some(2) true", "^2"]);
}

#[test]
fn filter_of_a_tombstone_uses_the_known_state() {
    let (handlers, calls) = closures();
    let even = Filtered::new(|value: &u64| value.is_multiple_of(2), handlers);
    let key = || object(1).key().clone();
    let ends = [
        Deleted::missed(key(), None),
        Deleted::missed(key(), Some(object(1))),
        Deleted::missed(key(), Some(object(2))),
        Deleted::exact(object(3)).after(object(2)),
        Deleted::exact(object(2)).after(object(1)),
    ];
    deliver(even, ends.map(Event::Deleted));
    assert_eq!(*calls.lock(), ["-ns/a None false", "-ns/a Some(2) false", "-ns/a Some(3) true"]);
}

#[test]
fn arc_of_a_handler_is_a_handler() {
    let (handlers, calls) = closures();
    let shared: Arc<dyn EventHandler<u64>> = Arc::new(handlers);
    deliver(shared, all_kinds());
    assert_eq!(calls.lock().len(), 6);
}
