//! [`SharedProcessor`]: tells every handler what has happened, each at its own pace.
//!
//! client-go: `sharedProcessor` of `tools/cache/shared_informer.go`. Here all handlers share one batch of events behind
//! a reference count, and a handler that falls behind costs at most one entry per key (I11).
//!
//! Lock order: the store's writing (held by whoever calls [`SharedProcessor::publish`]), the registry's, then whatever
//! `commit` or `snapshot` lock, then a listener's resync clock or inbox. None is held while the user's code runs,
//! which handlers are, and wakers, and drops of handlers and objects (I8); for the store's, that is up to its holder.

mod coalesce;
mod cursor;
mod handler_task;
mod handover;
mod inbox;
mod listener;
mod options;
mod owed;
mod pending;
mod published;
mod registration;
mod resync;
mod shared_backlog;
mod stopwatch;
mod stream;
#[cfg(test)]
mod tests;

use std::any::type_name;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::sync::{Mutex, Notify};
use crate::{AsyncEventHandler, Cached, EventBatch, EventHandler};
use handler_task::Handler;
use listener::ProcessorListener;
use published::Backlogs;
use resync::CheckPeriod;

pub use listener::HandlerStats;
pub use options::{HandlerOptions, Resync};
pub use published::Published;
pub use registration::HandlerRegistration;
pub use stream::EventStream;

/// Distributes batches of events to handlers. Cloning gives another handle on the same processor.
pub struct SharedProcessor<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    registry: Mutex<Registry<K>>,
    backlogs: Backlogs<K>,
    /// Wakes `run`: there is a handler that has no task yet.
    joined: Notify,
    default_resync: Option<Duration>,
    /// Says how that fares which brings the first list.
    source: OnceLock<Describe>,
}

type Describe = Box<dyn Fn() -> String + Send + Sync>;

/// Who listens.
struct Registry<K> {
    listeners: Vec<Arc<ProcessorListener<K>>>,
    /// The work of serving those that have no task yet.
    without_task: Vec<Waiting>,
    /// Whether the batch that completes the first list has been published.
    list_complete: bool,
    check_period: CheckPeriod,
    stopped: bool,
}

/// A listener's work that nobody does yet.
struct Waiting {
    listener: usize,
    service: BoxFuture<'static, ()>,
}

