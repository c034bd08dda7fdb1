//! [`WatchCache`]: whether an API server's watch cache, which serves watches and most lists, is
//! ready.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::ReadError;

/// Maximum `Retry-After`, in seconds.
const MAX_RETRY_AFTER: u32 = 30;

/// The growth rate of `Retry-After`. When a cache has been unready for t seconds, `Retry-After` is
/// e^(rate * t), before rounding and limits.
const GROWTH: f64 = 0.06;

/// The time when an API server's watch cache became unready; `None` while the cache is ready.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchCache(Arc<Mutex<Option<Instant>>>);

impl WatchCache {
    /// Makes the cache ready, or unready from now on. If the cache already is unready, its original
    /// time stays.
    pub(crate) fn set_ready(&self, ready: bool) {
        let mut unready_since = self.0.lock();
        let begin = unready_since.unwrap_or_else(Instant::now);
        *unready_since = (!ready).then_some(begin);
    }

    /// Returns an error while the cache is not ready.
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        match *self.0.lock() {
            None => Ok(()),
            Some(since) => Err(ReadError::Initializing { retry_after: retry_after(since.elapsed()) }),
        }
    }
}

/// Returns the whole part of e^(0.06 t), at least 1 and at most 30, for a downtime of t seconds, as
/// the API server's `calculateRetryAfterForUnreadyCache` does.
fn retry_after(downtime: Duration) -> u32 {
    let grown = (GROWTH * downtime.as_secs_f64()).exp();
    (1..=MAX_RETRY_AFTER).rev().find(|seconds| f64::from(*seconds) <= grown).unwrap_or(1)
}
