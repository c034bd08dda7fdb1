//! Handlers of every form. Each forwards its events to a [`Recorder`], which records the events and
//! the violations of invariants.

use std::panic::panic_any;
use std::sync::Arc;

use async_trait::async_trait;
use fastrand::Rng;
use futures::StreamExt;
use informer_core::{
    AsyncEventHandler, Cached, Deleted, Event, EventHandler, EventStream, HandlerRegistration, Handlers,
};
use informer_factory::Indexer;
use informer_testing::Replica;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Intended;
use crate::item::{Counted, Item};
use crate::world::World;

/// Records the events of one handler, and a violation for each event that violates an invariant.
pub(crate) struct Recorder {
    pub(crate) replica: Replica<Item>,
    pub(crate) indexer: Indexer<Item>,
    pub(crate) violations: Arc<Mutex<Vec<String>>>,
    /// If set, the recorder panics at random after it has recorded an event.
    pub(crate) panics: Option<Mutex<Rng>>,
    pub(crate) _counted: Counted,
    /// Dropped with the handler, so that tests can detect leaks.
    pub(crate) _token: Arc<()>,
}

impl Recorder {
    fn report_if(&self, wrong: bool, key: &informer_core::ObjectKey, what: &str) {
        if wrong {
            self.violations.lock().push(format!("{key}: {what}"));
        }
    }

    fn maybe_panic(&self) {
        if self.panics.as_ref().is_some_and(|random| random.lock().u8(..32) == 0) {
            panic_any(Intended);
        }
    }

    /// Checks invariant I3: the store has an object before a handler receives the object.
    fn compare(&self, received: &Cached<Item>) {
        let stored = self.indexer.get(received.key());
        let is_early =
            stored.is_some_and(|stored| received.resource_version().is_newer_than(stored.resource_version()));
        self.report_if(is_early, received.key(), "delivered before the store had this version");
    }
}

impl EventHandler<Item> for Recorder {
    fn on_add(&self, object: &Cached<Item>, is_in_initial_list: bool) {
        self.compare(object);
        self.replica.on_add(object, is_in_initial_list);
        self.maybe_panic();
    }

    fn on_update(&self, old: &Cached<Item>, new: &Cached<Item>) {
        self.compare(new);
        self.replica.on_update(old, new);
        self.maybe_panic();
    }

    fn on_delete(&self, object: &Deleted<Item>) {
        let stored = self.indexer.get(object.key());
        let last = object.last_known().map(Cached::resource_version);
        let is_there =
            stored.zip(last).is_some_and(|(stored, last)| last.is_at_least(stored.resource_version()));
        self.report_if(is_there, object.key(), "deletion delivered while the store had the object");
        self.replica.on_delete(object);
        self.maybe_panic();
    }
}

/// Suspends calls at random: briefly, so that other tasks run, or until the next phase of the test
/// if the handler stalls.
pub(crate) struct Pauses {
    pub(crate) random: Mutex<Rng>,
    pub(crate) phase: Option<watch::Receiver<u64>>,
}

impl Pauses {
    pub(crate) async fn pause(&self) {
        if let Some(phase) = self.stall() {
            next_phase(phase).await;
        } else if self.random.lock().bool() {
            tokio::task::yield_now().await;
        }
    }

    /// Decides at random whether the handler stalls now. If so, returns the channel that announces the
    /// next phase.
    fn stall(&self) -> Option<watch::Receiver<u64>> {
        self.phase.clone().filter(|_| self.random.lock().u8(..16) == 0)
    }
}

async fn next_phase(mut phase: watch::Receiver<u64>) {
    let now = *phase.borrow_and_update();
    // An error means that the test has ended.
    _ = phase.wait_for(|phase| *phase != now || now == World::NO_MORE_STALLS).await;
}

/// An async handler that pauses at random before and after it records an event.
pub(crate) struct Asynchronous {
    pub(crate) recorder: Recorder,
    pub(crate) pauses: Pauses,
}

