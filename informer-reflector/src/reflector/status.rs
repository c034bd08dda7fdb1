//! [`ReflectorStatus`]: how a reflector fares, for everybody to see; and the one place where that is logged.

use std::collections::{BTreeSet, HashMap};
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

    /// Says whether a watch is open or being resumed.
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

    /// Waits until the health changes, and returns it. The last one is [`Health::Stopped`]; once that was returned,
    /// there is only `None`, and at once.
    ///
    /// Of several changes between two calls only the last is seen.
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
    /// The cause of the last failure that was logged as a warning; the same cause again is logged at debug level.
    logged: Option<Cause>,
    /// Whether anything is set aside; it mostly isn't, and then nobody has to look.
    has_set_aside: bool,
    /// When what exists was asked for; nothing, if it isn't, or after a wait.
    list_began: Option<Instant>,
}

/// A list that takes longer is told of when it is complete.
const LONG_LIST: Duration = Duration::from_secs(10);

impl Reporter {
    pub(super) fn new(description: &str) -> Self {
        let (sender, health) = watch::channel(Health::Connecting);
        let status = ReflectorStatus { description: description.into(), health, notes: Arc::default() };
        Self { status, health: sender, logged: None, has_set_aside: false, list_began: None }
    }

    pub(super) fn status(&self) -> ReflectorStatus {
        self.status.clone()
    }

    pub(super) fn set(&self, health: Health) {
        self.health.send_replace(health);
    }

    /// A list is asked for, in a stream or in pages. What follows a stream that was given up is the same list.
    pub(super) fn list_begins(&mut self) {
        self.list_began.get_or_insert_with(Instant::now);
        self.set(Health::Syncing { received: 0, remaining: None });
    }

    /// A list has been handed on as a whole.
    pub(super) fn listed(&mut self, objects: usize) {
        let took = self.list_began.take().map(|began| began.elapsed());
        if let Some(took) = took.filter(|took| *took > LONG_LIST) {
            tracing::info!("{}: a list of {objects} objects took {took:.1?}", self.status.description);
        }
    }

    /// A watch has settled. A complete list is not enough: where only the watch is refused, the same failure would be
    /// logged again after each list.
    pub(super) fn recovered(&mut self) {
        if self.logged.take().is_some() {
            tracing::info!(resource = %self.status.description, "listing and watching again");
        }
    }

    /// A request failed, and the next follows after `wait`. Where not only this resource is concerned, the outage is logged
    /// for all.
    pub(super) fn trouble(&mut self, error: ListWatchError, wait: Duration, is_own: bool) {
        self.list_began = None;
        let (resource, cause, message) = (&self.status.description, Cause::of(&error), explain(&error));
        if !is_own || self.logged.as_ref() == Some(&cause) {
            tracing::debug!(%resource, error = message, retry_in = ?wait, "list or watch failed");
        } else {
            tracing::warn!(
                %resource, error = message, retry_in = ?wait,
                "list or watch failed; retrying (repeats are logged at debug level)"
            );
            self.logged = Some(cause);
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

    /// The backoff is over, and the next request waits for its turn.
    pub(super) fn awaits_turn(&self, until: Instant) {
        self.health.send_modify(|health| {
            if let Health::BackingOff { error, .. } | Health::AwaitingTurn { error, .. } = health {
                *health = Health::AwaitingTurn { until, error: Arc::clone(error) };
            }
        });
    }

    pub(super) fn synced_to(&self, resource_version: &ResourceVersion) {
        if !resource_version.is_empty() {
            self.status.notes.lock().last_sync_resource_version = resource_version.clone();
        }
    }

    /// An object could not be taken in.
    pub(super) fn set_aside(&mut self, malformed: &Malformed) {
        self.has_set_aside |= malformed.key.is_some();
        // Logged once the lock is free, because a subscriber may look at the status.
        let is_news = {
            let mut notes = self.status.notes.lock();
            let earlier =
                malformed.key.as_ref().and_then(|key| notes.set_aside.insert(key.clone(), malformed.clone()));
            // Another list, or another try at one, brings the same version again.
            notes.set_aside_total += u64::from(earlier.as_ref() != Some(malformed));
            earlier.is_none_or(|earlier| earlier.error != malformed.error)
        };
        let (resource, error) = (&self.status.description, &malformed.error);
        match &malformed.key {
            None => tracing::warn!("{resource}: an object that has no readable name is set aside: {error}"),
            Some(key) if is_news => {
                let version = &malformed.resource_version;
                tracing::warn!("{resource}: {key} at resource version {version} is set aside: {error}");
            }
            Some(_) => {}
        }
    }

    /// Good news of an object, or its end: it is not set aside any more.
    pub(super) fn taken_in(&mut self, key: &ObjectKey) {
        if !self.has_set_aside {
            return;
        }
        let was_set_aside = {
            let mut notes = self.status.notes.lock();
            let was_set_aside = notes.set_aside.remove(key).is_some();
            self.has_set_aside = !notes.set_aside.is_empty();
            was_set_aside
        };
        if was_set_aside {
            self.log_return(key);
        }
    }

    /// A list says which objects exist: those that it could not take in are set aside, and no others.
    pub(super) fn only_set_aside(&mut self, listed: &BTreeSet<ObjectKey>) {
        let returned: Vec<_> = {
            let mut notes = self.status.notes.lock();
            let returned =
                notes.set_aside.extract_if(|key, _| !listed.contains(key)).map(|(key, _)| key).collect();
            self.has_set_aside = !notes.set_aside.is_empty();
            returned
        };
        for key in &returned {
            self.log_return(key);
        }
    }

    fn log_return(&self, key: &ObjectKey) {
        tracing::info!("{}: {key} is no longer set aside", self.status.description);
    }
}

/// However the reflector ends, by a stop, a panic or because it is dropped, everybody is told.
impl Drop for Reporter {
    fn drop(&mut self) {
        self.set(Health::Stopped);
    }
}

/// What failures have in common that are logged once. Their texts differ from one to the next, as from "connection reset"
/// to "connection refused".
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    Status(u16),
    Connection,
    Protocol,
}

impl Cause {
    fn of(error: &ListWatchError) -> Self {
        match error {
            ListWatchError::Status { status, .. } => Self::Status(status.code),
            ListWatchError::Protocol(_) => Self::Protocol,
            _ => Self::Connection,
        }
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
