//! [`Recorder`]: the events of a handler. Their order is checked at once, and their content is
//! compared with the server's history afterwards.

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
use crate::late::Beginning;
use crate::truth::{Scope, Sight, Truth};

/// A handler that records all its events. Clones are the same handler.
#[derive(Clone)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    pub(crate) scope: Scope,
    history: History,
    /// How long each call takes, for an async handler.
    delay: Duration,
    synced: OnceLock<Completion>,
    truth: Truth,
    /// The store that must have what is told, and what it is to hold.
    indexer: Indexer<Item>,
    stored: Scope,
    notes: Mutex<Notes>,
    beginning: Mutex<Beginning>,
    calls: watch::Sender<u64>,
}

#[derive(Default)]
struct Notes {
    /// What exists, by what was heard: keys and resource versions.
    copy: BTreeMap<String, u64>,
    heard: BTreeMap<String, Vec<Heard>>,
    busy: bool,
    /// Whether the handler was removed, so that it must receive nothing more.
    removed: bool,
}

#[derive(Clone, Debug)]
enum Heard {
    Version(Sight),
    /// The same version once more.
    Again(Sight),
    /// The deletion; with its own version, if that was seen.
    Gone(Option<u64>),
}

impl Recorder {
    /// Returns a handler of this name for an informer with such a store; `even` says whether it is
    /// behind a filter, and `delay` how long each of its calls takes.
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
            beginning: Mutex::new(Beginning::of(informer, scope)),
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

    /// Tells when the registration is synced.
    pub(crate) fn is_synced_by(&self, synced: Completion) {
        // It is registered once.
        _ = self.shared.synced.set(synced);
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.shared.synced.get().is_some_and(Completion::has_synced)
    }

    /// Waits until it is synced, and says whether it is. The reader of a stream is when it comes
    /// back for more, which is after it has heard of everything.
    pub(crate) async fn synced(&self) -> bool {
        match self.shared.synced.get() {
            Some(synced) => synced.wait().await.is_ok(),
            None => false,
        }
    }

    pub(crate) fn was_removed(&self) {
        self.shared.notes.lock().removed = true;
    }

    pub(crate) fn copy(&self) -> BTreeMap<String, u64> {
        self.shared.notes.lock().copy.clone()
    }

    /// Waits until the copy is as wanted.
    pub(crate) async fn wait_until(&self, is_wanted: impl Fn(&BTreeMap<String, u64>) -> bool) {
        let mut calls = self.shared.calls.subscribe();
        while !is_wanted(&self.copy()) {
            // The sender lives as long as this.
            _ = calls.changed().await;
        }
    }

    /// Notes an event that a stream has brought.
    pub(crate) fn hear(&self, event: &Event<Item>) {
        match event {
            Event::Added { object, is_in_initial_list } => self.added(object, *is_in_initial_list),
            Event::Updated { old, new } => self.updated(old, new),
            Event::Resynced(object) => self.updated(object, object),
            Event::Deleted(deleted) => self.deleted(deleted),
            Event::Released(object) => {
                self.complain(
                    &object.key().to_string(),
                    "I4: released, though no namespace ceases to be followed",
                );
            }
        }
    }

    fn added(&self, object: &Cached<Item>, is_initial: bool) {
        let (key, version) = (object.key().to_string(), number(object));
        self.say(&key, &format!("+{version}{}", if is_initial { " initial" } else { "" }));
        if is_initial && self.has_synced() {
            self.complain(&key, "I6: an initial add after it was synced");
        }
        if let Err(wrong) = self.shared.beginning.lock().added(&key, version, is_initial) {
            self.complain(&key, &wrong);
        }
        let before = self.note(&key, Heard::Version(Sight::of(object)), Some(version));
        if before.is_some() {
            self.complain(&key, "I4: an add of what was there");
        }
    }

    fn updated(&self, old: &Cached<Item>, new: &Cached<Item>) {
        let (key, sight, is_same_object) = (new.key().to_string(), Sight::of(new), old.uid() == new.uid());
        let (old, new) = (number(old), number(new));
        self.say(&key, &format!("{old}->{new}"));
        if !is_same_object {
            self.complain(&key, &format!("I4: from {old} to {new}, the end of one object is not told"));
        }
        let heard = if old == new { Heard::Again(sight) } else { Heard::Version(sight) };
        match self.note(&key, heard, Some(new)) {
            None => self.complain(&key, "I4: an update of what was not there"),
            Some(before) if before != old => {
                self.complain(&key, &format!("I4: an update from {old} after {before}"));
            }
            Some(_) => {}
        }
    }

    fn deleted(&self, deleted: &Deleted<Item>) {
        let key = deleted.key().to_string();
        let version = deleted.last_known().filter(|_| deleted.is_exact()).map(number);
        self.say(&key, &format!("-{}", version.map_or("missed".to_owned(), |version| version.to_string())));
        // A filter says delete where it means that the object is out of its sight, with the last
        // state before.
        let version = version.filter(|_| !self.shared.scope.even);
        if self.note(&key, Heard::Gone(version), None).is_none() {
            self.complain(&key, "I4: a delete of what was not there");
        }
    }

