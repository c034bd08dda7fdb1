//! [`Shared`]: the content of a [`SharedProcessor`](super::SharedProcessor): the listeners, and the
//! tasks that call the handlers. A listener holds the events that one handler or stream has not
//! received yet. All objects have the type [`AnyObject`] here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::handler_task;
use super::inbox::Replay;
use super::listener::{HandlerStats, ProcessorListener};
use super::options::{HandlerOptions, Resync};
use super::publish_guard::PublishGuard;
use super::registration::HandlerRegistration;
use super::resync::CheckPeriod;
use super::shared_backlog::Backlogs;
use crate::handler::AnyHandler;
use crate::sync::{Mutex, Notify};
use crate::{AnyObject, Event, EventBatch};

pub(super) struct Shared {
    pub(super) registry: Mutex<Registry>,
    backlogs: Backlogs,
    /// Whether any published event has contained an [encoded](crate::Encoded) object. If so,
    /// handlers receive copies of the events, which decode an object when a handler first reads it.
    has_encoded: Arc<AtomicBool>,
    /// Wakes `run` when a task has been added that must be spawned.
    task_added: Notify,
    default_resync: Option<Duration>,
    /// A function that returns the reason why the initial list is not complete, for example an
    /// error of the API server.
    pub(super) reason: OnceLock<Describe>,
}

pub(super) type TakeSnapshot<'a> = Box<dyn FnOnce() -> Replay<AnyObject> + 'a>;

type Describe = Box<dyn Fn() -> String + Send + Sync>;

pub(super) struct Registry {
    pub(super) listeners: Vec<Arc<ProcessorListener>>,
    /// The statistics of removed listeners, as sums by name. A sum is dropped when the last
    /// listener with its name is removed.
    removed: BTreeMap<String, HandlerStats>,
    unstarted: Vec<UnstartedTask>,
    /// Whether the batch that completes the initial list has been published.
    list_complete: bool,
    check_period: CheckPeriod,
    stopped: bool,
}

/// A handler's task that [`Shared::run`] has not spawned yet.
struct UnstartedTask {
    listener: usize,
    task: BoxFuture<'static, ()>,
}

impl Shared {
    pub(super) fn new(default_resync: Option<Duration>) -> Arc<Self> {
        let registry = Registry {
            listeners: Vec::new(),
            removed: BTreeMap::new(),
            unstarted: Vec::new(),
            list_complete: false,
            check_period: CheckPeriod::Open,
            stopped: false,
        };
        Arc::new(Self {
            registry: Mutex::new(registry),
            backlogs: Backlogs::new(),
            has_encoded: Arc::default(),
            task_added: Notify::new(),
            default_resync,
            reason: OnceLock::new(),
        })
    }

    pub(super) fn handlers(&self) -> (Vec<(String, HandlerStats)>, BTreeMap<String, HandlerStats>) {
        // The list of listeners is copied, so that the registry is not locked while backlogs are
        // counted, which can take time.
        let (listeners, removed) = {
            let registry = self.registry.lock();
            (registry.listeners.clone(), registry.removed.clone())
        };
        let stats = |listener: &Arc<ProcessorListener>| (listener.name().to_owned(), listener.stats());
        (listeners.iter().map(stats).collect(), removed)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.registry.lock().stopped
    }

    pub(super) fn add_task(
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
        let task = handler_task::new(Arc::clone(&listener), handler, Arc::clone(&self.has_encoded));
        self.register(&listener, Some(task), &options, snapshot);
        HandlerRegistration::new(listener)
    }

