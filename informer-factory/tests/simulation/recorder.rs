//! [`Recorder`]: records the events of a handler. Each event is checked when it is received, and all
//! events are compared with the server's history afterwards.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use informer_factory::{AsyncEventHandler, Cached, Completion, Deleted, Event, EventHandler, Indexer, Uid};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::history::History;
use crate::informer::Informer;
use crate::item::Item;
use crate::late::InitialAdds;
use crate::truth::{Observation, Scope, Truth};

/// A handler that records all its events. Clones share their state.
#[derive(Clone)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    pub(crate) scope: Scope,
    history: History,
    /// The duration of each call, for an async handler.
    delay: Duration,
    synced: OnceLock<Completion>,
    truth: Truth,
    /// The informer's store, which must have each object before its delivery.
    indexer: Indexer<Item>,
    /// The objects that the store contains.
    stored: Scope,
    notes: Mutex<Notes>,
    initial_adds: Mutex<InitialAdds>,
    calls: watch::Sender<u64>,
}

#[derive(Default)]
struct Notes {
    /// The objects that exist according to the events: keys and resource versions.
    copy: BTreeMap<String, u64>,
    received: BTreeMap<String, Vec<Received>>,
    busy: bool,
    /// Set once the handler is removed; later calls are violations.
    removed: bool,
}

#[derive(Clone, Debug)]
enum Received {
    Version(Observation),
    /// The same version again, as in a resync.
    Again(Observation),
    /// A deletion, with its version if the watch reported it.
    Gone(Option<u64>),
}

