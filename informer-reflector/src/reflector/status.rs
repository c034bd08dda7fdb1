//! [`ReflectorStatus`] and [`Health`]: the state of a reflector, for its users.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{ListWatchError, ObjectKey, RejectedObject, ResourceVersion};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// How a reflector fares.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Health {
    /// It has not begun yet.
    Connecting,
    /// A list was asked for and is arriving, or is complete and the watch from there on is being opened.
    Syncing {
        /// How many objects have arrived so far.
        received: usize,
        /// How many are still to come, if the server said so.
        remaining: Option<u64>,
    },
    /// A watch is open, and the store is as current as the network allows; or it has ended in good order, and is being
    /// opened again where it ended.
    Live {
        /// When something last came over it, if only a bookmark; or when it was opened.
        last_event: Instant,
    },
    /// The last request failed. Its backoff ends at `until`, or earlier if the server was unavailable and another
    /// reflector gets an answer.
    BackingOff {
        /// When the backoff ends.
        until: Instant,
        /// What went wrong.
        error: Arc<ListWatchError>,
    },
    /// The server is unavailable, and the backoff is over. Reflectors of one client send requests in
    /// [turns](super::SharedServer) then; this one's is expected at `until`, or earlier if another gets an answer.
    AwaitingTurn {
        /// When the next request is expected to be sent.
        until: Instant,
        /// What went wrong.
        error: Arc<ListWatchError>,
    },
    /// The server doesn't serve the resource (404): a missing or misspelt resource, or a CRD that is not installed. It
    /// is asked again at `until`.
    NotServed {
        /// When the next request is made.
        until: Instant,
        /// What the server said.
        error: Arc<ListWatchError>,
    },
    /// The credentials don't allow to list and watch the resource (403). The server is asked again at `until`.
    Forbidden {
        /// When the next request is made.
        until: Instant,
        /// What the server said.
        error: Arc<ListWatchError>,
    },
    /// It has been stopped, or its future was dropped. This is its last health.
    Stopped,
}

impl Health {
    /// Returns what went wrong, if the reflector is waiting because something did.
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

    /// Returns whether a watch is open or being resumed.
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

/// Tells how a reflector fares. Cloning gives another view on the same reflector.
#[derive(Clone)]
pub struct ReflectorStatus {
    pub(super) description: Arc<str>,
    health: watch::Receiver<Health>,
    pub(super) notes: Arc<Mutex<Notes>>,
}

#[derive(Default)]
pub(super) struct Notes {
    pub(super) last_sync_resource_version: ResourceVersion,
    pub(super) quarantined: HashMap<ObjectKey, RejectedObject>,
    pub(super) quarantined_total: u64,
}

impl ReflectorStatus {
    pub(super) fn new(description: &str, health: watch::Receiver<Health>) -> Self {
        Self { description: description.into(), health, notes: Arc::default() }
    }

    /// Returns what the reflector lists and watches, for messages.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns how the reflector fares now.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// Waits until the health changes, and returns it. The last one is [`Health::Stopped`]; once that was returned,
    /// there is only `None`, and at once.
    ///
    /// Of several changes between two calls only the last is seen. The events of a live watch are no changes, although
    /// they set its [`last_event`](Health::Live).
    ///
    /// # Cancel safety
    /// No change is lost if the future is dropped: the next call returns at once.
    pub async fn health_changed(&mut self) -> Option<Health> {
        // An error says that the reflector is gone.
        self.health.changed().await.ok()?;
        Some(self.health.borrow_and_update().clone())
    }

    /// Returns the resource version up to which everything has been handed on, empty before the first list.
    #[must_use]
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.notes.lock().last_sync_resource_version.clone()
    }

    /// Returns the objects that exist but can't be decoded or transformed at present (I10). What the store has of
    /// them, if anything, is an earlier version.
    #[must_use]
    pub fn quarantined(&self) -> Vec<RejectedObject> {
        self.notes.lock().quarantined.values().cloned().collect()
    }

    /// Returns how many versions of objects have been quarantined so far.
    #[must_use]
    pub fn quarantined_total(&self) -> u64 {
        self.notes.lock().quarantined_total
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
