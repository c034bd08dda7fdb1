//! [`SharedProcessor`]: delivers each event to every handler, at the handler's own pace.
//!
//! client-go: `sharedProcessor` of `tools/cache/shared_informer.go`. Here all handlers share one
//! reference-counted batch, and a handler that is behind costs at most one entry per key (I11).
//!
//! Lock order: the store's write lock (held by the caller of [`SharedProcessor::publish`]), the
//! registry, the locks that `commit` or `snapshot` take, then a listener's resync clock or mailbox.
//! No handler, waker or destructor of a handler or object runs under these locks (I8).

mod coalesce;
mod cursor;
mod handler_task;
mod inbox;
mod listener;
mod mailbox;
mod net_change;
mod options;
mod pending;
mod publish_guard;
mod registration;
mod resync;
mod shared_backlog;
mod stopwatch;
mod stream;
#[cfg(test)]
mod tests;

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::handler::{AnyHandler, AsyncHandler, SyncHandler};
use crate::sync::{Mutex, Notify};
use crate::{AnyObject, AsyncEventHandler, Cached, EventBatch, EventHandler};
use inbox::Replay;
use listener::ProcessorListener;
use resync::CheckPeriod;
use shared_backlog::Backlogs;

pub use listener::HandlerStats;
pub use options::{HandlerOptions, Resync};
pub use publish_guard::PublishGuard;
pub use registration::HandlerRegistration;
pub use stream::EventStream;

/// Distributes batches of events to handlers. A clone is another handle to the same processor.
pub struct SharedProcessor<K> {
    shared: Arc<Shared>,
    _type: PhantomData<fn(K)>,
}

struct Shared {
    registry: Mutex<Registry>,
    backlogs: Backlogs<AnyObject>,
    /// Wakes `run` when there is an unstarted task.
    task_added: Notify,
    default_resync: Option<Duration>,
    /// Describes the status of the source of the initial list.
    source: OnceLock<Describe>,
}

type TakeSnapshot<'a> = Box<dyn FnOnce() -> Replay<AnyObject> + 'a>;

/// Changes the type of the objects of a snapshot.
fn any<K, S>(snapshot: impl FnOnce() -> S) -> impl FnOnce() -> Replay<AnyObject>
where
    K: 'static,
    S: Iterator<Item = Cached<K>> + Send + 'static,
{
    move || Box::new(snapshot().map(Cached::cast))
}

type Describe = Box<dyn Fn() -> String + Send + Sync>;

struct Registry {
    listeners: Vec<Arc<ProcessorListener>>,
    unstarted: Vec<UnstartedTask>,
    /// Whether the batch that completes the initial list has been published.
    list_complete: bool,
    check_period: CheckPeriod,
    stopped: bool,
}

/// A handler's task that [`SharedProcessor::run`] has not spawned yet.
struct UnstartedTask {
    listener: usize,
    task: BoxFuture<'static, ()>,
}

/// The processor's part of the reasons for which a listener is not synced.
struct Progress {
    stopped: bool,
    /// The reason for which the initial list is not complete, unless it is.
    list: Option<String>,
    unstarted: bool,
}

impl<K> SharedProcessor<K> {
    /// Returns a processor without handlers. `default_resync` is the resync period of handlers with
    /// [`Resync::Default`]; `None`: no resync.
    #[must_use]
    pub fn new(default_resync: Option<Duration>) -> Self {
        let registry = Registry {
            listeners: Vec::new(),
            unstarted: Vec::new(),
            list_complete: false,
            check_period: CheckPeriod::Open,
            stopped: false,
        };
        Self {
            shared: Arc::new(Shared {
                registry: Mutex::new(registry),
                backlogs: Backlogs::new(),
                task_added: Notify::new(),
                default_resync,
                source: OnceLock::new(),
            }),
            _type: PhantomData,
        }
    }

    /// Changes the type of the objects, as [`Cached::cast`] does.
    #[doc(hidden)]
    #[must_use]
    pub fn cast<T>(&self) -> SharedProcessor<T> {
        SharedProcessor { shared: Arc::clone(&self.shared), _type: PhantomData }
    }

    /// Sets a function that describes the status of the source of the initial list.
    /// [`HandlerRegistration::waiting_for`] calls it without a lock. Later calls change nothing.
    pub fn describe_source(&self, describe: impl Fn() -> String + Send + Sync + 'static) {
        _ = self.shared.source.set(Box::new(describe));
    }

