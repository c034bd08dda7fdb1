//! [`HandlerTask`]: calls one handler with what its listener gets, as long as it is not removed.
//!
//! client-go: `processorListener.run`. There a panic costs the process, or a second of sleep and the registration's
//! chance of ever being synced; here the call, and nothing else.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::cursor::{Cursor, Next};
use super::listener::{ListenerGuard, ProcessorListener};
use super::stopwatch::Stopwatch;
use crate::handler::{dispatch, dispatch_async};
use crate::{AsyncEventHandler, Event, EventHandler, panic_message};

/// After so many calls in a row, other tasks have their turn.
const CALLS_IN_A_ROW: usize = 128;

/// A call that takes as long, while more waits than the handler's threshold, is told of in the log. client-go's figure.
const SLOW: Duration = Duration::from_millis(100);

/// Where a handler without a threshold counts as far behind.
const FAR_BEHIND: usize = 1024;

tokio::task_local! {
    /// Whose calls are made by the task that is running.
    static CALLING: usize;
}

/// Returns whether the code that asks has been called by this listener.
pub(super) fn is_called_by<K>(listener: &ProcessorListener<K>) -> bool {
    CALLING.try_with(|id| *id == listener.id()).unwrap_or(false)
}

/// The ways in which a handler can be called.
pub(super) enum Handler<K: Send + Sync + 'static> {
    Sync(Box<dyn EventHandler<K>>),
    Async(Box<dyn AsyncEventHandler<K>>),
}

impl<K: Send + Sync + 'static> Handler<K> {
    pub(super) fn needs_old_states(&self) -> bool {
        match self {
            Self::Sync(handler) => handler.needs_old_states(),
            Self::Async(handler) => handler.needs_old_states(),
        }
    }
}

/// A handler, and the listener whose events it gets.
struct HandlerTask<K: Send + Sync + 'static> {
    // Dropped before the listener, which tells that it is gone.
    handler: Handler<K>,
    listener: ListenerGuard<K>,
    stopwatch: Stopwatch,
    /// How many calls there were, to know when it is the turn of other tasks. Counted beyond one delivery, because what
    /// is coalesced comes in small ones.
    calls: usize,
    /// Whether it has been said that the handler is slow, since it last had nothing to do.
    logged_slowness: bool,
}

/// How a call ended.
enum Called {
    Returned,
    /// The message of the panic.
    Panicked(String),
    /// The handler was removed while the call was waiting for something.
    Abandoned,
}

impl From<std::thread::Result<()>> for Called {
    fn from(outcome: std::thread::Result<()>) -> Self {
        match outcome {
            Ok(()) => Self::Returned,
            Err(payload) => Self::Panicked(panic_message(payload)),
        }
    }
}

/// Returns the work of serving a handler until its listener is removed.
pub(super) fn serve<K: Send + Sync + 'static>(
    listener: Arc<ProcessorListener<K>>,
    handler: Handler<K>,
) -> BoxFuture<'static, ()> {
    let id = listener.id();
    let listener = ListenerGuard(listener);
    let service =
        HandlerTask { handler, listener, stopwatch: Stopwatch::new(), calls: 0, logged_slowness: false };
    Box::pin(CALLING.scope(id, service.run()))
}

impl<K: Send + Sync + 'static> HandlerTask<K> {
    async fn run(mut self) {
        while let Some(cursor) = self.next_delivery().await {
            self.deliver(cursor).await;
        }
    }

    async fn next_delivery(&mut self) -> Option<Cursor<K>> {
        poll_fn(|cx| {
            let taken = self.listener.poll_take(cx);
            self.logged_slowness &= taken.is_ready() || self.listener.is_behind();
            taken
        })
        .await
    }

    async fn deliver(&mut self, mut cursor: Cursor<K>) {
        self.stopwatch.restart();
        while let Some(next) = cursor.next() {
            let event = match &next {
                Next::Shared(event) => *event,
                Next::Own(event) => event,
                Next::InitialComplete => {
                    // I6: only now have the initial adds returned from the handler.
                    self.listener.synced.set();
                    continue;
                }
            };
            if self.listener.is_removed() {
                return;
            }
            // I4: this task is the only caller. I12: a panic ends this call and nothing else.
            let called = match &self.handler {
                Handler::Sync(handler) => {
                    catch_unwind(AssertUnwindSafe(|| dispatch(handler.as_ref(), event))).into()
                }
                Handler::Async(handler) => self.call_async(handler.as_ref(), event).await,
            };
            match called {
                Called::Returned => self.listener.count_delivered(),
                Called::Panicked(panic) => {
                    self.listener.count_panicked();
                    let (handler, key) = (self.listener.name(), event.key());
                    tracing::error!(%handler, %key, panic, "handler panicked; continuing with the next event");
                }
                Called::Abandoned => return,
            }
            if let Some(took) = self.stopwatch.lap() {
                self.note_duration(took);
            }
            self.calls += 1;
            if self.calls.is_multiple_of(CALLS_IN_A_ROW) {
                drop(next);
                self.end_burst();
                tokio::task::yield_now().await;
                self.stopwatch.restart();
            }
        }
        self.end_burst();
    }

    fn end_burst(&mut self) {
        if let Some(took) = self.stopwatch.finish() {
            self.note_duration(took);
        }
    }

    /// Calls the handler, which may wait, with one event.
    async fn call_async(&self, handler: &dyn AsyncEventHandler<K>, event: &Event<K>) -> Called {
        let call = AssertUnwindSafe(dispatch_async(handler, event)).catch_unwind();
        // I12: whoever waits for the handler's end does not wait for what the handler waits for.
        tokio::select! {
            biased;
            () = self.listener.removed.wait() => Called::Abandoned,
            outcome = call => Called::from(outcome),
        }
    }

    fn note_duration(&mut self, took: Duration) {
        self.listener.note_duration(took);
        if took < SLOW || self.logged_slowness {
            return;
        }
        let backlog = self.listener.backlog();
        if backlog.is_coalescing || backlog.pending > FAR_BEHIND {
            self.logged_slowness = true;
            tracing::warn!(
                handler = %self.listener.name(),
                pending = backlog.pending,
                took_ms = took.as_millis(),
                "handler is slow; its backlog is coalesced to one event per key, unless it has no threshold"
            );
        }
    }
}
