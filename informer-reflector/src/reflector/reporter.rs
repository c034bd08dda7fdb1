//! [`Reporter`]: sets a reflector's [`ReflectorStatus`] and logs its changes.
//!
//! An object is quarantined if its newest version on the server can't be decoded or transformed.
//! The store keeps the object's last valid version, if any. If the object's name and namespace can
//! be read, the status lists the object with its error. The quarantine ends with a valid version,
//! or with the deletion of the object.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use informer_core::{ListWatchError, ObjectKey, RejectedObject, ResourceVersion};
use tokio::sync::watch;
use tokio::time::Instant;

use super::counts::{EventCounts, ReflectorCounts};
use super::status::{Health, INITIAL, ListRecord, MAX_RECORDS, ReflectorStatus};

/// Sets the status of a reflector. Logs failures and recoveries: of consecutive failures with the
/// same [cause](Cause), at most one as a warning.
pub(super) struct Reporter {
    status: ReflectorStatus,
    health: watch::Sender<Health>,
    /// The cause of the last failure that was logged as a warning; `None` after a recovery.
    logged: Option<Cause>,
    /// Whether an interrupted response can cause a warning. The first interruption causes none,
    /// because it can be the beginning of an outage.
    warns_of_interruption: bool,
    /// Whether the status lists quarantined objects. If not, [`accepted`](Self::accepted) needs no
    /// lock.
    has_quarantined: bool,
    throttle: Throttle,
    /// The start of the current minute, and the number of resource versions that have expired in
    /// this minute. It determines the level of the log lines ([`MAX_EXPIRED_LINES`]).
    expired: (Option<Instant>, u32),
    /// The time at which the current list began; `None` if no list is in progress. A retry without
    /// a wait keeps this time.
    list_began: Option<Instant>,
    /// Why a list is needed, for its [`ListRecord`]: the cause, and the text of the error that led
    /// to the list, if any. `None` after the list is complete.
    list_cause: Option<(&'static str, Option<String>)>,
}

/// The duration above which a complete list is logged.
const LONG_LIST: Duration = Duration::from_secs(10);

impl Reporter {
    pub(super) fn new(description: &str, received_bytes: Option<Arc<AtomicU64>>) -> Self {
        let (sender, health) = watch::channel(Health::Connecting);
        let status = ReflectorStatus::new(description, health, received_bytes);
        Self {
            status,
            health: sender,
            logged: None,
            warns_of_interruption: false,
            has_quarantined: false,
            throttle: Throttle::default(),
            expired: (None, 0),
            list_began: None,
            list_cause: Some((INITIAL, None)),
        }
    }

    pub(super) fn status(&self) -> ReflectorStatus {
        self.status.clone()
    }

    /// Sets the health. Wakes the callers of [`ReflectorStatus::health_changed`], unless both the
    /// earlier and the new health are `Live`.
    pub(super) fn set(&self, health: Health) {
        self.health.send_if_modified(|current| {
            let is_change = !(current.is_live() && health.is_live());
            *current = health;
            is_change
        });
    }

    /// Sets the health to [`Health::Syncing`], and records the current time as the start of the
    /// list. A retry without a wait keeps the start of the first attempt.
    pub(super) fn list_begins(&mut self) {
        self.list_began.get_or_insert_with(Instant::now);
        self.set(Health::Syncing { received: 0, remaining: None });
    }

    /// Logs a relist after an expired version. Only a few lines a minute have the level info,
    /// because versions can expire every few seconds.
    pub(super) fn expired(&mut self, resource_version: &ResourceVersion) {
        let (now, (first, lines)) = (Instant::now(), &mut self.expired);
        if first.is_none_or(|first| now.saturating_duration_since(first) >= Duration::from_secs(60)) {
            (*first, *lines) = (Some(now), 0);
        }
        *lines += 1;
        let resource = &self.status.description;
        if *lines <= MAX_EXPIRED_LINES {
            tracing::info!(%resource, %resource_version, "the resource version of a list or watch expired; relisting");
        } else {
            tracing::debug!(%resource, %resource_version, "the resource version of a list or watch expired again; relisting");
        }
    }

    /// Counts a relist, and stores its cause and error for the [`ListRecord`]. A retry of a failed
    /// list keeps the first cause and error.
    pub(super) fn relisting(&mut self, cause: &'static str, error: Option<String>) {
        self.count(|counts| counts.count_relist(cause));
        self.list_cause.get_or_insert((cause, error));
    }

