//! The clock that all processes share, so that times from the server and from a client can be compared.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the time of the machine's monotonic clock, in nanoseconds.
pub(crate) fn now() -> u64 {
    let time = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
