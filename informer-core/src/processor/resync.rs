//! [`ResyncClock`]: the time of a handler's next resync.
//!
//! At regular times, the informer checks for each handler whether a resync is due. If so for at
//! least one handler, the informer calls [`DeltaFifo::resync`](crate::DeltaFifo::resync). The other
//! handlers skip these resyncs; for exceptions, see
//! [`check_resync`](super::SharedProcessor::check_resync).
//!
//! client-go: `processorListener.shouldResync` and `sharedProcessor.resyncCheckPeriodChanged` of
//! `tools/cache/shared_informer.go`, with two differences:
//!
//! - A handler without a resync period never receives resyncs.
//! - If a handler is added before the informer starts, its first period begins at the start.

use std::time::Duration;

use tokio::time::Instant;

pub(super) struct ResyncClock {
    period: Option<Duration>,
    next: Instant,
    /// Whether the handler receives resyncs: `true` if a resync was due at the last
    /// [`check`](Self::check). Before the first check, `true` if the handler has a resync period.
    was_due: bool,
}

/// Whether the informer has started, and how often it then checks which resyncs are due.
#[derive(Clone, Copy)]
pub(super) enum CheckPeriod {
    /// The informer has not started, so it makes no checks yet.
    Open,
    /// The informer has started, and makes a check at this interval. With `None`, it never makes a
    /// check, and no handler receives resyncs.
    Fixed(Option<Duration>),
}

impl ResyncClock {
    pub(super) fn new(period: Option<Duration>) -> Self {
        let mut clock = Self { period: None, next: Instant::now(), was_due: false };
        clock.restart(period);
        clock
    }

    pub(super) fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Returns whether the handler receives the resyncs that are published before the next
    /// [`check`](Self::check). As in client-go, "syncing" means resyncing here.
    pub(super) fn is_syncing(&self) -> bool {
        self.was_due
    }

    /// Sets the resync period, which starts now; `None` means no resyncs.
    pub(super) fn restart(&mut self, period: Option<Duration>) {
        self.period = period;
        self.next = Instant::now() + period.unwrap_or_default();
        self.was_due = period.is_some();
    }

    /// Restarts the resync period, which becomes at least `check_period`. If `check_period` is
    /// `None`, the handler receives no resyncs.
    pub(super) fn apply_check_period(&mut self, check_period: Option<Duration>) {
        self.restart(match (self.period, check_period) {
            (Some(period), Some(check_period)) => Some(period.max(check_period)),
            _ => None,
        });
    }

    /// Returns whether a resync is due at the time `now`, because the current period is over. If
    /// so, starts the next period.
    pub(super) fn check(&mut self, now: Instant) -> bool {
        let due = self.period.filter(|_| now >= self.next);
        if let Some(period) = due {
            self.next = now + period;
        }
        self.was_due = due.is_some();
        self.was_due
    }
}