    /// Records a complete list, and logs it if it was slow.
    pub(super) fn listed(&mut self, objects: usize) {
        let took = self.list_began.take().map(|began| began.elapsed());
        let (cause, error) = self.list_cause.take().unwrap_or((INITIAL, None));
        let record =
            ListRecord { cause, error, completed: Instant::now(), took: took.unwrap_or_default(), objects };
        {
            let mut notes = self.status.notes.lock();
            notes.counts.lists += 1;
            notes.counts.listed_objects += objects as u64;
            if notes.recent_lists.len() == MAX_RECORDS {
                notes.recent_lists.pop_front();
            }
            notes.recent_lists.push_back(record);
        }
        if let Some(took) = took.filter(|took| *took > LONG_LIST) {
            tracing::info!(resource = %self.status.description, objects, ?took, "list was slow");
        }
    }

    /// Records that a watch has lasted ten seconds. The next failure can then cause a new warning.
    pub(super) fn recovered(&mut self) {
        self.warns_of_interruption = false;
        if self.logged.take().is_some() {
            tracing::info!(resource = %self.status.description, "list and watch recovered");
        }
    }

    /// Sets the health after a failed request, and logs the failure. `wait` is the planned wait
    /// before the next request.
    pub(super) fn request_failed(&mut self, error: ListWatchError, wait: Duration, is_outage: bool) {
        self.list_began = None;
        let is_interruption = !is_outage && matches!(error, ListWatchError::Interrupted(_));
        let is_first = is_interruption && !self.warns_of_interruption;
        self.warns_of_interruption = is_interruption || (!is_outage && self.warns_of_interruption);
        let (resource, cause, message) = (&self.status.description, Cause::of(&error), explain(&error));
        // `Outage` logs the warning about an outage.
        if is_outage || is_first || self.logged.as_ref() == Some(&cause) {
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

    /// Sets the health to [`Health::AwaitingTurn`]: the server is unavailable, and the reflector
    /// waits for its turn. `until` is the expected time of this reflector's next request.
    pub(super) fn awaits_turn(&self, until: Instant) {
        self.health.send_modify(|health| {
            if let Health::BackingOff { error, .. } | Health::AwaitingTurn { error, .. } = health {
                *health = Health::AwaitingTurn { until, error: Arc::clone(error) };
            }
        });
    }

    pub(super) fn synced_to(&self, resource_version: &ResourceVersion) {
        self.applied(&EventCounts::default(), resource_version);
    }

    /// Records that these events of a watch have been passed to the store.
    pub(super) fn applied(&self, events: &EventCounts, resource_version: &ResourceVersion) {
        let mut notes = self.status.notes.lock();
        notes.counts.events.add(events);
        if !resource_version.is_empty() {
            notes.last_sync_resource_version.clone_from(resource_version);
        }
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut ReflectorCounts)) {
        change(&mut self.status.notes.lock().counts);
    }

    /// Returns two totals since the reflector's creation: the number of objects in complete lists,
    /// and the number of watch events.
    pub(super) fn totals(&self) -> (u64, u64) {
        let counts = &self.status.notes.lock().counts;
        (counts.listed_objects, counts.events.total())
    }

    /// Adds a rejected object to the status. Logs a warning, unless the object is already
    /// quarantined with the same version or error, or [`Throttle`] suppresses the line.
    pub(super) fn quarantine(&mut self, rejected: &RejectedObject) {
        // An object without a readable name or namespace is only counted and logged.
        self.has_quarantined |= rejected.key.is_some();
        // Log without the lock, because a tracing subscriber can read the status.
        let is_new = {
            let mut notes = self.status.notes.lock();
            let earlier =
                rejected.key.as_ref().and_then(|key| notes.quarantined.insert(key.clone(), rejected.clone()));
            // A watch or a later list can return the same version again.
            let is_known = earlier.as_ref().is_some_and(|earlier| is_same(earlier, rejected));
            notes.quarantined_total += u64::from(!is_known);
            !is_known && earlier.is_none_or(|earlier| cause(&earlier.error) != cause(&rejected.error))
        };
        if !is_new || !self.throttle.allows(&self.status.description) {
            return;
        }
        let RejectedObject { key, resource_version, error } = rejected;
        let key = key.as_ref().map_or_else(|| "(no readable name)".to_owned(), ObjectKey::to_string);
        let resource = &self.status.description;
        tracing::warn!(
            %resource,
            key,
            %resource_version,
            error,
            "object is quarantined because of this error; the store keeps the object's last valid version, if there is one"
        );
    }

    /// Removes an object from the quarantined objects in the status, because a later version was
    /// valid or the object was deleted. Does nothing if the object is not quarantined.
    pub(super) fn accepted(&mut self, key: &ObjectKey) {
        if !self.has_quarantined {
            return;
        }
        let was_quarantined = {
            let mut notes = self.status.notes.lock();
            let was_quarantined = notes.quarantined.remove(key).is_some();
            self.has_quarantined = !notes.quarantined.is_empty();
            was_quarantined
        };
        if was_quarantined {
            self.log_return(key);
        }
    }

    pub(super) fn quarantined_keys(&self) -> BTreeSet<ObjectKey> {
        self.status.notes.lock().quarantined.keys().cloned().collect()
    }

    /// Ends the quarantine of every object whose key is not in `rejected`.
    pub(super) fn retain_quarantined(&mut self, rejected: &BTreeSet<ObjectKey>) {
        let returned: Vec<_> = {
            let mut notes = self.status.notes.lock();
            let ended = notes.quarantined.extract_if(|key, _| !rejected.contains(key));
            let returned = ended.map(|(key, _)| key).collect();
            self.has_quarantined = !notes.quarantined.is_empty();
            returned
        };
        for key in &returned {
            self.log_return(key);
        }
    }

    fn log_return(&mut self, key: &ObjectKey) {
        if self.throttle.allows(&self.status.description) {
            tracing::info!(
                resource = %self.status.description,
                %key,
                "object is no longer quarantined: it can be decoded and transformed again, or was deleted"
            );
        }
    }
}

/// Sets the final health, `Stopped`, after a stop, a panic or a drop.
impl Drop for Reporter {
    fn drop(&mut self) {
        self.set(Health::Stopped);
    }
}

/// The cause of a failure. Of consecutive failures with the same cause, at most one is logged as a
/// warning, even if their messages differ, such as "connection reset" and "connection refused".
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    Status(u16),
    Connection,
    Protocol,
    Request,
}

impl Cause {
    fn of(error: &ListWatchError) -> Self {
        match error {
            ListWatchError::Status { status, .. } => Self::Status(status.code),
            ListWatchError::Protocol(_) => Self::Protocol,
            ListWatchError::InvalidRequest(_) => Self::Request,
            _ => Self::Connection,
        }
    }
}

/// The maximum number of lines in one minute that report expired resource versions at level info.
/// Further lines have the level debug.
const MAX_EXPIRED_LINES: u32 = 3;

/// The maximum number of log lines in one minute about objects that become quarantined, or that are
/// no longer quarantined.
const MAX_OBJECT_LINES: u64 = 10;

/// Limits the log lines about quarantined objects.
#[derive(Debug, Default)]
struct Throttle {
    /// The time of the first call of [`allows`](Self::allows) in the current minute; `None` before
    /// the first call. A call after the end of this minute starts the next minute.
    began: Option<Instant>,
    /// The number of lines in the current minute, including suppressed lines.
    lines: u64,
}

impl Throttle {
    /// Counts a log line and returns whether to log it. Before the first line of a new minute, logs
    /// how many lines were suppressed.
    fn allows(&mut self, resource: &str) -> bool {
        let now = Instant::now();
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= Duration::from_secs(60)) {
            let suppressed = std::mem::take(self).lines.saturating_sub(MAX_OBJECT_LINES);
            self.began = Some(now);
            if suppressed > 0 {
                tracing::warn!(
                    resource,
                    suppressed,
                    "log lines about quarantined (invalid) objects were suppressed; \
                     `ReflectorStatus::quarantined` returns the quarantined objects"
                );
            }
        }
        self.lines += 1;
        if self.lines == MAX_OBJECT_LINES {
            tracing::warn!(
                resource,
                "log lines about quarantined (invalid) objects are suppressed for up to a minute; \
                 `ReflectorStatus::quarantined` returns the quarantined objects"
            );
        }
        self.lines <= MAX_OBJECT_LINES
    }
}

