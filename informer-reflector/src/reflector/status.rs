//! [`ReflectorStatus`]: how a reflector fares, for everybody to see; and the one place where that is logged.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{ListWatchError, Malformed, ObjectKey, ResourceVersion};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// How a reflector fares.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Health {
    /// It has not heard from the server yet, or is opening a watch.
    Connecting,
    /// A list is arriving.
    Syncing {
        /// How many objects have arrived so far.
        received: usize,
        /// How many are still to come, if the server said so.
        remaining: Option<u64>,
    },
    /// A watch is open, and the store is as current as the network allows.
    Live {
        /// When something last came over it, if only a bookmark; or when it was opened.
        last_event: Instant,
    },
    /// The last request failed; the next one is made at `until`.
    BackingOff {
        /// When the next request is made.
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
    /// It has been stopped.
    Stopped,
}

impl Health {
    /// Returns what went wrong, if the reflector is waiting because something did.
    #[must_use]
    pub fn error(&self) -> Option<&ListWatchError> {
        match self {
            Self::BackingOff { error, .. }
            | Self::NotServed { error, .. }
            | Self::Forbidden { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Says whether a watch is open.
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
            Self::BackingOff { error, .. } => write!(f, "waiting to try again: {error}"),
            Self::NotServed { error, .. } => write!(f, "not served: {error}"),
            Self::Forbidden { error, .. } => write!(f, "forbidden: {error}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// Tells how a reflector fares. Cloning gives another view on the same reflector.
#[derive(Clone)]
pub struct ReflectorStatus {
    description: Arc<str>,
    health: watch::Receiver<Health>,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Default)]
struct Notes {
    last_sync_resource_version: ResourceVersion,
    set_aside: HashMap<ObjectKey, Malformed>,
    set_aside_total: u64,
}

impl ReflectorStatus {
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

    /// Waits until the health changes, and returns it; once the reflector is gone, returns at once.
    ///
    /// # Cancel safety
    /// No change is lost if the future is dropped: the next call returns at once.
    pub async fn health_changed(&mut self) -> Health {
        // An error says that the reflector is gone, and then the last health stands.
        _ = self.health.changed().await;
        self.health.borrow_and_update().clone()
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
    pub fn set_aside(&self) -> Vec<Malformed> {
        self.notes.lock().set_aside.values().cloned().collect()
    }

    /// Returns how many versions of objects have been set aside so far.
    #[must_use]
    pub fn set_aside_total(&self) -> u64 {
        self.notes.lock().set_aside_total
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

/// The reflector's side of its status. Logs changes for the worse and for the better once each, not with each try.
pub(super) struct Reporter {
    status: ReflectorStatus,
    health: watch::Sender<Health>,
    /// The last trouble that was logged; the same trouble again is only logged at debug level.
    logged: Option<String>,
}

impl Reporter {
    pub(super) fn new(description: &str) -> Self {
        let (sender, health) = watch::channel(Health::Connecting);
        let status = ReflectorStatus { description: description.into(), health, notes: Arc::default() };
        Self { status, health: sender, logged: None }
    }

    pub(super) fn status(&self) -> ReflectorStatus {
        self.status.clone()
    }

    pub(super) fn set(&self, health: Health) {
        self.health.send_replace(health);
    }

    /// A list is complete or a watch has delivered something: all is well.
    pub(super) fn recovered(&mut self) {
        if self.logged.take().is_some() {
            tracing::info!("{}: listing and watching again", self.status.description);
        }
    }

    /// A request failed, and the next follows after `wait`.
    pub(super) fn trouble(&mut self, error: ListWatchError, wait: Duration) {
        let resource = &self.status.description;
        let message = explain(&error);
        if self.logged.as_ref() == Some(&message) {
            tracing::debug!("{resource}: {message}; trying again in {wait:.1?}");
        } else {
            tracing::warn!(
                "{resource}: {message}; trying again in {wait:.1?}, and then without further word"
            );
            self.logged = Some(message);
        }
        let (until, error) = (Instant::now() + wait, Arc::new(error));
        self.set(if error.is_not_found() {
            Health::NotServed { until, error }
        } else if error.is_forbidden() {
            Health::Forbidden { until, error }
        } else {
            Health::BackingOff { until, error }
        });
    }

    pub(super) fn synced_to(&self, resource_version: &ResourceVersion) {
        if !resource_version.is_empty() {
            self.status.notes.lock().last_sync_resource_version = resource_version.clone();
        }
    }

    /// An object could not be taken in.
    pub(super) fn set_aside(&self, malformed: &Malformed) {
        let resource = &self.status.description;
        let mut notes = self.status.notes.lock();
        notes.set_aside_total += 1;
        let Some(key) = &malformed.key else {
            tracing::warn!(
                "{resource}: an object that has no readable name is set aside: {}",
                malformed.error
            );
            return;
        };
        let earlier = notes.set_aside.insert(key.clone(), malformed.clone());
        if earlier.is_none_or(|earlier| earlier.error != malformed.error) {
            let version = &malformed.resource_version;
            tracing::warn!(
                "{resource}: {key} at resource version {version} is set aside: {}",
                malformed.error
            );
        }
    }

    /// Good news of an object, or its end: it is not set aside any more.
    pub(super) fn taken_in(&self, key: &ObjectKey) {
        let mut notes = self.status.notes.lock();
        if !notes.set_aside.is_empty() && notes.set_aside.remove(key).is_some() {
            tracing::info!("{}: {key} can be taken in again", self.status.description);
        }
    }

    /// A list says which objects exist: what is not in it is not set aside either.
    pub(super) fn retain_set_aside(&self, listed: &[ObjectKey]) {
        self.status.notes.lock().set_aside.retain(|key, _| listed.contains(key));
    }
}

/// The error with the remedy, where there is one to name.
fn explain(error: &ListWatchError) -> String {
    let remedy = if error.is_unauthorized() {
        " (the credentials are not accepted: check the kubeconfig or the token)"
    } else if error.is_forbidden() {
        " (needs the verbs list and watch in a Role or ClusterRole that is bound to this user)"
    } else if error.is_not_found() {
        " (the server does not serve this resource: check group, version and name, or install its CRD)"
    } else {
        ""
    };
    format!("{error}{remedy}")
}