    /// Adds a handler. The handler receives the objects of `snapshot` as initial adds, then each
    /// event that is published after this call: none twice and none missing (I5).
    ///
    /// `snapshot` is called under the processor's lock, so it should take a cheap snapshot and copy
    /// nothing.
    ///
    /// A stopped processor never calls the handler.
    #[doc(alias = "AddEventHandler")]
    pub fn add_handler<H, S>(
        &self,
        handler: H,
        options: &HandlerOptions,
        snapshot: impl FnOnce() -> S,
    ) -> HandlerRegistration
    where
        K: 'static,
        H: EventHandler<K>,
        S: Iterator<Item = Cached<K>> + Send + 'static,
    {
        let needs_old_states = handler.needs_old_states();
        let handler = Box::new(SyncHandler::new(handler));
        self.shared.add_task(type_name::<H>(), handler, needs_old_states, options, Box::new(any(snapshot)))
    }

    /// Adds an async handler; otherwise the same as [`add_handler`](Self::add_handler).
    pub fn add_async_handler<H, S>(
        &self,
        handler: H,
        options: &HandlerOptions,
        snapshot: impl FnOnce() -> S,
    ) -> HandlerRegistration
    where
        K: Send + Sync + 'static,
        H: AsyncEventHandler<K>,
        S: Iterator<Item = Cached<K>> + Send + 'static,
    {
        let needs_old_states = handler.needs_old_states();
        let handler = Box::new(AsyncHandler::new(handler));
        self.shared.add_task(type_name::<H>(), handler, needs_old_states, options, Box::new(any(snapshot)))
    }

    /// Returns a stream of the events that an added handler would receive. The stream has no task,
    /// so it also works while [`run`](Self::run) is not running. `snapshot` is as in
    /// [`add_handler`](Self::add_handler).
    ///
    /// The stream of a stopped processor is empty.
    pub fn events<S>(&self, options: &HandlerOptions, snapshot: impl FnOnce() -> S) -> EventStream<K>
    where
        K: 'static,
        S: Iterator<Item = Cached<K>> + Send + 'static,
    {
        EventStream::new(self.shared.add_stream(
            type_name::<EventStream<K>>(),
            options,
            Box::new(any(snapshot)),
        ))
    }

    /// Calls `commit`, which applies the changes to the store, and then adds the batch to every
    /// handler's mailbox (I3). A handler that is added meanwhile sees either neither or both.
    ///
    /// `commit` is called under the processor's lock, so it should only swap in prepared changes.
    /// Dropping the returned guard wakes the handlers. A caller that holds a lock releases that
    /// lock first (I8).
    #[doc(alias = "distribute")]
    pub fn publish(&self, batch: EventBatch<K>, commit: impl FnOnce()) -> PublishGuard {
        let has_content = !batch.events.is_empty() || batch.completes_initial_list;
        let mut guard = PublishGuard::new(batch.cast(), self.shared.backlogs.clone());
        let mut registry = self.shared.registry.lock();
        commit();
        registry.list_complete |= guard.batch().completes_initial_list;
        if has_content {
            let is_syncing = |listener: &ProcessorListener| guard.has_resyncs() && listener.is_syncing();
            let any_is_syncing = registry.listeners.iter().any(|listener| is_syncing(listener));
            guard.set_any_wants_resyncs(any_is_syncing);
            for listener in &registry.listeners {
                let wants_resyncs = any_is_syncing && listener.is_syncing();
                guard.push_to(&listener.mailbox, wants_resyncs);
            }
            guard.finish();
        }
        guard
    }

    /// Fixes and returns the interval of [`check_resync`](Self::check_resync): the shortest period
    /// that a handler requested, or `None`. All periods start now. Later handlers get none shorter.
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

    /// Returns the number of handlers and streams that have not been removed.
    #[must_use]
    pub fn handler_count(&self) -> usize {
        self.shared.registry.lock().listeners.len()
    }

    /// Marks the handlers that are due a resync now, and returns whether there are any. Until the
    /// next check, only marked handlers receive resyncs.
    #[doc(alias = "shouldResync")]
    #[must_use]
    pub fn check_resync(&self) -> bool {
        let now = Instant::now();
        let registry = self.shared.registry.lock();
        registry.listeners.iter().fold(false, |due, listener| listener.check_resync(now) | due)
    }

    /// Runs each handler in its own task until `shutdown`, and returns when all running calls have
    /// returned. Events that are waiting at that time are dropped.
    ///
    /// # Cancel safety
    /// Dropping the future stops the processor and aborts the handlers' tasks at their next await.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut tasks = JoinSet::new();
        let stop = OnDrop(|| self.stop());
        while !shutdown.is_cancelled() {
            let unstarted = std::mem::take(&mut self.shared.registry.lock().unstarted);
            for UnstartedTask { task, .. } in unstarted {
                tasks.spawn(task);
            }
            tokio::select! {
                () = self.shared.task_added.notified() => {}
                Some(_) = tasks.join_next() => {}
                () = shutdown.cancelled() => {}
            }
        }
        drop(stop);
        while tasks.join_next().await.is_some() {}
    }

    /// Removes all handlers, as the end of [`run`](Self::run) does. No handler is called any more,
    /// and waits for [`HandlerRegistration::synced`] end with an error.
    pub fn stop(&self) {
        let (listeners, unstarted) = {
            let mut registry = self.shared.registry.lock();
            registry.stopped = true;
            (std::mem::take(&mut registry.listeners), std::mem::take(&mut registry.unstarted))
        };
        for listener in listeners {
            listener.remove();
        }
        drop(unstarted);
    }
}

