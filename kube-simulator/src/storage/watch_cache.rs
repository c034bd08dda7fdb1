//! [`WatchCache`]: whether the watch cache of an API server, which serves watches and most lists,
//! is ready.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::ReadError;

/// Maximum `Retry-After`, in seconds.
const LONGEST: u32 = 30;

/// The exponential growth rate of `Retry-After`, per second in which the cache is not ready.
const GROWTH: f64 = 0.06;

/// The state of an API server's watch cache: the time since which it is not ready; `None` while it
/// is ready.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchCache(Arc<Mutex<Option<Instant>>>);

impl WatchCache {
    /// Sets whether the cache is ready. If it already is not ready, the start of that time does not
    /// change.
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

/// Returns the whole seconds in e^(0.06 t), at least 1 and at most 30, as
/// `calculateRetryAfterForUnreadyCache` does.
fn retry_after(downtime: Duration) -> u32 {
    let grown = (GROWTH * downtime.as_secs_f64()).exp();
    (1..=LONGEST).rev().find(|seconds| f64::from(*seconds) <= grown).unwrap_or(1)
}
