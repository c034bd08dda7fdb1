//! [`Stopwatch`]: how long calls take, at less than the price of looking at the clock after each.
//!
//! A look at the clock costs about 25 ns, as much as delivering an event to a quick handler does. So while calls are
//! quick, one look serves a few of them; as soon as they are not, each is timed by itself. A slow call among quick ones
//! is then measured with its quick neighbours, which makes no difference. Only when calls become slow all at once, the
//! first few of them are taken for one.

use std::time::Duration;

use tokio::time::Instant;

/// As many quick calls are timed together, at most.
const GROUP: u32 = 16;

/// Up to here, a call is quick.
const QUICK: Duration = Duration::from_micros(1);

/// Times the calls of one handler.
pub(super) struct Stopwatch {
    began: Instant,
    /// How many calls the current group has.
    group: u32,
    /// How many of them are behind us.
    calls: u32,
}

impl Stopwatch {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), group: 1, calls: 0 }
    }

    /// Begins a group of calls now; the time since the last one does not count.
    pub(super) fn restart(&mut self) {
        self.began = Instant::now();
        self.calls = 0;
    }

    /// Notes the end of a call, where the next one begins; returns how long the calls since the last look took, if this
    /// is the time for one.
    pub(super) fn lap(&mut self) -> Option<Duration> {
        self.calls += 1;
        (self.calls >= self.group).then(|| self.look())
    }

    /// Returns how long the calls since the last look took, if there were any.
    pub(super) fn finish(&mut self) -> Option<Duration> {
        (self.calls > 0).then(|| self.look())
    }

    fn look(&mut self) -> Duration {
        let now = Instant::now();
        let took = now - self.began;
        self.group = if took <= QUICK * self.calls { (self.group * 2).min(GROUP) } else { 1 };
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
        assert_eq!(stopwatch.lap(), Some(Duration::from_millis(2)), "alone again");
        tokio::time::advance(Duration::from_millis(5)).await;
        stopwatch.restart();
        assert_eq!(stopwatch.lap(), Some(Duration::ZERO), "what lies between does not count");
    }
}