impl Recorder {
    /// Returns a recorder for a handler of the informer. `even` means that a filter passes only
    /// objects with even numbers to the handler, and `delay` is the duration of each call.
    pub(crate) fn new(name: String, informer: &Informer, even: bool, delay: Duration) -> Self {
        let scope = Scope { even, ..informer.scope };
        let shared = Shared {
            name,
            scope,
            history: informer.history.clone(),
            delay,
            truth: informer.truth.clone(),
            indexer: informer.shared.indexer().clone(),
            stored: informer.scope,
            synced: OnceLock::new(),
            notes: Mutex::default(),
            initial_adds: Mutex::new(InitialAdds::of(informer, scope)),
            calls: watch::Sender::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    pub(crate) fn scope(&self) -> Scope {
        self.shared.scope
    }

    /// Sets the completion of the handler's registration.
    pub(crate) fn set_synced(&self, synced: Completion) {
        // Each recorder is registered once.
        _ = self.shared.synced.set(synced);
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.shared.synced.get().is_some_and(Completion::has_synced)
    }

    /// Waits until the registration is synced, and returns whether it is. A stream is synced when
    /// its reader polls again after the last initial event.
    pub(crate) async fn synced(&self) -> bool {
        match self.shared.synced.get() {
            Some(synced) => synced.wait().await.is_ok(),
            None => false,
        }
    }

    pub(crate) fn set_removed(&self) {
        self.shared.notes.lock().removed = true;
    }

    pub(crate) fn copy(&self) -> BTreeMap<String, u64> {
        self.shared.notes.lock().copy.clone()
    }

    /// Waits until the objects that exist according to the events satisfy the predicate.
    pub(crate) async fn wait_until(&self, is_wanted: impl Fn(&BTreeMap<String, u64>) -> bool) {
        let mut calls = self.shared.calls.subscribe();
        while !is_wanted(&self.copy()) {
            // `self` owns the sender, so this cannot fail.
            _ = calls.changed().await;
        }
    }

    /// Records an event of a stream.
    pub(crate) fn record_event(&self, event: &Event<Item>) {
        match event {
            Event::Added { object, is_in_initial_list } => self.added(object, *is_in_initial_list),
            Event::Updated { old, new } => self.updated(old, new),
            Event::Resynced(object) => self.updated(object, object),
            Event::Deleted(deleted) => self.deleted(deleted),
            Event::Released(object) => {
                self.report_violation(
                    &object.key().to_string(),
                    "I4: released, but no namespace was removed",
                );
            }
        }
    }

    fn added(&self, object: &Cached<Item>, is_initial: bool) {
        let (key, version) = (object.key().to_string(), number(object));
        self.log(&key, &format!("+{version}{}", if is_initial { " initial" } else { "" }));
        if is_initial && self.has_synced() {
            self.report_violation(&key, "I6: an initial add after the handler was synced");
        }
        if let Err(wrong) = self.shared.initial_adds.lock().added(&key, version, is_initial) {
            self.report_violation(&key, &wrong);
        }
        let before = self.record(&key, Received::Version(Observation::of(object)), Some(version));
        if before.is_some() {
            self.report_violation(&key, "I4: an add of an existing object");
        }
    }

    fn updated(&self, old: &Cached<Item>, new: &Cached<Item>) {
        let (key, observation, is_same_object) =
            (new.key().to_string(), Observation::of(new), old.uid() == new.uid());
        let (old, new) = (number(old), number(new));
        self.log(&key, &format!("{old}->{new}"));
        if !is_same_object {
            self.report_violation(&key, &format!("I4: an update from {old} to {new} with another UID"));
        }
        let received = if old == new { Received::Again(observation) } else { Received::Version(observation) };
        match self.record(&key, received, Some(new)) {
            None => self.report_violation(&key, "I4: an update of an unknown object"),
            Some(before) if before != old => {
                self.report_violation(
                    &key,
                    &format!("I4: an update from {old}, but the last received version is {before}"),
                );
            }
            Some(_) => {}
        }
    }

    fn deleted(&self, deleted: &Deleted<Item>) {
        let key = deleted.key().to_string();
        let version = deleted.last_known().filter(|_| deleted.is_exact()).map(number);
        self.log(&key, &format!("-{}", version.map_or("missed".to_owned(), |version| version.to_string())));
        // If an object stops matching, a filter delivers a delete with the last matching state.
        // That state is older than the change, so its version is not checked.
        let version = version.filter(|_| !self.shared.scope.even);
        if self.record(&key, Received::Gone(version), None).is_none() {
            self.report_violation(&key, "I4: a delete of an unknown object");
        }
    }

    /// Records an event, and returns the previous version in the copy.
    fn record(&self, key: &str, received: Received, now: Option<u64>) -> Option<u64> {
        let (before, removed) = {
            let mut notes = self.shared.notes.lock();
            notes.received.entry(key.to_owned()).or_default().push(received);
            let before = match now {
                Some(version) => notes.copy.insert(key.to_owned(), version),
                None => notes.copy.remove(key),
            };
            (before, notes.removed)
        };
        if let Some(delivered) = now {
            let stored = self.shared.indexer.get_by_key(key).map(|object| number(&object));
            if !self.shared.truth.may_deliver(&self.shared.stored, key, stored, delivered) {
                self.report_violation(
                    key,
                    &format!("I3: received {delivered} when the store had {stored:?}"),
                );
            }
        }
        self.check_initial_adds();
        if removed {
            self.report_violation(key, "I12: a call after the handler was removed");
        }
        self.shared.calls.send_modify(|calls| *calls += 1);
        before
    }

    /// Checks invariant I5: a synced handler has received every object that existed when it joined.
    fn check_initial_adds(&self) {
        let missing = self.shared.initial_adds.lock().missing(self.has_synced());
        if let Some(key) = missing {
            self.report_violation(&key, "I5: synced without an object that existed when the handler joined");
        }
    }

    /// Keeps a call open for the handler's delay.
    async fn wait_in_call(&self, key: &str) {
        if std::mem::replace(&mut self.shared.notes.lock().busy, true) {
            self.report_violation(key, "I4: two calls at once");
        }
        let call = Call(&self.shared);
        if self.shared.delay.is_zero() {
            tokio::task::yield_now().await;
        } else {
            // The clock is paused (`start_paused`), so no real time passes.
            tokio::time::sleep(self.shared.delay).await;
        }
        drop(call);
    }

    fn log(&self, key: &str, what: &str) {
        self.shared.history.log_object(key, format!("{} receives {what}", self.shared.name));
    }

    fn report_violation(&self, key: &str, what: &str) {
        self.shared.history.violation(Some(key), format!("{}: {what}", self.shared.name));
    }

    /// Checks the invariants I1 and I5: no initial object is missing, and the received events are
    /// observations of the server's history in order.
    pub(crate) fn check_order(&self) {
        self.check_initial_adds();
        let received = self.shared.notes.lock().received.clone();
        for (key, received) in &received {
            let observations = self.shared.truth.observations(&self.shared.scope, key);
            if let Err(wrong) = check_sequence(&observations, received) {
                self.report_violation(key, &wrong);
            }
        }
    }
}

/// Returns an error for the first event that is out of order. Also returns an error if an object
/// was deleted and created again, and the new object was delivered without the deletion before it.
fn check_sequence(observations: &[Observation], received: &[Received]) -> Result<(), String> {
    let mut next = 0;
    let mut alive: Option<&Uid> = None;
    for what in received {
        let misplaced = || format!("I1: {what:?} is out of order");
        let found = match what {
            Received::Again(seen) if next > 0 && observations[next - 1] == *seen => continue,
            Received::Again(_) => None,
            Received::Version(seen) => {
                observations[next..].iter().position(|observation| observation == seen)
            }
            Received::Gone(version) => {
                observations[next..].iter().position(|observation| match observation {
                    Observation::Gone(at) => version.is_none_or(|version| version == *at),
                    _ => false,
                })
            }
        };
        next += found.ok_or_else(misplaced)? + 1;
        let now = match what {
            Received::Version(Observation::Version(_, uid)) => Some(uid),
            _ => None,
        };
        if alive.zip(now).is_some_and(|(before, now)| before != now) {
            return Err(format!("I4: {what:?} without a deletion of {alive:?}"));
        }
        alive = now;
    }
    Ok(())
}

pub(crate) fn number(object: &Cached<Item>) -> u64 {
    object.resource_version().to_string().parse().unwrap_or_default()
}

/// Marks the end of a call when dropped.
struct Call<'a>(&'a Shared);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.notes.lock().busy = false;
    }
}

