//! [`SourceStatus`]: the status of an informer's reflector, or of its reflectors for separate
//! namespaces.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use informer_core::{Completion, FeedId, RejectedObject, ResourceVersion};
use informer_reflector::{Health, ListRecord, ReflectorCounts, ReflectorStatus};
use tokio::sync::watch;

/// The status of the lists and watches of an informer or a
/// [`CacheController`](crate::cache_controller::CacheController). Clones show the same informer or
/// controller.
///
/// If each namespace is watched separately, [`health`](Self::health) is the worst health of all
/// namespaces, and [`namespaces`](Self::namespaces) returns the status of each.
#[derive(Clone)]
pub struct SourceStatus {
    inner: Inner,
}

#[derive(Clone)]
enum Inner {
    Whole(ReflectorStatus),
    Namespaces(NamespacesStatus),
}

/// The status of an informer with one reflector per namespace. Each clone waits for changes on its
/// own: [`health_changed`](NamespacesStatus::health_changed) returns a change once for each clone.
#[derive(Clone)]
struct NamespacesStatus {
    description: Arc<str>,
    members: watch::Receiver<Members>,
    /// The status of each namespace, as a copy that belongs only to this clone. Each copied status
    /// remembers the last health that its [`health_changed`](ReflectorStatus::health_changed) has
    /// returned.
    seen: BTreeMap<Arc<str>, MemberStatus>,
    has_ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct Members {
    by_namespace: BTreeMap<Arc<str>, MemberStatus>,
    /// The statuses of removed namespaces whose reflectors can still be running.
    removed: Vec<ReflectorStatus>,
    /// The sums of the counters of removed namespaces that are no longer in `removed`: their
    /// reflectors have stopped.
    ended: Totals,
    pub(super) has_ended: bool,
}

#[derive(Debug, Clone)]
pub(super) struct MemberStatus {
    pub(super) feed: FeedId,
    pub(super) status: ReflectorStatus,
    pub(super) synced: Completion,
}

/// The sums of the numbers that never decrease.
#[derive(Debug, Clone, Default)]
struct Totals {
    counts: ReflectorCounts,
    quarantined: u64,
}

impl Totals {
    fn plus(self, status: &ReflectorStatus) -> Self {
        Self {
            counts: self.counts.plus(&status.counts()),
            quarantined: self.quarantined + status.quarantined_total(),
        }
    }
}

impl Members {
    /// Sets the watched namespaces. The totals keep the numbers of removed namespaces.
    pub(super) fn set(&mut self, by_namespace: BTreeMap<Arc<str>, MemberStatus>) {
        for (namespace, earlier) in std::mem::replace(&mut self.by_namespace, by_namespace) {
            if self.by_namespace.get(&namespace).is_none_or(|member| member.feed != earlier.feed) {
                self.removed.push(earlier.status);
            }
        }
        let has_stopped = |status: &mut ReflectorStatus| matches!(status.health(), Health::Stopped);
        for status in self.removed.extract_if(.., has_stopped) {
            self.ended = std::mem::take(&mut self.ended).plus(&status);
        }
    }

    fn totals(&self) -> Totals {
        let watched = self.by_namespace.values().map(|member| &member.status);
        watched.chain(&self.removed).fold(self.ended.clone(), Totals::plus)
    }
}

impl SourceStatus {
    pub(super) fn whole(status: ReflectorStatus) -> Self {
        Self { inner: Inner::Whole(status) }
    }

    pub(super) fn of_namespaces(description: Arc<str>, members: watch::Receiver<Members>) -> Self {
        let mut view = NamespacesStatus { description, members, seen: BTreeMap::new(), has_ended: false };
        view.update_seen();
        Self { inner: Inner::Namespaces(view) }
    }

    /// Returns the resource and the scope as text for messages, such as `pods in namespace "shop"`.
    /// If each namespace has its own watch, the text does not contain the namespaces. For an
    /// informer that was created with an empty list of namespaces, the text is the name of the
    /// object type.
    #[must_use]
    pub fn description(&self) -> &str {
        match &self.inner {
            Inner::Whole(status) => status.description(),
            Inner::Namespaces(view) => &view.description,
        }
    }

