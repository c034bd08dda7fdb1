//! The simulator's clock: the date that it puts on objects, moved by tokio's time.

use std::time::SystemTime;

use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the date. It begins at a given date and then goes as tokio's clock goes: paused if that is.
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
