//! [`ProcessorListener`]: one handler's hand-over, resync clock and counters; what does the listening is a
//! [`HandlerTask`](super::handler_task) or a [stream](super::stream).
//!
//! client-go: `processorListener` of `tools/cache/shared_informer.go`, there two goroutines and a channel hand-over per
//! event; here one task at most, woken once per batch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use super::Shared;
use super::cursor::Cursor;
use super::handover::{Backlog, Handover};
use super::inbox::Replay;
use super::options::HandlerOptions;
use super::published::Published;
use super::resync::ResyncClock;
use super::shared_backlog::SharedBacklog;
use crate::Completion;
use crate::sync::{Latch, Mutex};

/// A handler as its processor knows it.
pub(super) struct ProcessorListener<K> {
    name: String,
    handover: Handover<K>,
    resync: Mutex<ResyncClock>,
    /// Set when the handler is not to be called any more.
    pub(super) removed: Latch,
    processor: Weak<Shared<K>>,
    /// Set when nobody calls the handler any more and it has been dropped.
    pub(super) ended: Completion,
    pub(super) synced: Completion,
    delivered: AtomicU64,
    panicked: AtomicU64,
    /// In nanoseconds.
    slowest: AtomicU64,
}

/// How a handler fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HandlerStats {
    /// Events that wait for the handler, the one it is being called with included. Objects of a replay are not counted.
    pub pending: usize,
    /// Calls that have returned; for a stream, events that have been handed out.
    pub delivered: u64,
    /// Events that were merged into an earlier one because the handler was behind.
    pub coalesced: u64,
    /// Calls that panicked.
    pub panicked: u64,
    /// How long the longest call took that has returned or panicked so far. Zero for a stream, where the time between
    /// two events says nothing about either.
    pub slowest: Duration,
}

impl<K> ProcessorListener<K> {
    pub(super) fn new(
        name: String,
        options: &HandlerOptions,
        period: Option<Duration>,
        backlog: Arc<SharedBacklog<K>>,
        processor: Weak<Shared<K>>,
    ) -> Self {
        Self {
            name,
            handover: Handover::new(options.threshold, !options.forgoes_old_states, backlog),
            resync: Mutex::new(ResyncClock::new(period)),
            removed: Latch::default(),
            processor,
            ended: Completion::new(),
            synced: Completion::new(),
            delivered: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            slowest: AtomicU64::new(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What tells this listener from all others there are.
    pub(super) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    pub(super) fn resync_period(&self) -> Option<Duration> {
        self.resync.lock().period()
    }

    /// Counts the resync period from now on, and returns it.
    pub(super) fn restart_resync(&self) -> Option<Duration> {
        let mut clock = self.resync.lock();
        let period = clock.period();
        clock.restart(period);
        period
    }

    /// Raises a resync period that is shorter than the informer's checks are apart.
    pub(super) fn limit_resync(&self, check_period: Option<Duration>) {
        self.resync.lock().limit(check_period);
    }

    pub(super) fn start_with(&self, replay: Replay<K>, completes_initial_list: bool) {
        self.handover.start_with(replay, completes_initial_list);
    }

    /// Hands a batch over, with the resyncs in it if the handler is due them.
    pub(super) fn push(&self, published: &mut Published<K>) {
        let with_resyncs = published.has_resyncs() && self.is_syncing();
        published.hand_to(&self.handover, with_resyncs);
    }

    /// Returns whether the current resync is for this handler.
    pub(super) fn is_syncing(&self) -> bool {
        self.resync.lock().is_syncing()
    }

    /// Returns whether the handler's backlog is so long that events are coalesced.
    pub(super) fn is_behind(&self) -> bool {
        self.handover.is_behind()
    }

    pub(super) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Cursor<K>>> {
        self.handover.poll_take(cx)
    }

    /// Returns whether the handler is due a resync, and if so starts its next period.
    pub(super) fn check_resync(&self, now: Instant) -> bool {
        self.resync.lock().check(now)
    }

    pub(super) fn is_removed(&self) -> bool {
        self.handover.is_closed()
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.handover.backlog()
    }

    pub(super) fn stats(&self) -> HandlerStats {
        let Backlog { pending, merged, .. } = self.backlog();
        HandlerStats {
            pending,
            delivered: self.delivered.load(Ordering::Relaxed),
            coalesced: merged,
            panicked: self.panicked.load(Ordering::Relaxed),
            slowest: Duration::from_nanos(self.slowest.load(Ordering::Relaxed)),
        }
    }

    /// Counts a call that has returned, or an event that has been handed out.
    pub(super) fn count_delivered(&self) {
        // Only the one who serves the handler counts, here and below, so load and store are enough.
        self.delivered.store(self.delivered.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.handover.finish_one();
    }

    /// Counts a call that has panicked.
    pub(super) fn count_panicked(&self) {
        self.panicked.store(self.panicked.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.handover.finish_one();
    }

    /// Notes how long a call took.
    pub(super) fn note_duration(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if nanos > self.slowest.load(Ordering::Relaxed) {
            self.slowest.store(nanos, Ordering::Relaxed);
        }
    }

    /// Takes the handler out of service; what waits for it is dropped, and a call under way may still end.
    pub(super) fn remove(&self) {
        if !self.handover.close() {
            return;
        }
        self.removed.set();
        self.synced.give_up();
        if let Some(processor) = self.processor.upgrade() {
            processor.unregister(self);
        }
    }

    /// Says what keeps the handler from being synced; `None` if nothing does.
    pub(super) fn waiting_for(&self) -> Option<String> {
        if self.synced.has_synced() {
            return None;
        }
        let progress = self.processor.upgrade().map(|processor| processor.progress(self));
        if progress.as_ref().is_none_or(|progress| progress.stopped) {
            return Some("its informer has stopped".to_owned());
        }
        let waits_for = if self.is_removed() {
            "it has been removed".to_owned()
        } else if let Some(list) = progress.as_ref().and_then(|progress| progress.list.as_ref()) {
            list.clone()
        } else if progress.is_some_and(|progress| progress.without_task) {
            "its informer is not running".to_owned()
        } else {
            match self.backlog().pending {
                0 => "it is not done with the objects that existed when it joined".to_owned(),
                1 => "1 event waits for it".to_owned(),
                pending => format!("{pending} events wait for it"),
            }
        };
        Some(waits_for)
    }
}

/// A listener in the hands of whoever serves it. When that ends, in whatever way, the listener is out of service.
pub(super) struct ListenerGuard<K>(pub(super) Arc<ProcessorListener<K>>);

impl<K> std::ops::Deref for ListenerGuard<K> {
    type Target = ProcessorListener<K>;

    fn deref(&self) -> &ProcessorListener<K> {
        &self.0
    }
}

impl<K> Drop for ListenerGuard<K> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(handler = %self.name(), "a destructor panicked in the task of the handler; the handler is removed");
        }
        // I12: nobody goes on waiting for it.
        self.remove();
        self.handover.consumer_gone();
        self.ended.set();
    }
}
