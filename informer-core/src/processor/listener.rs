//! [`ProcessorListener`]: one handler with its inbox and the task that empties it.
//!
//! client-go: `processorListener` of `tools/cache/shared_informer.go`, there two goroutines and a channel hand-over per
//! event; here one task, woken once per batch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::coalesce::Coalesced;
use super::inbox::{Delivery, Inbox, Replay};
use super::options::HandlerOptions;
use super::{OnDrop, Shared};
use crate::handler::dispatch;
use crate::{Event, EventBatch, EventHandler, Synced};

/// A handler, what waits for it, and how it fares.
pub(super) struct ProcessorListener<K> {
    name: String,
    handler: Box<dyn EventHandler<K>>,
    inbox: Mutex<Inbox<K>>,
    wake: Notify,
    resync: Mutex<ResyncClock>,
    /// How many events the task has taken out of the inbox and not yet delivered.
    in_hand: AtomicUsize,
    /// Set when the handler is not to be called any more.
    removed: CancellationToken,
    processor: Weak<Shared<K>>,
    /// Set when its task has ended.
    pub(super) ended: Synced,
    pub(super) synced: Synced,
    delivered: AtomicU64,
    panicked: AtomicU64,
}

/// When a handler is due its next resync.
struct ResyncClock {
    period: Option<Duration>,
    next: Instant,
    /// Whether resyncs that are now under way are for this handler.
    syncing: bool,
}

/// How a handler fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HandlerStats {
    /// Events that wait for the handler, the one it is being called with included. Objects of a replay are not counted.
    pub pending: usize,
    /// Calls that have returned.
    pub delivered: u64,
    /// Events that were merged into an earlier one because the handler was behind.
    pub coalesced: u64,
    /// Calls that panicked.
    pub panicked: u64,
}

impl<K: 'static> ProcessorListener<K> {
    pub(super) fn new<H: EventHandler<K>>(
        handler: H,
        options: &HandlerOptions,
        period: Option<Duration>,
        processor: Weak<Shared<K>>,
    ) -> Self {
        let name = options.name.clone().unwrap_or_else(|| std::any::type_name::<H>().to_owned());
        let now = Instant::now();
        Self {
            name,
            handler: Box::new(handler),
            inbox: Mutex::new(Inbox::new(options.threshold)),
            wake: Notify::new(),
            resync: Mutex::new(ResyncClock {
                period,
                next: now + period.unwrap_or_default(),
                syncing: false,
            }),
            in_hand: AtomicUsize::new(0),
            removed: CancellationToken::new(),
            processor,
            ended: Synced::new(),
            synced: Synced::new(),
            delivered: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn start_with(&self, replay: Replay<K>, completes_initial_list: bool) {
        self.inbox.lock().start_with(replay, completes_initial_list);
        self.wake.notify_one();
    }

    /// Puts a batch, of which so many events are resyncs, into the inbox.
    pub(super) fn push(&self, batch: &Arc<EventBatch<K>>, resyncs: usize) {
        let with_resyncs = self.resync.lock().syncing;
        let count = batch.events.len() - if with_resyncs { 0 } else { resyncs };
        let has_news = {
            let mut inbox = self.inbox.lock();
            let was_empty = inbox.is_empty();
            inbox.push(batch, count, with_resyncs);
            was_empty && !inbox.is_empty()
        };
        if has_news {
            self.wake.notify_one();
        }
    }

    pub(super) fn resync_period(&self) -> Option<Duration> {
        self.resync.lock().period
    }

    /// Raises a period that is shorter than the informer's checks are apart.
    pub(super) fn limit_resync_period(&self, check_period: Option<Duration>) {
        let mut resync = self.resync.lock();
        resync.period = match (resync.period, check_period) {
            (Some(period), Some(check_period)) => Some(period.max(check_period)),
            _ => None,
        };
        resync.next = Instant::now() + resync.period.unwrap_or_default();
    }

    /// Says whether the handler is due a resync, and if so starts its next period.
    pub(super) fn check_resync(&self, now: Instant) -> bool {
        let mut resync = self.resync.lock();
        let due = resync.period.filter(|_| now >= resync.next);
        if let Some(period) = due {
            resync.next = now + period;
        }
        resync.syncing = due.is_some();
        resync.syncing
    }

    /// Takes the handler out of service; what waits for it is dropped, and a call under way may still end.
    pub(super) fn remove(&self) {
        self.removed.cancel();
        let dropped = {
            let mut inbox = self.inbox.lock();
            inbox.closed = true;
            inbox.take()
        };
        drop(dropped);
        self.wake.notify_one();
        self.synced.give_up();
        if let Some(processor) = self.processor.upgrade() {
            processor.unregister(self);
        }
    }

    pub(super) fn is_removed(&self) -> bool {
        self.removed.is_cancelled()
    }

    pub(super) fn stats(&self) -> HandlerStats {
        let (pending, coalesced) = {
            let inbox = self.inbox.lock();
            (inbox.len(), inbox.merged())
        };
        HandlerStats {
            pending: pending + self.in_hand.load(Ordering::Relaxed),
            delivered: self.delivered.load(Ordering::Relaxed),
            coalesced,
            panicked: self.panicked.load(Ordering::Relaxed),
        }
    }

    /// Delivers what comes in, until the handler is removed.
    pub(super) async fn run(&self) {
        // Also where the task is aborted instead of ending by itself.
        let _ended = OnDrop(|| self.ended.set());
        loop {
            let woken = self.wake.notified();
            let delivery = {
                let mut inbox = self.inbox.lock();
                if inbox.closed {
                    break;
                }
                let taken = inbox.len();
                self.in_hand.store(taken, Ordering::Relaxed);
                (!inbox.is_empty()).then(|| inbox.take())
            };
            match delivery {
                Some(delivery) => self.deliver(delivery).await,
                None => woken.await,
            }
        }
    }

    async fn deliver(&self, delivery: Delivery<K>) {
        for object in delivery.replay.into_iter().flatten() {
            self.call(&Event::Added { object, is_in_initial_list: true }).await;
        }
        for shared in delivery.batches {
            for event in &shared.batch.events {
                if shared.with_resyncs || !matches!(event, Event::Resynced(_)) {
                    self.call(event).await;
                    self.in_hand.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
        let coalesced = delivery.coalesced.map(Coalesced::into_events).unwrap_or_default();
        self.in_hand.store(coalesced.len(), Ordering::Relaxed);
        for event in coalesced {
            self.call(&event).await;
            self.in_hand.fetch_sub(1, Ordering::Relaxed);
        }
        // I6: only now have the initial adds returned from the handler.
        if delivery.completes_initial_list && !self.is_removed() {
            self.synced.set();
        }
    }

    /// Calls the handler with one event; the await is only there to let other tasks have their turn.
    async fn call(&self, event: &Event<K>) {
        tokio::task::coop::consume_budget().await;
        if self.is_removed() {
            return;
        }
        // I4: this task is the only caller. I12: a panic ends this call and nothing else.
        match catch_unwind(AssertUnwindSafe(|| dispatch(self.handler.as_ref(), event))) {
            Ok(()) => _ = self.delivered.fetch_add(1, Ordering::Relaxed),
            Err(_) => {
                self.panicked.fetch_add(1, Ordering::Relaxed);
                tracing::error!(handler = %self.name, key = %event.key(), "handler panicked; it goes on with the next event");
            }
        }
    }
}
