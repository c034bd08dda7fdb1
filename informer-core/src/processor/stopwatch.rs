//! [`Stopwatch`]: measures the duration of calls without reading the clock after each quick call.
//!
//! Reading the clock costs about 25 ns, as much as delivering an event to a quick handler. While
//! calls are quick, the clock is read once per group of calls. If several calls of a group are
//! slow, their sum is reported as the duration of one call.

use std::time::Duration;

use tokio::time::Instant;

/// The maximum number of calls in one group.
const MAX_GROUP: u32 = 16;

/// The maximum average duration of quick calls.
const QUICK: Duration = Duration::from_micros(1);

pub(super) struct Stopwatch {
    began: Instant,
    /// The number of calls after which the current group ends.
    group_size: u32,
    /// The number of calls of the current group that have ended.
    calls: u32,
}

impl Stopwatch {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), group_size: 1, calls: 0 }
    }

    /// Starts a new group of calls now. The time since the previous call is not measured.
    pub(super) fn restart(&mut self) {
        self.began = Instant::now();
        self.calls = 0;
    }

    /// Records the end of a call and the start of the next one. Returns the duration of the group
    /// if this call ends it.
    pub(super) fn lap(&mut self) -> Option<Duration> {
        self.calls += 1;
        (self.calls >= self.group_size).then(|| self.end_group())
    }

    /// Ends the current group early. Returns the total duration of the group's calls, or `None` if
    /// the group has no calls yet.
    pub(super) fn finish(&mut self) -> Option<Duration> {
        (self.calls > 0).then(|| self.end_group())
    }

    fn end_group(&mut self) -> Duration {
        let now = Instant::now();
        let took = now - self.began;
        let is_quick = took <= QUICK * self.calls;
        self.group_size = if is_quick { (self.group_size * 2).min(MAX_GROUP) } else { 1 };
        self.began = now;
        self.calls = 0;
        took
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn quick_calls_are_timed_in_groups_and_slow_calls_alone() {
        let mut stopwatch = Stopwatch::new();
        let laps: Vec<_> = (0..31).filter(|_| stopwatch.lap().is_some()).collect();
        assert_eq!(laps, [0, 2, 6, 14, 30], "one, two, four, eight, and sixteen");
        tokio::time::advance(Duration::from_millis(3)).await;
        assert_eq!(stopwatch.lap(), None);
        assert_eq!(stopwatch.finish(), Some(Duration::from_millis(3)));
        tokio::time::advance(Duration::from_millis(2)).await;
        assert_eq!(stopwatch.lap(), Some(Duration::from_millis(2)), "timed alone again");
        tokio::time::advance(Duration::from_millis(5)).await;
        stopwatch.restart();
        assert_eq!(stopwatch.lap(), Some(Duration::ZERO), "the time between calls does not count");
    }
}
