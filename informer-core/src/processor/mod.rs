//! [`SharedProcessor`]: delivers each event to every handler, at the handler's own pace.
//!
//! client-go: `sharedProcessor` of `tools/cache/shared_informer.go`. Here, all handlers share one
//! reference-counted batch, and the events of slow handlers are coalesced per key.
//!
//! Lock order:
//! 1. the store's write lock, which the caller of [`SharedProcessor::publish`] holds;
//! 2. the processor's lock, which protects the registry of handlers;
//! 3. locks that the caller's closures `commit` and `snapshot` take, such as the lock of a store;
//! 4. a lock of one handler: its mailbox (the waiting events), or the time of its next resync.
//!
//! No handler, waker or destructor of a handler or object runs under these locks.

mod batch;
mod coalesce;
mod cursor;
mod handler_task;
mod inbox;
mod listener;
mod mailbox;
mod net_change;
mod options;
mod publish_guard;
mod registration;
mod resync;
mod sections;
mod shared;
mod shared_backlog;
mod stopwatch;
mod stream;
#[cfg(test)]
mod tests;

use std::any::type_name;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::handler::{AsyncHandler, SyncHandler};
use crate::{AsyncEventHandler, Cached, EventBatch, EventHandler};
use shared::{Shared, TakeSnapshot};

pub use listener::HandlerStats;
pub use options::{HandlerOptions, Resync};
pub use publish_guard::PublishGuard;
pub use registration::HandlerRegistration;
pub use stream::EventStream;

/// Delivers batches of events to handlers, to each at its own pace. A clone is another handle to
/// the same processor.
pub struct SharedProcessor<K> {
    shared: Arc<Shared>,
    _type: PhantomData<fn(K)>,
}

impl<K> SharedProcessor<K> {
    /// Returns a processor without handlers. `default_resync` is the resync period of handlers with
    /// [`Resync::Default`]; `None` means no resyncs.
    #[must_use]
    pub fn new(default_resync: Option<Duration>) -> Self {
        Self { shared: Shared::new(default_resync), _type: PhantomData }
    }

    /// Returns a handle to the same processor with another static type of the objects.
    #[doc(hidden)]
    #[must_use]
    pub fn cast<T>(&self) -> SharedProcessor<T> {
        SharedProcessor { shared: Arc::clone(&self.shared), _type: PhantomData }
    }

    /// Sets a function that returns the reason why the initial list is not complete yet.
    /// [`HandlerRegistration::waiting_for`] calls the function until the list is complete, the
    /// handler is removed or the processor is stopped, and holds no lock during the call. Only the
    /// first call of `describe_source` has an effect.
    pub fn describe_source(&self, describe: impl Fn() -> String + Send + Sync + 'static) {
        _ = self.shared.reason.set(Box::new(describe));
    }