    /// Notes what was heard, and returns what there was before.
    fn note(&self, key: &str, heard: Heard, now: Option<u64>) -> Option<u64> {
        let (before, removed) = {
            let mut notes = self.shared.notes.lock();
            notes.heard.entry(key.to_owned()).or_default().push(heard);
            let before = match now {
                Some(version) => notes.copy.insert(key.to_owned(), version),
                None => notes.copy.remove(key),
            };
            (before, notes.removed)
        };
        if let Some(told) = now {
            let stored = self.shared.indexer.get_by_key(key).map(|object| number(&object));
            if !self.shared.truth.may_tell(&self.shared.stored, key, stored, told) {
                self.complain(key, &format!("I3: told of {told} when the store had {stored:?}"));
            }
        }
        self.check_beginning();
        if removed {
            self.complain(key, "I12: a call after the handler was removed");
        }
        self.shared.calls.send_modify(|calls| *calls += 1);
        before
    }

    /// I5: checks that nothing that was there was left out, once the handler counts as synced.
    fn check_beginning(&self) {
        let missing = self.shared.beginning.lock().missing(self.has_synced());
        if let Some(key) = missing {
            self.complain(&key, "I5: synced without a word of what was there when it joined");
        }
    }

    /// Holds a call open for as long as this handler takes.
    async fn take_time(&self, key: &str) {
        if std::mem::replace(&mut self.shared.notes.lock().busy, true) {
            self.complain(key, "I4: two calls at once");
        }
        let call = Call(&self.shared);
        if self.shared.delay.is_zero() {
            tokio::task::yield_now().await;
        } else {
            // No real time goes by: the run is `start_paused`.
            tokio::time::sleep(self.shared.delay).await;
        }
        drop(call);
    }

    fn say(&self, key: &str, what: &str) {
        self.shared.history.note_of(key, format!("{} hears {what}", self.shared.name));
    }

    fn complain(&self, key: &str, what: &str) {
        self.shared.history.violation(Some(key), format!("{}: {what}", self.shared.name));
    }

    /// I1, I5: checks that nothing is missing of the beginning, and that all that was heard are
    /// sights of the truth, in order.
    pub(crate) fn check_order(&self) {
        self.check_beginning();
        let heard = self.shared.notes.lock().heard.clone();
        for (key, heard) in &heard {
            let sights = self.shared.truth.sights(&self.shared.scope, key);
            if let Err(wrong) = follow(&sights, heard) {
                self.complain(key, &wrong);
            }
        }
    }
}

/// Says which of the things heard is not a sight that comes after the ones before it, or follows on
/// another object of the same name whose end was not heard of.
fn follow(sights: &[Sight], heard: &[Heard]) -> Result<(), String> {
    let mut next = 0;
    let mut alive: Option<&Uid> = None;
    for what in heard {
        let misplaced = || format!("I1: {what:?} has no place after what came before it");
        let found = match what {
            Heard::Again(seen) if next > 0 && sights[next - 1] == *seen => continue,
            Heard::Again(_) => None,
            Heard::Version(seen) => sights[next..].iter().position(|sight| sight == seen),
            Heard::Gone(version) => sights[next..].iter().position(|sight| match sight {
                Sight::Gone(at) => version.is_none_or(|version| version == *at),
                _ => false,
            }),
        };
        next += found.ok_or_else(misplaced)? + 1;
        let now = match what {
            Heard::Version(Sight::Version(_, uid)) => Some(uid),
            _ => None,
        };
        if alive.zip(now).is_some_and(|(before, now)| before != now) {
            return Err(format!("I4: {what:?} without a word of the end of {alive:?}"));
        }
        alive = now;
    }
    Ok(())
}

pub(crate) fn number(object: &Cached<Item>) -> u64 {
    object.resource_version().to_string().parse().unwrap_or_default()
}

/// A call that is under way.
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

/// The same handler, taking its time with each call; what it heard counts when the call is over.
pub(crate) struct Slow(pub(crate) Recorder);

#[async_trait]
impl AsyncEventHandler<Item> for Slow {
    async fn on_add(&self, object: &Cached<Item>, is_in_initial_list: bool) {
        self.0.take_time(object.key().as_str()).await;
        self.0.added(object, is_in_initial_list);
    }

    async fn on_update(&self, old: &Cached<Item>, new: &Cached<Item>) {
        self.0.take_time(new.key().as_str()).await;
        self.0.updated(old, new);
    }

    async fn on_delete(&self, object: &Deleted<Item>) {
        self.0.take_time(object.key().as_str()).await;
        self.0.deleted(object);
    }
}

/// The same handler, which panics in every third call, after it has heard.
pub(crate) struct Panicking {
    pub(crate) recorder: Recorder,
    pub(crate) calls: AtomicU32,
}

impl Panicking {
    fn perhaps_panic(&self) {
        if self.calls.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
            // As a panic, but that nothing is printed.
            std::panic::resume_unwind(Box::new("planned"));
        }
    }
}

impl EventHandler<Item> for Panicking {
    fn on_add(&self, object: &Cached<Item>, is_in_initial_list: bool) {
        self.recorder.added(object, is_in_initial_list);
        self.perhaps_panic();
    }

    fn on_update(&self, old: &Cached<Item>, new: &Cached<Item>) {
        self.recorder.updated(old, new);
        self.perhaps_panic();
    }

    fn on_delete(&self, object: &Deleted<Item>) {
        self.recorder.deleted(object);
        self.perhaps_panic();
    }
}