    /// Returns the current health. For several namespaces, this is the worst health among them, in
    /// this order from worst to best: forbidden, not served, backing off or
    /// [awaiting its turn](Health::AwaitingTurn) to send a request, connecting, syncing, live. If
    /// all namespaces are live, this is the health of the namespace whose last event is the oldest.
    /// If the set of namespaces is empty, the health is [`Health::Connecting`]. After the informer
    /// has ended, it is [`Health::Stopped`].
    #[must_use]
    pub fn health(&self) -> Health {
        match &self.inner {
            Inner::Whole(status) => status.health(),
            Inner::Namespaces(view) => view.health(),
        }
    }

    /// Waits until the health changes, and returns the new [`health`](Self::health). If each
    /// namespace is watched separately, a change of the health of any namespace, or of the set of
    /// namespaces, also ends the wait; the returned health can then be unchanged. The last health
    /// is [`Health::Stopped`]; after it, every call returns `None` at once.
    ///
    /// A call returns the newest health, even if the health has changed several times since the
    /// last call. If each namespace is watched separately, changes in three namespaces make the
    /// next three calls return at once.
    ///
    /// # Cancel safety
    /// Cancel safe: after a change, the next call returns at once.
    pub async fn health_changed(&mut self) -> Option<Health> {
        match &mut self.inner {
            Inner::Whole(status) => status.health_changed().await,
            Inner::Namespaces(view) => view.health_changed().await,
        }
    }

    /// Returns the status of each namespace, by name; empty if the informer has one watch for all
    /// its objects.
    #[must_use]
    pub fn namespaces(&self) -> BTreeMap<String, ReflectorStatus> {
        let Inner::Namespaces(view) = &self.inner else { return BTreeMap::new() };
        let members = view.members.borrow();
        let named = members.by_namespace.iter();
        named.map(|(namespace, member)| (namespace.to_string(), member.status.clone())).collect()
    }

    /// Returns the resource version up to which all changes have been queued; empty before the
    /// first list. For several namespaces, this is the lowest of the versions that they have
    /// reached; empty if these versions cannot be compared.
    #[must_use]
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        let versions = self.reflectors().into_iter().map(|status| status.last_sync_resource_version());
        let least = |one: ResourceVersion, other: ResourceVersion| match one.compare(&other) {
            Some(Ordering::Greater) => other,
            Some(_) => one,
            None => ResourceVersion::empty(),
        };
        versions.reduce(least).unwrap_or_default()
    }

    /// Returns the last complete lists, oldest first, with their causes: up to 16, or up to 16 of
    /// each namespace if each namespace is watched separately.
    #[must_use]
    pub fn recent_lists(&self) -> Vec<ListRecord> {
        let mut lists: Vec<_> = self.reflectors().iter().flat_map(ReflectorStatus::recent_lists).collect();
        lists.sort_by_key(|list| list.completed);
        lists
    }

    /// Returns the quarantined objects: they exist on the server, but can't be decoded or
    /// transformed. The store has an earlier version of each, or none.
    #[must_use]
    pub fn quarantined(&self) -> Vec<RejectedObject> {
        self.reflectors().iter().flat_map(ReflectorStatus::quarantined).collect()
    }

    /// Returns the total number of object versions that could not be decoded or transformed.
    /// Versions that were replaced or deleted later still count, and so do those of removed
    /// namespaces.
    #[must_use]
    pub fn quarantined_total(&self) -> u64 {
        self.totals().quarantined
    }

    /// Returns the numbers of requests, objects, events and failures so far. Those of removed
    /// namespaces still count.
    #[must_use]
    pub fn counts(&self) -> ReflectorCounts {
        self.totals().counts
    }

    fn totals(&self) -> Totals {
        match &self.inner {
            Inner::Whole(status) => Totals::default().plus(status),
            Inner::Namespaces(view) => view.members.borrow().totals(),
        }
    }

    fn reflectors(&self) -> Vec<ReflectorStatus> {
        match &self.inner {
            Inner::Whole(status) => vec![status.clone()],
            Inner::Namespaces(view) => {
                view.members.borrow().by_namespace.values().map(|member| member.status.clone()).collect()
            }
        }
    }