/// How far the processor is with one listener.
struct Progress {
    stopped: bool,
    /// Why the first list is not complete, unless it is.
    list: Option<String>,
    without_task: bool,
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
                backlogs: Backlogs::new(),
                joined: Notify::new(),
                default_resync,
                source: OnceLock::new(),
            }),
        }
    }

    /// Sets what is asked, without a lock being held, how the source of the first list fares, for
    /// [`HandlerRegistration::waiting_for`] to say so. It can be set once; later calls change nothing.
    pub fn describe_source(&self, describe: impl Fn() -> String + Send + Sync + 'static) {
        _ = self.shared.source.set(Box::new(describe));
    }

    /// Adds a handler. It first gets what `snapshot` returns as initial adds, then everything that is published from
    /// now on: nothing twice, nothing left out (I5).
    ///
    /// `snapshot` is called under the processor's lock, so it should only fix a state, and not copy it.
    ///
    /// On a processor that has stopped, the handler is never called.
    #[doc(alias = "AddEventHandler")]
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
        self.add_service(type_name::<H>(), Handler::Sync(Box::new(handler)), options, snapshot)
    }

    /// Adds an async handler, as [`add_handler`](Self::add_handler) does a sync one.
    pub fn add_async_handler<H, S>(
        &self,
        handler: H,
        options: &HandlerOptions,
        snapshot: impl FnOnce() -> S,
    ) -> HandlerRegistration
    where
        H: AsyncEventHandler<K>,
        S: Iterator<Item = Cached<K>> + Send + 'static,
    {
        self.add_service(type_name::<H>(), Handler::Async(Box::new(handler)), options, snapshot)
    }

    fn add_service<S>(
        &self,
        name: &str,
        handler: Handler<K>,
        options: &HandlerOptions,
        snapshot: impl FnOnce() -> S,
    ) -> HandlerRegistration
    where
        S: Iterator<Item = Cached<K>> + Send + 'static,
    {
        let mut options = options.clone();
        options.forgoes_old_states &= !handler.needs_old_states();
        let listener = self.new_listener(name, &options);
        let service = handler_task::serve(Arc::clone(&listener), handler);
        self.join(&listener, Some(service), &options, snapshot);
        HandlerRegistration::new(listener)
    }

    /// Returns a stream of what an added handler would be called with. It needs no task, and goes on also if nobody
    /// [runs](Self::run) the processor; `snapshot` is as in [`add_handler`](Self::add_handler).
    ///
    /// On a processor that has stopped, the stream has ended.
    pub fn events<S>(&self, options: &HandlerOptions, snapshot: impl FnOnce() -> S) -> EventStream<K>
    where
        S: Iterator<Item = Cached<K>> + Send + 'static,
    {
        let listener = self.new_listener(type_name::<EventStream<K>>(), options);
        self.join(&listener, None, options, snapshot);
        EventStream::new(listener)
    }

    fn new_listener(&self, default_name: &str, options: &HandlerOptions) -> Arc<ProcessorListener<K>> {
        let name = options.name.clone().unwrap_or_else(|| default_name.to_owned());
        let period = options.resync.period(self.shared.default_resync);
        let backlog = Arc::clone(self.shared.backlogs.of(!options.forgoes_old_states));
        Arc::new(ProcessorListener::new(name, options, period, backlog, Arc::downgrade(&self.shared)))
    }

    /// Registers a listener, and the work of serving it if that takes a task.
    fn join<S>(
        &self,
        listener: &Arc<ProcessorListener<K>>,
        service: Option<BoxFuture<'static, ()>>,
        options: &HandlerOptions,
        snapshot: impl FnOnce() -> S,
    ) where
        S: Iterator<Item = Cached<K>> + Send + 'static,
    {
        {
            let mut registry = self.shared.registry.lock();
            if registry.stopped {
                drop(registry);
                // Without its service, it ends.
                listener.remove();
                return;
            }
            if let CheckPeriod::Fixed(check_period) = registry.check_period {
                listener.limit_resync(check_period);
            }
            // I5: the snapshot has what was published so far, and what is published from now on comes after it.
            listener.start_with(Box::new(snapshot()), registry.list_complete);
            registry.listeners.push(Arc::clone(listener));
            let waiting = service.map(|service| Waiting { listener: listener.id(), service });
            registry.without_task.extend(waiting);
        }
        self.shared.joined.notify_one();
        if let Resync::Every(asked) = options.resync {
            log_missing_resyncs(listener.name(), asked, listener.resync_period());
        }
    }

    /// Calls `commit`, which makes the events true in the store, and then gives them to every handler (I3). A handler
    /// that joins meanwhile sees either neither or both.
    ///
    /// `commit` is called under the processor's lock, so it should only put prepared changes in place. The handlers are
    /// woken when what is returned is dropped: at once, or when a lock that the caller holds is free again (I8).
    #[doc(alias = "distribute")]
    pub fn publish(&self, batch: EventBatch<K>, commit: impl FnOnce()) -> Published<K> {
        let concerns_anybody = !batch.events.is_empty() || batch.completes_initial_list;
        let mut published = Published::new(batch, self.shared.backlogs.clone());
        let mut registry = self.shared.registry.lock();
        commit();
        registry.list_complete |= published.batch().completes_initial_list;
        if concerns_anybody {
            let any_is_due = || registry.listeners.iter().any(|listener| listener.is_syncing());
            published.set_wants_resyncs(published.has_resyncs() && any_is_due());
            registry.listeners.iter().for_each(|listener| listener.push(&mut published));
            published.finish();
        }
        published
    }

    /// Fixes and returns how often to call [`check_resync`](Self::check_resync): the shortest period that any handler
    /// has asked for so far, or `None` if none wants resyncs. All periods count from now, and handlers that join later
    /// have none that is shorter.
    #[must_use]
    pub fn fix_check_period(&self) -> Option<Duration> {
        let mut registry = self.shared.registry.lock();
        if let CheckPeriod::Fixed(period) = registry.check_period {
            return period;
        }
        let asked = registry.listeners.iter().filter_map(|listener| listener.restart_resync());
        let shortest = asked.chain(Resync::Default.period(self.shared.default_resync)).min();
        registry.check_period = CheckPeriod::Fixed(shortest);
        shortest
    }

    /// Returns how many handlers and streams there are that have not been removed, or dropped.
    #[must_use]
    pub fn handler_count(&self) -> usize {
        self.shared.registry.lock().listeners.len()
    }

    /// Returns whether any handler is due a resync now, and marks those that are: until the next check, they and only
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
            for waiting in joined {
                tasks.spawn(waiting.service);
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

    /// Lets all handlers go, as the end of [`run`](Self::run) does: none is called any more, and whoever waits for one
    /// hears that it will not sync.
    pub fn stop(&self) {
        let (listeners, without_task) = {
            let mut registry = self.shared.registry.lock();
            registry.stopped = true;
            (std::mem::take(&mut registry.listeners), std::mem::take(&mut registry.without_task))
        };
        for listener in listeners {
            listener.remove();
        }
        drop(without_task);
    }
}

