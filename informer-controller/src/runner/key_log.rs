//! [`ParkedKey`], a key that waits for a cache and is not reconciled, and [`FailedKey`], a key
//! whose last reconcile call failed.

use std::collections::HashMap;

use tokio::time::Instant;

/// The maximum number of recorded [`ParkedKey`]s, and of recorded [`FailedKey`]s.
const MAX_KEYS: usize = 256;

/// A parked key. The key waits for a cache and is not reconciled. It occupies no worker while it
/// waits. The cache has not listed the key's namespace, no longer watches this namespace, or has
/// possibly not received a write that the controller made for the key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedKey {
    /// The key, in the format of `Debug`.
    pub key: String,
    /// The time at which the key began to wait.
    pub since: Instant,
}

/// A key whose last reconcile call failed, timed out or panicked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedKey {
    /// The key, in the format of `Debug`.
    pub key: String,
    /// How the last reconcile call failed, as it was logged: the error, the panic message, or the
    /// timeout.
    pub failure: String,
    /// The number of consecutive failed reconcile calls for the key, as the queue's rate limiter
    /// counts them; 1 if it does not count failures per key.
    pub failures: u32,
    /// The time of the last failure.
    pub at: Instant,
    /// The time at which the key is queued again, unless the queue is shut down before. A change
    /// can queue the key earlier.
    pub retry_at: Instant,
}

/// The parked and the failed keys of a controller, at most [`MAX_KEYS`] of each.
#[derive(Debug, Default)]
pub(super) struct KeyLog {
    pub(super) parked: HashMap<String, Instant>,
    pub(super) failed: HashMap<String, FailedKey>,
}

impl KeyLog {
    pub(super) fn park(&mut self, key: String) {
        if self.parked.len() < MAX_KEYS {
            self.parked.insert(key, Instant::now());
        }
    }

    pub(super) fn fail(&mut self, failed: FailedKey) {
        if self.failed.len() >= MAX_KEYS && !self.failed.contains_key(&failed.key) {
            let oldest = self.failed.values().min_by_key(|other| other.at).map(|other| other.key.clone());
            oldest.into_iter().for_each(|key| drop(self.failed.remove(&key)));
        }
        self.failed.insert(failed.key.clone(), failed);
    }

    /// Sets the retry time of a failed key, if the key is still recorded as failed.
    pub(super) fn retry_at(&mut self, key: &str, at: Instant) {
        if let Some(failed) = self.failed.get_mut(key) {
            failed.retry_at = at;
        }
    }

    /// Returns the parked keys. The key that has waited longest is the first.
    pub(super) fn parked(&self) -> Vec<ParkedKey> {
        let keys = self.parked.iter().map(|(key, since)| ParkedKey { key: key.clone(), since: *since });
        let mut keys: Vec<_> = keys.collect();
        keys.sort_by(|a, b| (a.since, &a.key).cmp(&(b.since, &b.key)));
        keys
    }

    /// Returns the failed keys, the latest failure first.
    pub(super) fn failed(&self) -> Vec<FailedKey> {
        let mut keys: Vec<_> = self.failed.values().cloned().collect();
        keys.sort_by(|a, b| (b.at, &a.key).cmp(&(a.at, &b.key)));
        keys
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    fn failed(key: usize) -> FailedKey {
        let at = Instant::now();
        FailedKey { key: format!("{key}"), failure: "failed".into(), failures: 1, at, retry_at: at }
    }

    #[tokio::test(start_paused = true)]
    async fn full_key_log_drops_the_oldest_failure() {
        let mut log = KeyLog::default();
        for key in 0..=MAX_KEYS {
            log.fail(failed(key));
            log.park(format!("{key}"));
            advance(Duration::from_secs(1)).await;
        }
        let kept = log.failed();
        assert_eq!((kept.len(), log.parked().len()), (MAX_KEYS, MAX_KEYS));
        assert_eq!((kept[0].key.as_str(), kept[MAX_KEYS - 1].key.as_str()), ("256", "1"));
        log.fail(failed(1));
        assert_eq!((log.failed()[0].key.as_str(), log.failed().len()), ("1", MAX_KEYS));
    }
}