    pub(super) fn add_stream(
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

    /// Registers a listener, and the task that calls its handler. A stream has no task.
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
                listener.apply_check_period(check_period);
            }
            // I5: while the registry is locked, no batch is published. So the snapshot contains the
            // changes of all earlier batches, and the listener receives all later batches.
            listener.mailbox.start_with(snapshot(), registry.list_complete);
            registry.listeners.push(Arc::clone(listener));
            registry.unstarted.extend(task.map(|task| UnstartedTask { listener: listener.id(), task }));
        }
        self.task_added.notify_one();
        if let Resync::Every(requested) = options.resync {
            log_missing_resyncs(listener.name(), requested, listener.resync_period());
        }
    }

    pub(super) fn publish(&self, batch: EventBatch<AnyObject>, commit: impl FnOnce()) -> PublishGuard {
        if !self.has_encoded.load(Ordering::Relaxed) && batch.events.iter().any(Event::is_closed) {
            // `Relaxed` is enough: this thread adds the batch to a mailbox later, under the
            // mailbox's lock. A handler that takes the batch takes the same lock, so it also reads
            // this value.
            self.has_encoded.store(true, Ordering::Relaxed);
        }
        let has_content = !batch.events.is_empty() || batch.completes_initial_list;
        let mut guard = PublishGuard::new(batch, self.backlogs.clone());
        let mut registry = self.registry.lock();
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

    pub(super) fn freeze_check_period(&self) -> Option<Duration> {
        let mut registry = self.registry.lock();
        if let CheckPeriod::Fixed(period) = registry.check_period {
            return period;
        }
        let requested = registry.listeners.iter().filter_map(|listener| listener.restart_resync());
        let shortest = requested.chain(Resync::Default.period(self.default_resync)).min();
        registry.check_period = CheckPeriod::Fixed(shortest);
        shortest
    }

    pub(super) fn check_resync(&self) -> bool {
        let now = Instant::now();
        let registry = self.registry.lock();
        registry.listeners.iter().fold(false, |due, listener| listener.check_resync(now) | due)
    }

    pub(super) async fn run(&self, shutdown: CancellationToken) {
        let mut tasks = JoinSet::new();
        let stop = OnDrop(|| self.stop());
        while !shutdown.is_cancelled() {
            let unstarted = std::mem::take(&mut self.registry.lock().unstarted);
            for UnstartedTask { task, .. } in unstarted {
                tasks.spawn(task);
            }
            tokio::select! {
                () = self.task_added.notified() => {}
                Some(_) = tasks.join_next() => {}
                () = shutdown.cancelled() => {}
            }
        }
        drop(stop);
        while tasks.join_next().await.is_some() {}
    }

    pub(super) fn stop(&self) {
        let (listeners, unstarted) = {
            let mut registry = self.registry.lock();
            registry.stopped = true;
            (std::mem::take(&mut registry.listeners), std::mem::take(&mut registry.unstarted))
        };
        // I12: all listeners are removed before any event is dropped, because a destructor of an
        // object can panic.
        let unread: Vec<_> = listeners.iter().map(|listener| listener.remove()).collect();
        drop(unstarted);
        drop(unread);
    }

    pub(super) fn unregister(&self, removed: &ProcessorListener) {
        let (id, name) = (removed.id(), removed.name());
        let stats = HandlerStats { pending: 0, ..removed.stats() };
        let unregistered = {
            let mut registry = self.registry.lock();
            let listeners: Vec<_> =
                registry.listeners.extract_if(.., |listener| listener.id() == id).collect();
            let unstarted: Vec<_> = registry.unstarted.extract_if(.., |task| task.listener == id).collect();
            if registry.listeners.iter().any(|other| other.name() == name) {
                let sum = registry.removed.entry(name.to_owned()).or_default();
                *sum = sum.plus(&stats);
            } else {
                registry.removed.remove(name);
            }
            (listeners, unstarted)
        };
        // I8: the destructor of a handler is user code, so the handler is dropped after the lock is
        // released.
        drop(unregistered);
    }

    /// Returns the reason why a listener is not synced. Returns `None` if the only reason is that
    /// events have not been delivered yet.
    pub(super) fn sync_obstacle(&self, listener: &ProcessorListener) -> Option<String> {
        let (stopped, list_complete, unstarted) = {
            let registry = self.registry.lock();
            let unstarted = registry.unstarted.iter().any(|task| task.listener == listener.id());
            (registry.stopped, registry.list_complete, unstarted)
        };
        if stopped {
            Some("the informer has stopped".to_owned())
        } else if listener.is_removed() {
            Some("the handler has been removed".to_owned())
        } else if !list_complete {
            let why = self.reason.get().map_or_else(String::new, |describe| format!(": {}", describe()));
            Some(format!("the informer's initial list is not complete{why}"))
        } else {
            unstarted.then(|| "the informer is not running".to_owned())
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // I12: this ends streams that outlive the processor, and handlers of a processor that has
        // not run. At its end, `run` removes all handlers.
        self.stop();
    }
}

/// Logs a warning if the `period` of a handler is longer than `requested`, or if the handler gets
/// no resyncs (`None`) although it requested them.
fn log_missing_resyncs(handler: &str, requested: Duration, period: Option<Duration>) {
    match period {
        Some(period) if requested < period => tracing::warn!(
            %handler, ?requested, ?period,
            "handler gets resyncs less often than requested: a period is at least one second, and a handler that is \
             added after the informer's start cannot shorten the interval at which the informer checks for due \
             resyncs; request at least one second, and add the handler before the start"
        ),
        None if !requested.is_zero() => tracing::warn!(
            %handler, ?requested,
            "handler gets no resyncs: none were requested before the informer started; set a default resync period, or \
             add the handler before the start"
        ),
        _ => {}
    }
}

/// Calls a function when it is dropped.
pub(super) struct OnDrop<F: FnMut()>(pub(super) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
