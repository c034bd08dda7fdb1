//! [`FailureLog`]: logs the failures of index functions, with at most one log line per index and
//! minute.

use std::collections::BTreeMap;
use std::time::Duration;

use informer_store::IndexFailure;
use tokio::time::Instant;

/// The minimum time between two log lines about the same index.
const MIN_INTERVAL: Duration = Duration::from_secs(60);

pub(super) struct FailureLog {
    resource: String,
    indexes: BTreeMap<String, Unreported>,
}

/// The failures of one index function since the last log line about them.
#[derive(Default)]
struct Unreported {
    count: usize,
    /// The first failure since the last log line.
    example: Option<IndexFailure>,
    last_summary: Option<Instant>,
}

impl Unreported {
    /// Takes the number of unlogged failures, and one of them. `None` if there are none, or within
    /// [`MIN_INTERVAL`] after the last log line.
    fn take(&mut self, now: Instant) -> Option<(usize, IndexFailure)> {
        if self.last_summary.is_some_and(|last| now < last + MIN_INTERVAL) {
            return None;
        }
        let example = self.example.take()?;
        self.last_summary = Some(now);
        Some((std::mem::take(&mut self.count), example))
    }
}

impl FailureLog {
    pub(super) fn new(resource: &str) -> Self {
        Self { resource: resource.to_owned(), indexes: BTreeMap::new() }
    }

    /// Counts new failures, and logs at most one line per index and [`MIN_INTERVAL`]. Call this
    /// method after each batch, even if nothing failed, so that earlier failures are logged.
    pub(super) fn report(&mut self, new: &[IndexFailure]) {
        if new.is_empty() && self.indexes.is_empty() {
            return;
        }
        for (failed, IndexFailure { index, key, .. }) in self.summaries(new, Instant::now()) {
            // The error is not logged, because it can contain data of a Secret.
            tracing::warn!(
                resource = %self.resource, index, failed, example = %key,
                "indexing of some objects failed, so this index lacks them; \
                 `Indexer::index_failures` returns the errors"
            );
        }
    }

    fn summaries(&mut self, new: &[IndexFailure], now: Instant) -> Vec<(usize, IndexFailure)> {
        for failure in new {
            let unreported = self.indexes.entry(failure.index.clone()).or_default();
            unreported.count += 1;
            unreported.example.get_or_insert_with(|| failure.clone());
        }
        self.indexes.values_mut().filter_map(|unreported| unreported.take(now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use informer_core::{Cached, ObjectKey, Uid};
    use informer_store::{Change, store};

    use super::*;

    /// Returns the failures of two indexes, each for `count` objects.
    fn failures(from: u64, count: u64) -> Vec<IndexFailure> {
        let (mut writer, indexer) = store::<u64>();
        for name in ["one", "other"] {
            let fails = |n: &u64| Err::<Option<u64>, _>(format!("{n} is no good"));
            indexer.try_add_index(name, fails).expect("the index name is unused");
        }
        let object = |n: u64| {
            let key = ObjectKey::cluster_scoped(&n.to_string());
            Change::Put(Cached::from_parts(key, 1.into(), Uid::default(), n))
        };
        writer.transaction((from..from + count).map(object).collect(), None)
    }

    #[test]
    fn index_failures_are_logged_once_per_index_and_minute() {
        let mut log = FailureLog::new("pods");
        let start = Instant::now();
        let mut at = |seconds: u64, new: &[IndexFailure]| {
            let summaries = log.summaries(new, start + Duration::from_secs(seconds));
            let shown =
                summaries.iter().map(|(count, first)| format!("{count} of {}: {}", first.index, first.error));
            shown.collect::<Vec<_>>()
        };
        assert_eq!(at(0, &failures(0, 5_000)), ["5000 of one: 0 is no good", "5000 of other: 0 is no good"]);
        assert_eq!(at(1, &failures(7, 20)), [""; 0]);
        assert_eq!(at(59, &failures(8, 1)), [""; 0]);
        assert_eq!(at(60, &[]), ["21 of one: 7 is no good", "21 of other: 7 is no good"]);
        assert_eq!(at(200, &[]), [""; 0]);
    }
}
