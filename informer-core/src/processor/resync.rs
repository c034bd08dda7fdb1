//! [`ResyncClock`]: when a handler is due its next resync.
//!
//! client-go: `processorListener.shouldResync` and `sharedProcessor.resyncCheckPeriodChanged` of
//! `tools/cache/shared_informer.go`. Unlike there, a handler that wants no resyncs gets none before the first check
//! either, and the periods count from the informer's start.

use std::time::Duration;

use tokio::time::Instant;

/// When a handler is due its next resync.
pub(super) struct ResyncClock {
    period: Option<Duration>,
    next: Instant,
    /// Whether unchanged objects that are handed out now are for this handler. Until the first check, they are for
    /// every handler that wants resyncs at all.
    syncing: bool,
}

/// How far apart the informer's checks for resyncs are.
#[derive(Clone, Copy)]
pub(super) enum CheckPeriod {
    /// Handlers may still ask for a shorter one.
    Open,
    Fixed(Option<Duration>),
}

impl ResyncClock {
    pub(super) fn new(period: Option<Duration>) -> Self {
        let mut clock = Self { period: None, next: Instant::now(), syncing: false };
        clock.restart(period);
        clock
    }

    pub(super) fn period(&self) -> Option<Duration> {
        self.period
    }

    pub(super) fn is_syncing(&self) -> bool {
        self.syncing
    }

    /// Counts a period, the same or another, from now on.
    pub(super) fn restart(&mut self, period: Option<Duration>) {
        self.period = period;
        self.next = Instant::now() + period.unwrap_or_default();
        self.syncing = period.is_some();
    }

    /// Raises a period that is shorter than the informer's checks are apart, and ends it if there are none.
    pub(super) fn limit(&mut self, check_period: Option<Duration>) {
        self.restart(match (self.period, check_period) {
            (Some(period), Some(check_period)) => Some(period.max(check_period)),
            _ => None,
        });
    }

    /// Returns whether the handler is due a resync, and if so starts its next period. The answer holds until the next
    /// check.
    pub(super) fn check(&mut self, now: Instant) -> bool {
        let due = self.period.filter(|_| now >= self.next);
        if let Some(period) = due {
            self.next = now + period;
        }
        self.syncing = due.is_some();
        self.syncing
    }
}
