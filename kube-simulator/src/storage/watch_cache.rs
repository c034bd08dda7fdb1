//! [`WatchCache`]: whether the memory of an API server, from which it serves watches and most lists, has been filled.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::status::{self, Refusal};

/// The longest time that a client is asked to wait, in seconds.
const LONGEST: u32 = 30;

/// How fast the time grows that a client is asked to wait, for each second that has gone by.
const GROWTH: f64 = 0.06;

/// The watch cache of one API server; all that is kept of it is since when it is not ready, if it isn't.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchCache(Arc<Mutex<Option<Instant>>>);

impl WatchCache {
    /// Returns whether it is ready from now on. If it was not before either, the time goes on.
    pub(crate) fn set_ready(&self, ready: bool) {
        let mut unready_since = self.0.lock();
        let begin = unready_since.unwrap_or_else(Instant::now);
        *unready_since = (!ready).then_some(begin);
    }

    /// Refuses what the cache would have to serve while it is not ready.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match *self.0.lock() {
            None => Ok(()),
            Some(since) => Err(status::initializing(retry_after(since.elapsed()))),
        }
    }
}

/// Returns the whole seconds in e^(0.06 t), at least 1 and at most 30, as `calculateRetryAfterForUnreadyCache` does.
fn retry_after(downtime: Duration) -> u32 {
    let grown = (GROWTH * downtime.as_secs_f64()).exp();
    (1..=LONGEST).rev().find(|seconds| f64::from(*seconds) <= grown).unwrap_or(1)
}
