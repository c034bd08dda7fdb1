//! [`HandlerTask`]: calls one handler with the events of its listener until the listener is
//! removed.
//!
//! client-go: `processorListener.run`, where a panic of a handler ends the process. Here, the
//! handler receives the next event.

use std::borrow::Cow;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::batch::SharedBatch;
use super::cursor::{Cursor, Next};
use super::listener::{ListenerGuard, ProcessorListener};
use super::stopwatch::Stopwatch;
use crate::handler::AnyHandler;
use crate::{AnyObject, Event, panic_message};

/// The number of calls of a handler after which the handler's task yields to other tasks.
const MAX_CALLS_IN_A_ROW: usize = 128;

/// The minimum duration of a slow call. client-go uses the same duration.
const SLOW: Duration = Duration::from_millis(100);

/// A call of at least [`SLOW`] is logged if more than this number of events is waiting for the
/// handler, or if the handler's waiting events are being merged. Further calls are not logged until
/// the handler has caught up.
const FAR_BEHIND: usize = 1024;

tokio::task_local! {
    /// The ID of the listener whose handler the current task calls.
    static CALLING: usize;
}

/// Returns whether the current task is the one that calls this listener's handler.
pub(super) fn is_called_by(listener: &ProcessorListener) -> bool {
    CALLING.try_with(|id| *id == listener.id()).unwrap_or(false)
}

struct HandlerTask {
    // `handler` is declared before `listener`, so that the handler is dropped first: the listener
    // reports its end only after the handler has been dropped.
    handler: Box<dyn AnyHandler>,
    listener: ListenerGuard,
    /// Whether the processor has ever published an event with an encoded object. All handlers share
    /// this flag.
    has_encoded: Arc<AtomicBool>,
    /// Whether an encoded object in an event of this handler has been read, or a handle to the
    /// object has been cloned. If so, the handler gets its own copies of events with encoded
    /// objects.
    uses_objects: bool,
    stopwatch: Stopwatch,
    /// The total number of calls of the handler. After every [`MAX_CALLS_IN_A_ROW`] calls, the task
    /// yields to other tasks.
    calls: usize,
    /// Whether slowness of the handler has been logged since the task last waited for events.
    logged_slowness: bool,
}

/// An event whose objects a handler can read: the original event or a copy that several handlers
/// share (borrowed), or a copy for this handler only (owned). A copy decodes encoded objects.
type Opened<'a> = Cow<'a, Event<AnyObject>>;

/// Returns an owned copy if the event has a closed handle, and otherwise the event itself.
fn open_for_this_handler(event: &Event<AnyObject>) -> Opened<'_> {
    event.with_open_handles().map_or(Cow::Borrowed(event), Cow::Owned)
}

enum Called {
    Returned,
    Panicked(String),
    /// The handler was removed before its async call completed.
    Abandoned,
}

pub(super) fn new(
    listener: Arc<ProcessorListener>,
    handler: Box<dyn AnyHandler>,
    has_encoded: Arc<AtomicBool>,
) -> BoxFuture<'static, ()> {
    let id = listener.id();
    let listener = ListenerGuard(listener);
    let task = HandlerTask {
        handler,
        listener,
        has_encoded,
        uses_objects: false,
        stopwatch: Stopwatch::new(),
        calls: 0,
        logged_slowness: false,
    };
    Box::pin(CALLING.scope(id, task.run()))
}

impl HandlerTask {
    async fn run(mut self) {
        while let Some(cursor) = self.take().await {
            self.deliver(cursor).await;
        }
    }

    async fn take(&mut self) -> Option<Cursor<AnyObject>> {
        poll_fn(|cx| {
            let taken = self.listener.mailbox.poll_take(cx);
            self.logged_slowness &= taken.is_ready() || self.listener.mailbox.is_behind();
            taken
        })
        .await
    }

    async fn deliver(&mut self, mut cursor: Cursor<AnyObject>) {
        self.stopwatch.restart();
        let has_encoded = self.has_encoded.load(Ordering::Relaxed);
        while let Some(next) = cursor.next() {
            let opened = match &next {
                Next::Shared(batch, at) if has_encoded => self.open(batch, *at),
                Next::Shared(batch, at) => Cow::Borrowed(&batch.events[*at]),
                Next::Own(event) => open_for_this_handler(event),
                Next::InitialComplete => {
                    // I6: the handler has returned from all initial adds.
                    self.listener.synced.set();
                    continue;
                }
            };
            if self.listener.is_removed() {
                return;
            }
            let event = &*opened;
            // I4: only this task calls the handler. I12: a panic only ends this call.
            let called = match catch_unwind(AssertUnwindSafe(|| self.handler.call(event))) {
                Ok(None) => Called::Returned,
                Ok(Some(call)) => self.finish(call).await,
                Err(payload) => Called::Panicked(panic_message(payload)),
            };
            // Only a copy can be in use. If the copy is shared, it can also be in use because of
            // another handler. The only effect is that this handler gets its own handles without
            // need.
            if has_encoded || matches!(opened, Cow::Owned(_)) {
                self.uses_objects |= event.is_in_use();
            }
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
                self.record_duration(took);
            }
            self.calls += 1;
            if self.calls.is_multiple_of(MAX_CALLS_IN_A_ROW) {
                drop(next);
                self.end_burst();
                tokio::task::yield_now().await;
                self.stopwatch.restart();
            }
        }
        self.end_burst();
    }

    /// Returns the event with the index `at`, in a form in which the handler can read the objects.
    fn open<'a>(&self, batch: &'a SharedBatch<AnyObject>, at: usize) -> Opened<'a> {
        let event = &batch.events[at];
        let is_shared = Arc::strong_count(batch) > 1;
        // The handlers that read no objects share one copy. A handler that reads objects gets a
        // copy of its own, which is freed after the call. The shared copy would keep the decoded
        // objects until all handlers have received the batch.
        if is_shared && !self.uses_objects && event.is_closed() {
            let shared = batch.shared_copy(at);
            // Otherwise another handler uses an object: the batch keeps this object, but no others.
            if !shared.is_in_use() {
                return Cow::Borrowed(shared);
            }
        }
        open_for_this_handler(event)
    }

    fn end_burst(&mut self) {
        if let Some(took) = self.stopwatch.finish() {
            self.record_duration(took);
        }
    }

    /// Waits until a call of an async handler ends, or the handler is removed.
    async fn finish(&self, call: BoxFuture<'_, ()>) -> Called {
        let call = AssertUnwindSafe(call).catch_unwind();
        // I12: removing the handler ends its task even if the call never completes.
        tokio::select! {
            biased;
            () = self.listener.removed.wait() => Called::Abandoned,
            outcome = call => match outcome {
                Ok(()) => Called::Returned,
                Err(payload) => Called::Panicked(panic_message(payload)),
            },
        }
    }

    fn record_duration(&mut self, took: Duration) {
        self.listener.record_duration(took);
        if took < SLOW || self.logged_slowness {
            return;
        }
        let backlog = self.listener.mailbox.backlog();
        if backlog.is_coalescing || backlog.pending > FAR_BEHIND {
            self.logged_slowness = true;
            tracing::warn!(
                handler = %self.listener.name(),
                pending = backlog.pending,
                took_ms = took.as_millis(),
                "handler is slow, and events wait for it; once as many events wait as `HandlerOptions::threshold` says, new events of the same object are merged into one"
            );
        }
    }
}