impl EventHandler<Item> for Recorder {
    fn on_add(&self, object: &Cached<Item>, is_in_initial_list: bool) {
        self.added(object, is_in_initial_list);
    }

    fn on_update(&self, old: &Cached<Item>, new: &Cached<Item>) {
        self.updated(old, new);
    }

    fn on_delete(&self, object: &Deleted<Item>) {
        self.deleted(object);
    }
}

/// A recorder as an async handler with a delay. An event is recorded at the end of the call.
pub(crate) struct Slow(pub(crate) Recorder);

#[async_trait]
impl AsyncEventHandler<Item> for Slow {
    async fn on_add(&self, object: &Cached<Item>, is_in_initial_list: bool) {
        self.0.wait_in_call(object.key().as_str()).await;
        self.0.added(object, is_in_initial_list);
    }

    async fn on_update(&self, old: &Cached<Item>, new: &Cached<Item>) {
        self.0.wait_in_call(new.key().as_str()).await;
        self.0.updated(old, new);
    }

    async fn on_delete(&self, object: &Deleted<Item>) {
        self.0.wait_in_call(object.key().as_str()).await;
        self.0.deleted(object);
    }
}

/// A recorder that panics in every third call, after it has recorded the event.
pub(crate) struct Panicking {
    pub(crate) recorder: Recorder,
    pub(crate) calls: AtomicU32,
}

impl Panicking {
    fn maybe_panic(&self) {
        if self.calls.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
            // Like a panic, but without a message on stderr.
            std::panic::resume_unwind(Box::new("planned"));
        }
    }
}

impl EventHandler<Item> for Panicking {
    fn on_add(&self, object: &Cached<Item>, is_in_initial_list: bool) {
        self.recorder.added(object, is_in_initial_list);
        self.maybe_panic();
    }

    fn on_update(&self, old: &Cached<Item>, new: &Cached<Item>) {
        self.recorder.updated(old, new);
        self.maybe_panic();
    }

    fn on_delete(&self, object: &Deleted<Item>) {
        self.recorder.deleted(object);
        self.maybe_panic();
    }
}
