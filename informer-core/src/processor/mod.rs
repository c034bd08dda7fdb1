//! [`SharedProcessor`]: tells every handler what has happened, each at its own pace.
//!
//! client-go: `sharedProcessor` of `tools/cache/shared_informer.go`. Here all handlers share one batch of events behind
//! a reference count, and a handler that falls behind costs at most one entry per key (I11).
//!
//! Lock order: the store's writing (held by whoever calls [`SharedProcessor::publish`]), the registry's, then whatever
//! `commit` or `snapshot` lock, then a listener's inbox. None is held while a handler runs or is dropped (I8).

mod coalesce;
mod inbox;
mod listener;
mod options;
mod registration;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Cached, Event, EventBatch, EventHandler};
use listener::ProcessorListener;

pub use listener::HandlerStats;
pub use options::{HandlerOptions, Resync};
pub use registration::HandlerRegistration;

/// Distributes batches of events to handlers. Cloning gives another handle on the same processor.
pub struct SharedProcessor<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    registry: Mutex<Registry<K>>,
    /// Wakes `run`: there is a handler that has no task yet.
    joined: Notify,
    default_resync: Option<Duration>,
}

/// Who listens.
struct Registry<K> {
    listeners: Vec<Arc<ProcessorListener<K>>>,
    /// Those of them that have no task yet.
    without_task: Vec<Arc<ProcessorListener<K>>>,
    /// Whether the batch that completes the first list has been published.
    list_complete: bool,
    check_period: CheckPeriod,
    stopped: bool,
}

/// How far apart the informer's checks for resyncs are.
#[derive(Clone, Copy)]
enum CheckPeriod {
    /// Handlers may still ask for a shorter one.
    Open,
    Fixed(Option<Duration>),
}

