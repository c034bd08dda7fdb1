//! [`ReflectorStatus`], [`Health`] and [`ListRecord`]: the status of a reflector.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use informer_core::{ListWatchError, ObjectKey, RejectedObject, ResourceVersion};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::counts::ReflectorCounts;

/// The health of a reflector. While the reflector opens a watch after a wait, the health of the
/// wait remains.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Health {
    /// The reflector has not sent its first request.
    Connecting,
    /// A list has been requested, is arriving, or is complete and its watch is being opened.
    Syncing {
        /// The number of objects of the current list that have arrived. An object counts again for
        /// each further version that arrives.
        received: usize,
        /// The number of objects of the current list that have not arrived yet, if the server
        /// returned this number with the last page. `None` while a page is arriving.
        remaining: Option<u64>,
    },
    /// A watch is open and the store is current, or the watch has ended and is being resumed
    /// without a wait.
    Live {
        /// The time at which the last data of a watch, or the last complete list, arrived. A new
        /// watch does not change it. Servers send the first bookmark of a watch after two minutes,
        /// and then about one a minute. An older time means that the server is silent, or that the
        /// reflector waits because the store's queue is full.
        last_event: Instant,
    },
    /// The last request failed. The backoff ends at `until`, or earlier if the server was
    /// unavailable and another reflector gets a response.
    BackingOff {
        /// The end of the backoff.
        until: Instant,
        /// The error of the last request.
        error: Arc<ListWatchError>,
    },
    /// The server is unavailable, the backoff is over, and the reflector waits for its
    /// [turn](super::SharedServer) to send a request. Its turn is expected at `until`, or earlier
    /// if another reflector gets a response.
    AwaitingTurn {
        /// The expected time of the next request.
        until: Instant,
        /// The error of the last request.
        error: Arc<ListWatchError>,
    },
    /// The server doesn't serve the resource (404): it is misspelt, or its CRD is not installed.
    /// The reflector retries at `until`.
    NotServed {
        /// The time at which the reflector retries.
        until: Instant,
        /// The error of the last request (status 404).
        error: Arc<ListWatchError>,
    },
    /// The credentials don't permit listing or watching the resource (403). The reflector retries
    /// at `until`.
    Forbidden {
        /// The time at which the reflector retries.
        until: Instant,
        /// The error of the last request (status 403).
        error: Arc<ListWatchError>,
    },
    /// The reflector was stopped or dropped. This is the last health.
    Stopped,
}

