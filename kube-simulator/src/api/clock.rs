//! [`Clock`]: the simulator's clock, from which objects get their timestamps.

use std::time::SystemTime;

use jiff::Timestamp;
use tokio::time::Instant;

/// A clock that starts at a given date and advances with tokio's clock, which tests can pause. A
/// date that jiff does not support, such as one after the year 9999, is replaced by 1970-01-01.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began_at: Timestamp,
    began: Instant,
}

impl Clock {
    pub(crate) fn starting_at(date: SystemTime) -> Self {
        let began_at = Timestamp::try_from(date).unwrap_or(Timestamp::UNIX_EPOCH);
        Self { began_at, began: Instant::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.began_at.checked_add(self.began.elapsed()).unwrap_or(Timestamp::MAX)
    }
}
