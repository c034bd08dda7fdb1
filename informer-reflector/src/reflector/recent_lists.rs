//! [`ListRecord`]: one of a reflector's last lists, with the cause of the list.
//!
//! client-go has no counterpart: it counts lists, and logs the cause of a relist.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::counts::cause;
use super::{Request, Step};

/// Maximum number of lists that a reflector keeps a record of.
const MAX_RECORDS: usize = 16;

/// A complete list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListRecord {
    /// Why the reflector listed.
    pub cause: ListCause,
    /// The time at which the list was complete.
    pub completed: Instant,
    /// The duration of the list, without earlier attempts that failed.
    pub took: Duration,
    /// The number of objects in the list.
    pub objects: usize,
}

/// Why a reflector made a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListCause {
    /// The list is the first list of the reflector.
    Initial,
    /// A [`RelistHandle`](super::RelistHandle) requested the list.
    Requested,
    /// The watch ended, and there was no resource version from which to resume it.
    WatchEnded,
    /// The watch failed.
    Failed {
        /// The short name of the failure, one of those in
        /// [`ReflectorCounts::failures`](super::ReflectorCounts::failures), such as `expired`.
        cause: &'static str,
        /// The error's message.
        error: String,
    },
}

impl fmt::Display for ListCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initial => f.write_str("initial list"),
            Self::Requested => f.write_str("relist requested"),
            Self::WatchEnded => f.write_str("watch ended without a resource version"),
            Self::Failed { cause, error } => write!(f, "{cause}: {error}"),
        }
    }
}

impl Step {
    /// Returns why this step, which follows a watch, leads to a list; `None` if it does not.
    pub(super) fn list_cause(&self) -> Option<ListCause> {
        match self {
            Self::Now(Request::Watch) | Self::AtOnce(Request::Watch, _) | Self::Later(Request::Watch, _) => {
                None
            }
            Self::Now(_) => Some(ListCause::WatchEnded),
            Self::AtOnce(_, error) | Self::Later(_, error) => {
                Some(ListCause::Failed { cause: cause(error), error: error.to_string() })
            }
        }
    }
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
            recent.push(ListRecord { cause: ListCause::Initial, completed, took, objects });
        }
        let objects: Vec<_> = recent.to_vec().iter().map(|record| record.objects).collect();
        assert_eq!(objects, (1..=MAX_RECORDS).collect::<Vec<_>>());
    }
}