impl Health {
    /// Returns the last error, if the reflector waits because of it, or opens a watch after this
    /// wait.
    #[must_use]
    pub fn error(&self) -> Option<&ListWatchError> {
        match self {
            Self::BackingOff { error, .. }
            | Self::AwaitingTurn { error, .. }
            | Self::NotServed { error, .. }
            | Self::Forbidden { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns the name of the variant, for metrics: `connecting`, `syncing`, `live`, `backing-off`,
    /// `awaiting-turn`, `not-served`, `forbidden` or `stopped`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Syncing { .. } => "syncing",
            Self::Live { .. } => "live",
            Self::BackingOff { .. } => "backing-off",
            Self::AwaitingTurn { .. } => "awaiting-turn",
            Self::NotServed { .. } => "not-served",
            Self::Forbidden { .. } => "forbidden",
            Self::Stopped => "stopped",
        }
    }

    /// Returns whether the health is [`Live`](Self::Live): a watch is open, or it has ended and the
    /// reflector resumes it immediately.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Live { .. })
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("connecting"),
            Self::Syncing { received, .. } => write!(f, "syncing, {received} objects so far"),
            Self::Live { .. } => f.write_str("live"),
            Self::BackingOff { until, error } => write!(f, "backing off for {:.1?}: {error}", left(*until)),
            Self::AwaitingTurn { until, error } => {
                write!(f, "server unavailable, next request expected in {:.1?}: {error}", left(*until))
            }
            Self::NotServed { error, .. } => write!(f, "not served: {error}"),
            Self::Forbidden { error, .. } => write!(f, "forbidden: {error}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// The maximum number of records in [`ReflectorStatus::recent_lists`].
pub(super) const MAX_RECORDS: usize = 16;

/// The cause of a reflector's first list, in its [`ListRecord`].
pub(super) const INITIAL: &str = "initial";

/// A record of a complete list.
// client-go has no counterpart: it counts lists, and logs the cause of a relist.
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

/// The status of a reflector. A clone is another handle to the same status.
#[derive(Clone)]
pub struct ReflectorStatus {
    pub(super) description: Arc<str>,
    health: watch::Receiver<Health>,
    pub(super) notes: Arc<Mutex<Notes>>,
    /// The source's counter of received bytes; `None` if the source does not count them.
    received_bytes: Option<Arc<AtomicU64>>,
}

#[derive(Default)]
pub(super) struct Notes {
    pub(super) last_sync_resource_version: ResourceVersion,
    pub(super) quarantined: HashMap<ObjectKey, RejectedObject>,
    pub(super) quarantined_total: u64,
    pub(super) counts: ReflectorCounts,
    /// The last lists, oldest first.
    pub(super) recent_lists: VecDeque<ListRecord>,
}

impl ReflectorStatus {
    pub(super) fn new(
        description: &str,
        health: watch::Receiver<Health>,
        received_bytes: Option<Arc<AtomicU64>>,
    ) -> Self {
        Self { description: description.into(), health, notes: Arc::default(), received_bytes }
    }

    /// Returns the resource and its scope for messages, such as `pods in namespace "shop"`.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the current health.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// Waits until the health changes, and returns it. The last health is [`Health::Stopped`];
    /// after it, every call returns `None` at once.
    ///
    /// Of several changes between two calls, only the last is returned. The first call returns at
    /// once if the health has changed since [`Reflector::status`](super::Reflector::status) created
    /// the handle. A clone continues after the last health that the cloned handle returned. Events
    /// of a live watch do not count as changes, although they set [`last_event`](Health::Live).
    ///
    /// # Cancel safety
    /// Cancel safe: after a change, the next call returns at once.
    pub async fn health_changed(&mut self) -> Option<Health> {
        // An error means that the reflector has been dropped.
        self.health.changed().await.ok()?;
        Some(self.health.borrow_and_update().clone())
    }

    /// Returns the resource version up to which all changes have been passed to the store, except
    /// those of [quarantined](Self::quarantined) objects; empty before the first list.
    #[must_use]
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.notes.lock().last_sync_resource_version.clone()
    }

    /// Returns the quarantined objects: objects of the server that can't be decoded or transformed.
    /// For each of them, the store has an earlier version, or none. Objects whose name or namespace
    /// can't be read are not included.
    #[must_use]
    pub fn quarantined(&self) -> Vec<RejectedObject> {
        self.notes.lock().quarantined.values().cloned().collect()
    }

    /// Returns the total number of object versions that could not be decoded or transformed.
    /// Versions that were replaced or deleted later still count. An object whose name or namespace
    /// can't be read counts again each time it arrives. A watch event that can't be attributed to
    /// an object counts, too.
    #[must_use]
    pub fn quarantined_total(&self) -> u64 {
        self.notes.lock().quarantined_total
    }

    /// Returns the numbers of requests, bytes, objects, events, failures and relists so far.
    #[must_use]
    pub fn counts(&self) -> ReflectorCounts {
        let received_bytes = self.received_bytes.as_ref().map_or(0, |bytes| bytes.load(Ordering::Relaxed));
        ReflectorCounts { received_bytes, ..self.notes.lock().counts.clone() }
    }

    /// Returns records of the last 16 successful lists, oldest first. Each has the reason why the
    /// reflector listed.
    #[must_use]
    pub fn recent_lists(&self) -> Vec<ListRecord> {
        self.notes.lock().recent_lists.iter().cloned().collect()
    }
}

impl fmt::Debug for ReflectorStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorStatus")
            .field("description", &self.description)
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}