impl Shared {
    fn add_task(
        self: &Arc<Self>,
        name: &str,
        handler: Box<dyn AnyHandler>,
        needs_old_states: bool,
        options: &HandlerOptions,
        snapshot: TakeSnapshot<'_>,
    ) -> HandlerRegistration {
        let mut options = options.clone();
        options.coalesce_drops_old &= !needs_old_states;
        let listener = self.new_listener(name, &options);
        let task = handler_task::new(Arc::clone(&listener), handler);
        self.register(&listener, Some(task), &options, snapshot);
        HandlerRegistration::new(listener)
    }

    fn add_stream(
        self: &Arc<Self>,
        name: &str,
        options: &HandlerOptions,
        snapshot: TakeSnapshot<'_>,
    ) -> Arc<ProcessorListener> {
        let listener = self.new_listener(name, options);
        self.register(&listener, None, options, snapshot);
        listener
    }

    fn new_listener(
        self: &Arc<Self>,
        default_name: &str,
        options: &HandlerOptions,
    ) -> Arc<ProcessorListener> {
        let name = options.name.clone().unwrap_or_else(|| default_name.to_owned());
        let period = options.resync.period(self.default_resync);
        let backlog = Arc::clone(self.backlogs.of(!options.coalesce_drops_old));
        Arc::new(ProcessorListener::new(name, options, period, backlog, Arc::downgrade(self)))
    }

    /// Registers a listener, and the task that calls its handler unless it is a stream.
    fn register(
        &self,
        listener: &Arc<ProcessorListener>,
        task: Option<BoxFuture<'static, ()>>,
        options: &HandlerOptions,
        snapshot: TakeSnapshot<'_>,
    ) {
        {
            let mut registry = self.registry.lock();
            if registry.stopped {
                drop(registry);
                listener.remove();
                return;
            }
            if let CheckPeriod::Fixed(check_period) = registry.check_period {
                listener.limit_resync(check_period);
            }
            // I5: under this lock, the snapshot has all published events, and the listener receives
            // all later ones.
            listener.start_with(snapshot(), registry.list_complete);
            registry.listeners.push(Arc::clone(listener));
            registry.unstarted.extend(task.map(|task| UnstartedTask { listener: listener.id(), task }));
        }
        self.task_added.notify_one();
        if let Resync::Every(asked) = options.resync {
            log_missing_resyncs(listener.name(), asked, listener.resync_period());
        }
    }

    fn unregister(&self, removed: &ProcessorListener) {
        let id = removed.id();
        let unregistered = {
            let mut registry = self.registry.lock();
            let listeners: Vec<_> =
                registry.listeners.extract_if(.., |listener| listener.id() == id).collect();
            let unstarted: Vec<_> = registry.unstarted.extract_if(.., |task| task.listener == id).collect();
            (listeners, unstarted)
        };
        // I8: the destructor of a handler is user code, so the registry is unlocked first.
        drop(unregistered);
    }

    fn progress(&self, listener: &ProcessorListener) -> Progress {
        let (stopped, list_complete, unstarted) = {
            let registry = self.registry.lock();
            let unstarted = registry.unstarted.iter().any(|task| task.listener == listener.id());
            (registry.stopped, registry.list_complete, unstarted)
        };
        let list = (!list_complete).then(|| {
            let why = self.source.get().map_or_else(String::new, |describe| format!(": {}", describe()));
            format!("its informer's initial list is not complete{why}")
        });
        Progress { stopped, list, unstarted }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // I12: this ends streams that outlive the processor. `run` has removed the handlers
        // already.
        let listeners = std::mem::take(&mut self.registry.lock().listeners);
        listeners.iter().for_each(|listener| listener.remove());
    }
}

/// Logs that a handler does not get the resyncs that it requested.
fn log_missing_resyncs(handler: &str, asked: Duration, period: Option<Duration>) {
    match period {
        Some(period) if asked < period => tracing::warn!(
            %handler, ?asked, ?period,
            "handler gets resyncs less often than requested: its period can be neither shorter than one second nor than the \
             shortest period requested before the informer started"
        ),
        None if !asked.is_zero() => tracing::warn!(
            %handler, ?asked,
            "handler gets no resyncs: none were requested before the informer started; set a default resync period, or \
             add the handler before the start"
        ),
        _ => {}
    }
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<K> Clone for SharedProcessor<K> {
    fn clone(&self) -> Self {
        self.cast()
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
