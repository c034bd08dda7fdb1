//! [`Backoff`]: the wait before the next retry.
//!
//! The defaults are client-go's. Unlike in client-go, only a success resets the backoff to the
//! first wait, so the waits stay long during an outage.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);

/// The minimum of configured waits.
// With shorter waits, retries could follow each other almost without a pause.
const MIN: Duration = Duration::from_millis(10);

/// The maximum of configured waits, and of waits that the server requests.
// The limit also prevents overflow when a wait is added to a time.
const MAX: Duration = Duration::from_secs(60 * 60);

/// Computes the waits before retries. Each wait is twice as long as the previous one, up to
/// `longest`. Random jitter then makes each wait up to twice as long.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        let first = first.clamp(MIN, MAX);
        Self { first, longest: longest.clamp(first, MAX), next: first }
    }

    /// Returns the next wait. It is at least as long as the wait that the server requested, of which
    /// at most an hour counts.
    pub(super) fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        let wait = self.next.mul_f64(1.0 + fastrand::f64());
        self.next = (self.next * 2).min(self.longest);
        wait.max(clamped(retry_after))
    }

    /// Returns the longest possible first wait: twice `first`, because of the jitter.
    pub(super) fn max_first_wait(&self) -> Duration {
        self.first * 2
    }

    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Returns the wait that the server requested, limited to an hour; zero if it requested none.
pub(super) fn clamped(retry_after: Option<Duration>) -> Duration {
    retry_after.unwrap_or_default().min(MAX)
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(FIRST, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_with_jitter_and_resets_after_success() {
        let mut backoff = Backoff::default();
        for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let wait = backoff.next(None).as_secs_f64();
            assert!((base..2.0 * base).contains(&wait), "{wait} is not within {base} and twice that");
        }
        backoff.reset();
        assert!(backoff.next(None) < Duration::from_millis(1600));
    }

    #[test]
    fn waits_are_random() {
        let waits: std::collections::BTreeSet<_> = (0..20).map(|_| Backoff::default().next(None)).collect();
        assert!(waits.len() > 10, "{waits:?}");
    }

    #[test]
    fn longer_retry_after_of_the_server_is_used() {
        let asked = Duration::from_secs(90);
        assert_eq!(Backoff::default().next(Some(asked)), asked);
        assert_eq!(Backoff::default().next(Some(Duration::MAX)), MAX);
    }
}
