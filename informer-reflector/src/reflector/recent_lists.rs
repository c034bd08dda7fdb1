//! [`ListRecord`]: one of a reflector's last lists, with the cause of the list.
//!
//! client-go has no counterpart: it counts lists, and logs the cause of a relist.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

const MAX_RECORDS: usize = 16;

/// The cause of a reflector's first list, in its [`ListRecord`].
pub(super) const INITIAL: &str = "initial";

/// A record of a complete list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListRecord {
    /// Why the reflector listed: `initial`, or one of the causes in
    /// [`ReflectorCounts::relists`](super::ReflectorCounts::relists).
    pub cause: &'static str,
    /// The error that made the list necessary, if there was one.
    pub error: Option<String>,
    /// The time at which the list was complete.
    pub completed: Instant,
    /// The duration of the list. If earlier attempts failed and the list was retried without a
    /// wait, the duration includes these attempts. Attempts before a wait are not included.
    pub took: Duration,
    /// The number of objects in the list.
    pub objects: usize,
}

/// The last lists of a reflector, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentLists(VecDeque<ListRecord>);

impl RecentLists {
    pub(super) fn push(&mut self, record: ListRecord) {
        if self.0.len() == MAX_RECORDS {
            self.0.pop_front();
        }
        self.0.push_back(record);
    }

    pub(super) fn to_vec(&self) -> Vec<ListRecord> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn recent_lists_keep_the_newest_records() {
        let mut recent = RecentLists::default();
        for objects in 0..=MAX_RECORDS {
            let (completed, took) = (Instant::now(), Duration::ZERO);
            recent.push(ListRecord { cause: INITIAL, error: None, completed, took, objects });
        }
        let objects: Vec<_> = recent.to_vec().iter().map(|record| record.objects).collect();
        assert_eq!(objects, (1..=MAX_RECORDS).collect::<Vec<_>>());
    }
}