    /// Adds a handler. The handler receives the objects of `snapshot` as initial adds, and then
    /// the events that are published after this call.
    ///
    /// `snapshot` is called under the processor's lock, so it should be cheap and copy no objects.
    ///
    /// If the processor has stopped, the handler is never called.
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
        let handler = Box::new(SyncHandler(handler, PhantomData));
        self.shared.add_task(type_name::<H>(), handler, needs_old_states, options, any(snapshot))
    }

    /// Adds an async handler. The handler receives the objects of `snapshot` as initial adds, and
    /// then the events that are published after this call.
    ///
    /// `snapshot` is called under the processor's lock, so it should be cheap and copy no objects.
    ///
    /// If the processor has stopped, the handler is never called.
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
        let handler = Box::new(AsyncHandler(handler, PhantomData));
        self.shared.add_task(type_name::<H>(), handler, needs_old_states, options, any(snapshot))
    }

    /// Returns a stream of the events that a handler would receive: first the objects of `snapshot`
    /// as initial adds, and then the events that are published after this call. The stream has no
    /// task, so it also works while [`run`](Self::run) is not running.
    ///
    /// `snapshot` is called under the processor's lock, so it should be cheap and copy no objects.
    ///
    /// If the processor has stopped, the stream is empty.
    pub fn events<S>(&self, options: &HandlerOptions, snapshot: impl FnOnce() -> S) -> EventStream<K>
    where
        K: 'static,
        S: Iterator<Item = Cached<K>> + Send + 'static,
    {
        EventStream::new(self.shared.add_stream(type_name::<EventStream<K>>(), options, any(snapshot)))
    }

    /// Calls `commit`, which applies the changes to the store, and then adds the batch to every
    /// handler's mailbox. A handler that is added at the same time receives each change once: in
    /// its snapshot or as an event.
    ///
    /// `commit` is called under the processor's lock, so it should only swap in prepared changes.
    /// Dropping the returned guard wakes the handlers. The guard holds no lock. Release your own
    /// locks, such as the store's write lock, before you drop the guard.
    #[doc(alias = "distribute")]
    pub fn publish(&self, batch: EventBatch<K>, commit: impl FnOnce()) -> PublishGuard
    where
        K: 'static,
    {
        self.shared.publish(batch.cast(), commit)
    }

    /// Returns the interval at which to call [`check_resync`](Self::check_resync): the shortest
    /// resync period. Returns `None` if there are no resyncs.
    ///
    /// The first call fixes the interval, and restarts the resync periods of all handlers. Later
    /// calls return the same interval. A handler that is added after the first call receives
    /// resyncs at most once per interval, and never if the interval is `None`.
    #[must_use]
    pub fn freeze_check_period(&self) -> Option<Duration> {
        self.shared.freeze_check_period()
    }

    /// Returns the number of handlers and streams that have not been removed.
    #[must_use]
    pub fn handler_count(&self) -> usize {
        self.shared.registry.lock().listeners.len()
    }

    /// Returns the names and statistics of all handlers and streams.
    #[must_use]
    pub fn handlers(&self) -> Vec<(String, HandlerStats)> {
        self.shared.handlers().0
    }

    /// Returns the result of [`handlers`](Self::handlers), and the statistics of removed handlers
    /// and streams, as sums by name. `pending` is zero in these sums.
    ///
    /// Several handlers can have the same name. The sum of a name is kept until the last handler
    /// with this name is removed. So the total of a name, with its removed handlers, does not
    /// decrease when one of these handlers is removed, except by a call that ends during the
    /// removal. A call that ends after the removal of its handler is not counted.
    #[must_use]
    pub fn handlers_and_removed(&self) -> (Vec<(String, HandlerStats)>, BTreeMap<String, HandlerStats>) {
        self.shared.handlers()
    }

    /// Determines for which handlers a resync is due now, and returns whether there are any. These
    /// handlers receive the resyncs that are published before the next call. For each of them, the
    /// next resync period starts now.
    ///
    /// Other handlers can also receive these resyncs:
    /// - A handler with a resync period, if it is added before the next call.
    /// - A slow handler, because slow handlers share their events.
    #[doc(alias = "shouldResync")]
    #[must_use]
    pub fn check_resync(&self) -> bool {
        self.shared.check_resync()
    }

    /// Runs each handler in its own task until `shutdown` is cancelled. Then waits for the running
    /// calls of handlers: a sync call returns, and an async call is dropped at its next await.
    /// Events that handlers have not received by then are dropped.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll stops the processor and aborts the handlers' tasks
    /// at their next await.
    pub async fn run(&self, shutdown: CancellationToken) {
        self.shared.run(shutdown).await;
    }

    /// Removes all handlers; [`run`](Self::run) also does this when it ends. Apart from running
    /// calls, no handler is called any more, and every wait for the
    /// [sync](HandlerRegistration::synced) of a handler that is not synced ends with an error.
    pub fn stop(&self) {
        self.shared.stop();
    }
}

/// Returns a closure that calls `snapshot` and returns its objects as
/// [`AnyObject`](crate::AnyObject)s, without copying them.
fn any<'a, K, S>(snapshot: impl FnOnce() -> S + 'a) -> TakeSnapshot<'a>
where
    K: 'static,
    S: Iterator<Item = Cached<K>> + Send + 'static,
{
    Box::new(move || Box::new(snapshot().map(Cached::cast)))
}

impl<K> Clone for SharedProcessor<K> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

impl<K> fmt::Debug for SharedProcessor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedProcessor")
            .field("handlers", &self.handler_count())
            .field("stopped", &self.shared.is_stopped())
            .finish_non_exhaustive()
    }
}
