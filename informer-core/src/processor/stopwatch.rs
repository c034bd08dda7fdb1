//! [`Stopwatch`]: measures calls without reading the clock after each of them.
//!
//! Reading the clock costs about 25 ns, as much as delivering an event to a quick handler. While
//! calls are quick, one reading covers a group of them; slow calls are measured one by one. A slow
//! call in a group of quick ones is measured correctly enough, because the quick ones add little.
//! When calls suddenly become slow, the first group is measured as one call.

use std::time::Duration;

use tokio::time::Instant;

/// The maximum number of calls in a group.
const MAX_GROUP: u32 = 16;

/// The maximum duration of a quick call.
const QUICK: Duration = Duration::from_micros(1);

/// Times the calls of one handler.
pub(super) struct Stopwatch {
    began: Instant,
    /// The number of calls of the current group.
    group: u32,
    /// The number of calls of the current group that have ended.
    calls: u32,
}

impl Stopwatch {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), group: 1, calls: 0 }
    }

    /// Begins a group of calls now. The time since the last call does not count.
    pub(super) fn restart(&mut self) {
        self.began = Instant::now();
        self.calls = 0;
    }

    /// Ends a call and begins the next one. Returns the duration of the group if this call
    /// completes it.
    pub(super) fn lap(&mut self) -> Option<Duration> {
        self.calls += 1;
        (self.calls >= self.group).then(|| self.end_group())
    }

    /// Ends the group. Returns its duration if it has any calls.
    pub(super) fn finish(&mut self) -> Option<Duration> {
        (self.calls > 0).then(|| self.end_group())
    }

    fn end_group(&mut self) -> Duration {
        let now = Instant::now();
        let took = now - self.began;
        self.group = if took <= QUICK * self.calls { (self.group * 2).min(MAX_GROUP) } else { 1 };
        self.began = now;
        self.calls = 0;
        took
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn quick_calls_are_timed_together_and_slow_ones_alone() {
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
