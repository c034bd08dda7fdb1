//! [`ProcessorListener`]: the mailbox, resync clock and counters of one handler. Its consumer is a
//! [`HandlerTask`](super::handler_task) or a [stream](super::stream).
//!
//! client-go: `processorListener` of `tools/cache/shared_informer.go`, which has two goroutines.
//! Here, a handler has one task, and a stream has none.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::mailbox::{Backlog, Mailbox, Unread};
use super::options::HandlerOptions;
use super::resync::ResyncClock;
use super::shared::Shared;
use super::shared_backlog::SharedBacklog;
use crate::sync::{Latch, Mutex};
use crate::{AnyObject, Completion};

/// The waiting events, the next resync and the counters of one handler or stream.
pub(super) struct ProcessorListener {
    name: String,
    pub(super) mailbox: Mailbox<AnyObject>,
    resync: Mutex<ResyncClock>,
    /// Set when the handler has been removed and must not be called any more.
    pub(super) removed: Latch,
    processor: Weak<Shared>,
    /// Set after the last call has ended and the handler has been dropped.
    pub(super) ended: Completion,
    pub(super) synced: Completion,
    delivered: AtomicU64,
    panicked: AtomicU64,
    /// The duration of the handler's longest completed call, in nanoseconds.
    slowest: AtomicU64,
    /// The total duration of all completed calls of the handler, in nanoseconds. Zero for a stream.
    busy: AtomicU64,
}

/// Statistics of one handler or [`EventStream`](crate::EventStream).
///
/// For a slow handler, `pending` and `coalesced` can also count resyncs that are due only for other
/// handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HandlerStats {
    /// The number of waiting events, including the event of the current call. Initial adds of
    /// objects that existed when the handler was added are not included. The number is approximate
    /// for a slow handler, because its waiting events can still be merged.
    pub pending: usize,
    /// The number of calls that have returned. For a stream, the number of events that the reader
    /// has received.
    pub delivered: u64,
    /// The total number of events that were merged into an earlier event, because the handler was
    /// slow. An add and a delete that cancel each other count as two.
    pub coalesced: u64,
    /// The number of calls that panicked.
    pub panicked: u64,
    /// The duration of the longest completed call. Always zero for a stream.
    ///
    /// Very short calls, of about a microsecond, are measured in groups of up to 16 calls. The
    /// duration of a group is then treated like the duration of one call.
    pub slowest: Duration,
    /// The total duration of all completed calls. Always zero for a stream.
    pub busy: Duration,
}

impl HandlerStats {
    /// Returns the sum of these statistics and those of another handler. `slowest` is the longest
    /// call of both handlers.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.pending += other.pending;
        self.delivered += other.delivered;
        self.coalesced += other.coalesced;
        self.panicked += other.panicked;
        self.slowest = self.slowest.max(other.slowest);
        self.busy += other.busy;
        self
    }
}

impl ProcessorListener {
    pub(super) fn new(
        name: String,
        options: &HandlerOptions,
        period: Option<Duration>,
        backlog: Arc<SharedBacklog<AnyObject>>,
        processor: Weak<Shared>,
    ) -> Self {
        Self {
            name,
            mailbox: Mailbox::new(options.threshold, backlog),
            resync: Mutex::new(ResyncClock::new(period)),
            removed: Latch::default(),
            processor,
            ended: Completion::new(),
            synced: Completion::new(),
            delivered: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            slowest: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a number that no other existing listener has.
    pub(super) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    pub(super) fn resync_period(&self) -> Option<Duration> {
        self.resync.lock().period()
    }

    /// Restarts the resync period now, and returns it; `None` if the handler gets no resyncs.
    pub(super) fn restart_resync(&self) -> Option<Duration> {
        let mut clock = self.resync.lock();
        let period = clock.period();
        clock.restart(period);
        period
    }

    pub(super) fn apply_check_period(&self, check_period: Option<Duration>) {
        self.resync.lock().apply_check_period(check_period);
    }

    /// Returns whether the handler receives the resyncs that are published before the next
    /// [`check_resync`](Self::check_resync).
    pub(super) fn is_syncing(&self) -> bool {
        self.resync.lock().is_syncing()
    }

    pub(super) fn check_resync(&self, now: Instant) -> bool {
        self.resync.lock().check(now)
    }

    pub(super) fn is_removed(&self) -> bool {
        self.mailbox.is_closed()
    }

    pub(super) fn stats(&self) -> HandlerStats {
        let Backlog { pending, merged, .. } = self.mailbox.backlog();
        HandlerStats {
            pending,
            delivered: self.delivered.load(Ordering::Relaxed),
            coalesced: merged,
            panicked: self.panicked.load(Ordering::Relaxed),
            slowest: Duration::from_nanos(self.slowest.load(Ordering::Relaxed)),
            busy: Duration::from_nanos(self.busy.load(Ordering::Relaxed)),
        }
    }

    /// Counts a call that has returned, or an event that a stream yields to its reader.
    pub(super) fn count_delivered(&self) {
        // Only the consumer writes the counters, so load and store are enough.
        self.delivered.store(self.delivered.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.mailbox.finish_one();
    }

    pub(super) fn count_panicked(&self) {
        self.panicked.store(self.panicked.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.mailbox.finish_one();
    }

    pub(super) fn record_duration(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.busy.store(self.busy.load(Ordering::Relaxed).saturating_add(nanos), Ordering::Relaxed);
        if nanos > self.slowest.load(Ordering::Relaxed) {
            self.slowest.store(nanos, Ordering::Relaxed);
        }
    }

    /// Removes the handler, and returns its waiting events for the caller to drop; `None` if the
    /// handler was already removed.
    pub(super) fn remove(&self) -> Option<Unread<AnyObject>> {
        let unread = self.mailbox.close()?;
        self.removed.set();
        self.synced.cancel();
        if let Some(processor) = self.processor.upgrade() {
            processor.unregister(self);
        }
        Some(unread)
    }

    pub(super) fn waiting_for(&self) -> Option<String> {
        if self.synced.has_synced() {
            return None;
        }
        let Some(processor) = self.processor.upgrade() else {
            return Some("the informer has stopped".to_owned());
        };
        Some(processor.sync_obstacle(self).unwrap_or_else(|| match self.mailbox.backlog().pending {
            0 => "initial objects are being delivered, or the stream must be polled again".to_owned(),
            1 => "1 event is waiting".to_owned(),
            pending => format!("{pending} events are waiting"),
        }))
    }
}

/// A guard that the consumer of a listener holds: the handler's task or a stream. Dropping the
/// guard removes the listener.
pub(super) struct ListenerGuard(pub(super) Arc<ProcessorListener>);

impl std::ops::Deref for ListenerGuard {
    type Target = ProcessorListener;

    fn deref(&self) -> &ProcessorListener {
        &self.0
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        // A panic in a call of a handler does not drop the guard: the task catches such a panic.
        if std::thread::panicking() {
            tracing::error!(
                handler = %self.name(),
                "handler or event stream was removed by a panic outside of handler calls, such as a panic in the task that \
                 reads the stream; it receives no more events"
            );
        }
        // I12: this ends all waits for the handler. The events are dropped last, because a
        // destructor of an object can panic.
        let unread = self.remove();
        self.mailbox.consumer_ended();
        self.ended.set();
        drop(unread);
    }
}
