//! [`Pace`]: limits the rate of requests that follow each other without a wait.

use std::time::Duration;

use tokio::time::Instant;

const BURST: u32 = 10;

const REFILL: Duration = Duration::from_secs(1);

/// A token bucket for requests: it contains at most ten tokens, and receives one each second.
#[derive(Debug)]
pub(super) struct Pace {
    /// The time at which the bucket is full again, if no token is used until then.
    full_at: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { full_at: Instant::now() }
    }

    /// Uses one token for a request. Returns `false` if the bucket is empty.
    pub(super) fn take(&mut self) -> bool {
        let now = Instant::now();
        let full_at = self.full_at.max(now) + REFILL;
        let is_allowed = full_at - now <= REFILL * BURST;
        if is_allowed {
            self.full_at = full_at;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pace_allows_ten_at_once_then_one_per_second() {
        let mut pace = Pace::new();
        let allowed = |pace: &mut Pace| (0..20).filter(|_| pace.take()).count();
        assert_eq!(allowed(&mut pace), 10);
        tokio::time::advance(REFILL * 3).await;
        assert_eq!(allowed(&mut pace), 3);
        tokio::time::advance(REFILL * 100).await;
        assert_eq!(allowed(&mut pace), 10);
    }
}