impl<K> Shared<K> {
    /// Forgets a listener.
    fn unregister(&self, removed: &ProcessorListener<K>) {
        let id = removed.id();
        let forgotten = {
            let mut registry = self.registry.lock();
            let listeners: Vec<_> =
                registry.listeners.extract_if(.., |listener| listener.id() == id).collect();
            let without_task: Vec<_> =
                registry.without_task.extract_if(.., |waiting| waiting.listener == id).collect();
            (listeners, without_task)
        };
        // I8: what goes with a handler is the user's code too, so it goes when the registry is free again.
        drop(forgotten);
    }

    fn progress(&self, listener: &ProcessorListener<K>) -> Progress {
        let (stopped, list_complete, without_task) = {
            let registry = self.registry.lock();
            let without_task = registry.without_task.iter().any(|waiting| waiting.listener == listener.id());
            (registry.stopped, registry.list_complete, without_task)
        };
        let list = (!list_complete).then(|| {
            let why = self.source.get().map_or_else(String::new, |describe| format!(": {}", describe()));
            format!("its informer's first list is not complete{why}")
        });
        Progress { stopped, list, without_task }
    }
}

impl<K> Drop for Shared<K> {
    fn drop(&mut self) {
        // I12: a stream that outlives the last handle on its processor ends; one that ran has done this before.
        let listeners = std::mem::take(&mut self.registry.lock().listeners);
        listeners.iter().for_each(|listener| listener.remove());
    }
}

/// Logs that a handler does not get the resyncs that it requested.
fn log_missing_resyncs(handler: &str, asked: Duration, period: Option<Duration>) {
    match period {
        Some(period) if asked < period => tracing::warn!(
            %handler, ?asked, ?period,
            "handler gets resyncs less often than requested: the minimum is one second and the shortest period that was \
             requested before the informer started"
        ),
        None if !asked.is_zero() => tracing::warn!(
            %handler, ?asked,
            "handler gets no resyncs: none were requested before the informer started; set a default resync period, or \
             add the handler before the start"
        ),
        _ => {}
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
        let (handlers, stopped) = {
            let registry = self.shared.registry.lock();
            (registry.listeners.len(), registry.stopped)
        };
        f.debug_struct("SharedProcessor")
            .field("handlers", &handlers)
            .field("stopped", &stopped)
            .finish_non_exhaustive()
    }
}