/// Returns whether `earlier` and `later` are the same version of an object. If the resource version
/// of `later` is unknown, returns whether they are equal, including their errors.
fn is_same(earlier: &RejectedObject, later: &RejectedObject) -> bool {
    if later.resource_version.is_empty() {
        return earlier == later;
    }
    earlier.resource_version == later.resource_version
}

/// Removes the position, such as ` at line 1, column 7`, from an error text. Lists and watches
/// report different positions for the same error.
fn cause(error: &str) -> &str {
    error.split(" at line ").next().unwrap_or(error)
}

/// Returns the error's message, followed by a remedy if one is known.
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

#[cfg(test)]
mod tests {
    use super::{MAX_RECORDS, Reporter, cause};

    #[tokio::test(start_paused = true)]
    async fn recent_lists_keep_the_newest_records() {
        let mut reporter = Reporter::new("pods", None);
        for objects in 0..=MAX_RECORDS {
            reporter.listed(objects);
        }
        let lists = reporter.status().recent_lists();
        let objects: Vec<_> = lists.iter().map(|list| list.objects).collect();
        assert_eq!(objects, (1..=MAX_RECORDS).collect::<Vec<_>>());
    }

    #[test]
    fn cause_of_an_error_has_no_position_in_json() {
        for error in ["invalid number at line 1 column 7", "invalid number at line 1, column 9"] {
            assert_eq!(cause(error), "invalid number");
        }
    }
}