    /// Returns the informer's description and, in parentheses, why the informer is not synced: its
    /// health, or the health of each namespace whose initial list is not in the store.
    pub(crate) fn waiting_for(&self) -> String {
        let Inner::Namespaces(view) = &self.inner else {
            return format!("{} ({})", self.description(), self.health());
        };
        let mut reasons = self.unlisted();
        if reasons.is_empty() {
            reasons.push(view.health().to_string());
        }
        format!("{} ({})", view.description, reasons.join(", "))
    }

    /// Returns one text per namespace whose initial list is not in the store: its name and health.
    /// Empty if the informer has one watch for all objects.
    pub(crate) fn unlisted(&self) -> Vec<String> {
        let Inner::Namespaces(view) = &self.inner else { return Vec::new() };
        let members = view.members.borrow();
        let waiting = members.by_namespace.iter().filter(|(_, member)| !member.synced.has_synced());
        waiting
            .map(|(namespace, member)| format!("namespace \"{namespace}\": {}", member.status.health()))
            .collect()
    }

    pub(crate) fn waiting_for_namespace(&self, namespace: &str) -> String {
        let Inner::Namespaces(view) = &self.inner else { return self.waiting_for() };
        let members = view.members.borrow();
        let health = members.by_namespace.get(namespace).map(|member| member.status.health().to_string());
        let reason = health.unwrap_or_else(|| "not watched".to_owned());
        format!("{} (namespace \"{namespace}\": {reason})", view.description)
    }
}

impl NamespacesStatus {
    fn health(&self) -> Health {
        worst(&self.members.borrow())
    }

    /// Makes the keys of `seen` equal to the namespaces that are watched now. After the informer
    /// has ended, `seen` is empty.
    fn update_seen(&mut self) {
        let current = self.members.borrow_and_update();
        self.has_ended = current.has_ended;
        self.seen.retain(|namespace, seen| {
            current.by_namespace.get(namespace).is_some_and(|member| member.feed == seen.feed)
        });
        if current.has_ended {
            // The reflectors of all namespaces have ended, too.
            self.seen.clear();
            return;
        }
        for (namespace, member) in &current.by_namespace {
            self.seen.entry(Arc::clone(namespace)).or_insert_with(|| member.clone());
        }
    }

    async fn health_changed(&mut self) -> Option<Health> {
        loop {
            let watched = self.seen.iter_mut().map(|(namespace, seen)| async {
                (Arc::clone(namespace), seen.status.health_changed().await)
            });
            let mut watched: FuturesUnordered<_> = watched.collect();
            let (namespace, health) = tokio::select! {
                biased;
                // An error means that the informer was dropped, so there are no further changes.
                Ok(()) = self.members.changed(), if !self.has_ended => {
                    drop(watched);
                    self.update_seen();
                    return Some(self.health());
                }
                Some(changed) = watched.next() => changed,
                else => return None,
            };
            drop(watched);
            match (health, self.health()) {
                // The reflector has ended, so the health of this namespace no longer changes.
                (None, _) => _ = self.seen.remove(&namespace),
                // All reflectors have stopped, so `members` is about to change: the namespaces are
                // being removed, or the informer is ending. The health after that change is
                // returned instead.
                (Some(_), Health::Stopped) => {}
                (Some(_), health) => return Some(health),
            }
        }
    }
}

fn worst(members: &Members) -> Health {
    if members.has_ended {
        return Health::Stopped;
    }
    let healths = members.by_namespace.values().map(|member| member.status.health());
    // Among equally bad namespaces, the first one counts.
    let worse = |one: Health, other: Health| if severity(&other) > severity(&one) { other } else { one };
    healths.reduce(worse).unwrap_or(Health::Connecting)
}

/// Returns a value that is higher for a worse health: first by variant, then by the time since the
/// last event.
fn severity(health: &Health) -> (u8, Option<std::time::Duration>) {
    match health {
        Health::Live { last_event } => (1, Some(last_event.elapsed())),
        Health::Syncing { .. } => (2, None),
        Health::Connecting => (3, None),
        Health::BackingOff { .. } | Health::AwaitingTurn { .. } => (4, None),
        Health::NotServed { .. } => (5, None),
        Health::Forbidden { .. } => (6, None),
        // The reflector has stopped: its namespace is being removed, or the informer is ending.
        _ => (0, None),
    }
}

impl fmt::Debug for SourceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceStatus")
            .field("description", &self.description())
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}