#[async_trait]
impl AsyncEventHandler<Item> for Asynchronous {
    async fn on_add(&self, object: &Cached<Item>, is_in_initial_list: bool) {
        self.pauses.pause().await;
        self.recorder.on_add(object, is_in_initial_list);
        self.pauses.pause().await;
    }

    async fn on_update(&self, old: &Cached<Item>, new: &Cached<Item>) {
        self.pauses.pause().await;
        self.recorder.on_update(old, new);
        self.pauses.pause().await;
    }

    async fn on_delete(&self, object: &Deleted<Item>) {
        self.pauses.pause().await;
        self.recorder.on_delete(object);
        self.pauses.pause().await;
    }
}

/// A sync handler that blocks its thread at random.
pub(crate) struct Blocking {
    pub(crate) recorder: Recorder,
    pub(crate) pauses: Pauses,
}

impl Blocking {
    fn block(&self) {
        if let Some(phase) = self.pauses.stall() {
            // The runtime moves the other tasks of this thread to another thread.
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(next_phase(phase)));
        }
    }
}

impl EventHandler<Item> for Blocking {
    fn on_add(&self, object: &Cached<Item>, is_in_initial_list: bool) {
        self.recorder.on_add(object, is_in_initial_list);
        self.block();
    }

    fn on_update(&self, old: &Cached<Item>, new: &Cached<Item>) {
        self.recorder.on_update(old, new);
        self.block();
    }

    fn on_delete(&self, object: &Deleted<Item>) {
        self.recorder.on_delete(object);
        self.block();
    }
}

/// A handler that removes itself after some calls.
pub(crate) struct Leaver {
    pub(crate) recorder: Recorder,
    pub(crate) registration: Arc<Mutex<Option<HandlerRegistration>>>,
    /// The number of calls after which the handler removes itself.
    pub(crate) after: u64,
}

impl Leaver {
    fn leave_when_due(&self) {
        if self.recorder.replica.calls() >= self.after {
            let registration = self.registration.lock().take();
            drop(registration);
        }
    }
}

impl EventHandler<Item> for Leaver {
    fn on_add(&self, object: &Cached<Item>, is_in_initial_list: bool) {
        self.recorder.on_add(object, is_in_initial_list);
        self.leave_when_due();
    }

    fn on_update(&self, old: &Cached<Item>, new: &Cached<Item>) {
        self.recorder.on_update(old, new);
        self.leave_when_due();
    }

    fn on_delete(&self, object: &Deleted<Item>) {
        self.recorder.on_delete(object);
        self.leave_when_due();
    }
}

/// A handler that consists of closures.
pub(crate) fn closures(recorder: Recorder) -> Handlers<Item> {
    let for_adds = Arc::new(recorder);
    let (for_updates, for_deletes) = (Arc::clone(&for_adds), Arc::clone(&for_adds));
    Handlers::new()
        .on_add(move |object, is_in_initial_list| for_adds.on_add(object, is_in_initial_list))
        .on_update(move |old, new| for_updates.on_update(old, new))
        .on_delete(move |object| for_deletes.on_delete(object))
}

/// Reads a stream until the token is cancelled or the stream ends.
pub(crate) async fn read(
    mut events: EventStream<Item>,
    recorder: Recorder,
    pauses: Pauses,
    stop: CancellationToken,
) {
    while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
        match &event {
            Event::Added { object, is_in_initial_list } => recorder.on_add(object, *is_in_initial_list),
            Event::Updated { old, new } => recorder.on_update(old, new),
            Event::Resynced(object) => recorder.on_update(object, object),
            Event::Deleted(deleted) => recorder.on_delete(deleted),
            Event::Released(_) => unreachable!("this informer removes no namespaces"),
        }
        stop.run_until_cancelled(pauses.pause()).await;
    }
}