impl<K: Send + Sync + 'static> SharedProcessor<K> {
    /// Returns a processor without handlers. `default_resync` is the period of those that ask for none of their own;
    /// `None`: no resync.
    #[must_use]
    pub fn new(default_resync: Option<Duration>) -> Self {
        let registry = Registry {
            listeners: Vec::new(),
            without_task: Vec::new(),
            list_complete: false,
            check_period: CheckPeriod::Open,
            stopped: false,
        };
        Self {
            shared: Arc::new(Shared {
                registry: Mutex::new(registry),
                joined: Notify::new(),
                default_resync,
            }),
        }
    }

    /// Adds a handler. It first gets what `snapshot` returns as initial adds, then everything that is published from
    /// now on: nothing twice, nothing left out (I5).
    ///
    /// `snapshot` is called under the processor's lock, so it should only fix a state, and not copy it.
    ///
    /// On a processor that has stopped, the handler is never called.
    pub fn add_handler<H, S>(
        &self,
        handler: H,
        options: &HandlerOptions,
        snapshot: impl FnOnce() -> S,
    ) -> HandlerRegistration
    where
        H: EventHandler<K>,
        S: Iterator<Item = Cached<K>> + Send + 'static,
    {
        let period = options.resync.period(self.shared.default_resync);
        let processor = Arc::downgrade(&self.shared);
        let listener = Arc::new(ProcessorListener::new(handler, options, period, processor));
        {
            let mut registry = self.shared.registry.lock();
            if registry.stopped {
                drop(registry);
                listener.remove();
                listener.ended.set();
                return HandlerRegistration::new(listener);
            }
            if let CheckPeriod::Fixed(check_period) = registry.check_period {
                listener.limit_resync_period(check_period);
            }
            listener.start_with(Box::new(snapshot()), registry.list_complete);
            registry.listeners.push(Arc::clone(&listener));
            registry.without_task.push(Arc::clone(&listener));
        }
        self.shared.joined.notify_one();
        HandlerRegistration::new(listener)
    }

    /// Calls `commit`, which makes the events true in the store, and then gives them to every handler (I3). A handler
    /// that joins meanwhile sees either neither or both.
    ///
    /// `commit` is called under the processor's lock, so it should only put prepared changes in place.
    #[doc(alias = "distribute")]
    pub fn publish(&self, batch: EventBatch<K>, commit: impl FnOnce()) {
        let batch = Arc::new(batch);
        let resyncs = batch.events.iter().filter(|event| matches!(event, Event::Resynced(_))).count();
        let mut registry = self.shared.registry.lock();
        commit();
        registry.list_complete |= batch.completes_initial_list;
        if batch.events.is_empty() && !batch.completes_initial_list {
            return;
        }
        for listener in &registry.listeners {
            listener.push(&batch, resyncs);
        }
    }

    /// Fixes and returns how often to call [`check_resync`](Self::check_resync): the shortest period that any handler
    /// has asked for so far, or `None` if none wants resyncs. Handlers that join later wait at least that long.
    #[must_use]
    pub fn fix_check_period(&self) -> Option<Duration> {
        let mut registry = self.shared.registry.lock();
        let asked = registry.listeners.iter().filter_map(|listener| listener.resync_period());
        let shortest = asked.chain(Resync::Default.period(self.shared.default_resync)).min();
        registry.check_period = CheckPeriod::Fixed(shortest);
        shortest
    }

    /// Says whether any handler is due a resync now, and marks those that are: until the next check, they and only
    /// they get what is resynced.
    #[doc(alias = "shouldResync")]
    #[must_use]
    pub fn check_resync(&self) -> bool {
        let now = Instant::now();
        let registry = self.shared.registry.lock();
        registry.listeners.iter().fold(false, |due, listener| listener.check_resync(now) | due)
    }

    /// Serves the handlers, each in a task of its own, until `shutdown`; then ends when the calls that are under way
    /// have returned. What waits for handlers at that time is dropped.
    ///
    /// # Cancel safety
    /// If the future is dropped, the processor has stopped, and the handlers' tasks are aborted at their next await.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut tasks = JoinSet::new();
        let stop = OnDrop(|| self.stop());
        while !shutdown.is_cancelled() {
            let joined = std::mem::take(&mut self.shared.registry.lock().without_task);
            for listener in joined {
                tasks.spawn(async move { listener.run().await });
            }
            tokio::select! {
                () = self.shared.joined.notified() => {}
                Some(_) = tasks.join_next() => {}
                () = shutdown.cancelled() => {}
            }
        }
        drop(stop);
        while tasks.join_next().await.is_some() {}
    }

    fn stop(&self) {
        let (listeners, without_task) = {
            let mut registry = self.shared.registry.lock();
            registry.stopped = true;
            (std::mem::take(&mut registry.listeners), std::mem::take(&mut registry.without_task))
        };
        for listener in listeners {
            listener.remove();
        }
        for listener in &without_task {
            listener.ended.set();
        }
    }
}

impl<K: 'static> Shared<K> {
    /// Forgets a listener.
    fn unregister(&self, removed: &ProcessorListener<K>) {
        let is_it = |listener: &mut Arc<ProcessorListener<K>>| std::ptr::eq(Arc::as_ptr(listener), removed);
        let (listeners, without_task) = {
            let mut registry = self.registry.lock();
            let listeners: Vec<_> = registry.listeners.extract_if(.., is_it).collect();
            (listeners, registry.without_task.extract_if(.., is_it).collect::<Vec<_>>())
        };
        for listener in &without_task {
            listener.ended.set();
        }
        // I8: what goes with a handler is the user's code too, so it goes when the registry is free again.
        drop((listeners, without_task));
    }
}

/// Calls a function when it is dropped, however that comes about.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<K> Clone for SharedProcessor<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> fmt::Debug for SharedProcessor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registry = self.shared.registry.lock();
        f.debug_struct("SharedProcessor")
            .field("handlers", &registry.listeners.len())
            .field("stopped", &registry.stopped)
            .finish_non_exhaustive()
    }
}
