//! [`SourceStatus`]: how listing and watching fares, be it done by one reflector or by one for each namespace.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use informer_core::{Completion, FeedId, RejectedObject, ResourceVersion};
use informer_reflector::{Health, ReflectorStatus};
use tokio::sync::watch;

/// Tells how listing and watching fares. Cloning gives another view on the same informer or controller.
///
/// Where namespaces are followed one by one, each has a reflector of its own: what is said here is then the worst of
/// them, and [`namespaces`](Self::namespaces) has each.
#[derive(Clone)]
pub struct SourceStatus {
    of: Of,
}

#[derive(Clone)]
enum Of {
    Whole(ReflectorStatus),
    Namespaces(View),
}

/// The namespaces, as whoever holds this has seen them.
#[derive(Clone)]
struct View {
    description: Arc<str>,
    members: watch::Receiver<Members>,
    /// Those whose health is being watched here.
    seen: BTreeMap<Arc<str>, MemberStatus>,
    has_ended: bool,
}

/// The namespaces that are followed.
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    pub(super) by_namespace: BTreeMap<Arc<str>, MemberStatus>,
    /// Whether nobody follows them any more.
    pub(super) has_ended: bool,
}

#[derive(Debug, Clone)]
pub(super) struct MemberStatus {
    pub(super) feed: FeedId,
    pub(super) status: ReflectorStatus,
    pub(super) synced: Completion,
}

impl SourceStatus {
    pub(super) fn whole(status: ReflectorStatus) -> Self {
        Self { of: Of::Whole(status) }
    }

    pub(super) fn of_namespaces(description: Arc<str>, members: watch::Receiver<Members>) -> Self {
        let mut view = View { description, members, seen: BTreeMap::new(), has_ended: false };
        view.catch_up();
        Self { of: Of::Namespaces(view) }
    }

    /// Returns what is listed and watched, for messages.
    #[must_use]
    pub fn description(&self) -> &str {
        match &self.of {
            Of::Whole(status) => status.description(),
            Of::Namespaces(view) => &view.description,
        }
    }

    /// Returns how listing and watching fares now. Of several namespaces, how the worst does: one that is refused before
    /// one that is waited for, before one that is being listed, before those that are live, of which it is the one that
    /// has not been heard of for longest. Without any it is [`Health::Connecting`].
    #[must_use]
    pub fn health(&self) -> Health {
        match &self.of {
            Of::Whole(status) => status.health(),
            Of::Namespaces(view) => view.health(),
        }
    }

    /// Waits until the health changes, of any namespace if there are several, or until these change; and returns it. The
    /// last one is [`Health::Stopped`]; once that was returned, there is only `None`, and at once.
    ///
    /// Of several changes between two calls only the last is seen.
    ///
    /// # Cancel safety
    /// No change is lost if the future is dropped: the next call returns at once.
    pub async fn health_changed(&mut self) -> Option<Health> {
        match &mut self.of {
            Of::Whole(status) => status.health_changed().await,
            Of::Namespaces(view) => view.health_changed().await,
        }
    }

    /// Returns how each namespace fares, by name, where they are followed one by one; none otherwise.
    #[must_use]
    pub fn namespaces(&self) -> BTreeMap<String, ReflectorStatus> {
        let Of::Namespaces(view) = &self.of else { return BTreeMap::new() };
        let members = view.members.borrow();
        let named = members.by_namespace.iter();
        named.map(|(namespace, member)| (namespace.to_string(), member.status.clone())).collect()
    }

    /// Returns the resource version up to which everything has been handed on, empty before the first list. Of several
    /// namespaces, the least.
    #[must_use]
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        let versions = self.reflectors().into_iter().map(|status| status.last_sync_resource_version());
        let least = |one: ResourceVersion, other: ResourceVersion| match one.compare(&other) {
            Some(order) => {
                if order.is_le() {
                    one
                } else {
                    other
                }
            }
            None => ResourceVersion::empty(),
        };
        versions.reduce(least).unwrap_or_default()
    }

    /// Returns the objects that exist but can't be decoded or transformed at present (I10). What the store has of
    /// them, if anything, is an earlier version.
    #[must_use]
    pub fn quarantined(&self) -> Vec<RejectedObject> {
        self.reflectors().iter().flat_map(ReflectorStatus::quarantined).collect()
    }

    /// Returns how many versions of objects have been quarantined so far, in the namespaces that are followed now.
    #[must_use]
    pub fn quarantined_total(&self) -> u64 {
        self.reflectors().iter().map(ReflectorStatus::quarantined_total).sum()
    }

    fn reflectors(&self) -> Vec<ReflectorStatus> {
        match &self.of {
            Of::Whole(status) => vec![status.clone()],
            Of::Namespaces(view) => view.reflectors(),
        }
    }

    /// Says what it is, and what keeps it from being synced.
    pub(crate) fn waiting_for(&self) -> String {
        let Of::Namespaces(view) = &self.of else {
            return format!("{} ({})", self.description(), self.health());
        };
        let mut reasons = self.unlisted();
        if reasons.is_empty() {
            reasons.push(view.health().to_string());
        }
        format!("{} ({})", view.description, reasons.join(", "))
    }

    /// Returns each namespace that has not been listed, with the reason; none where all come as one.
    pub(crate) fn unlisted(&self) -> Vec<String> {
        let Of::Namespaces(view) = &self.of else { return Vec::new() };
        let members = view.members.borrow();
        let waiting = members.by_namespace.iter().filter(|(_, member)| !member.synced.has_synced());
        waiting
            .map(|(namespace, member)| format!("namespace \"{namespace}\": {}", member.status.health()))
            .collect()
    }

    /// Returns what keeps a namespace from being listed.
    pub(crate) fn waiting_for_namespace(&self, namespace: &str) -> String {
        let Of::Namespaces(view) = &self.of else { return self.waiting_for() };
        let members = view.members.borrow();
        let health = members.by_namespace.get(namespace).map(|member| member.status.health().to_string());
        let reason = health.unwrap_or_else(|| "not followed".to_owned());
        format!("{} (namespace \"{namespace}\": {reason})", view.description)
    }
}

impl View {
    fn health(&self) -> Health {
        worst(&self.members.borrow())
    }

    fn reflectors(&self) -> Vec<ReflectorStatus> {
        self.members.borrow().by_namespace.values().map(|member| member.status.clone()).collect()
    }

    /// Watches those that are followed now.
    fn catch_up(&mut self) {
        let current = self.members.borrow_and_update();
        self.has_ended = current.has_ended;
        self.seen.retain(|namespace, seen| {
            current.by_namespace.get(namespace).is_some_and(|member| member.feed == seen.feed)
        });
        if current.has_ended {
            // What their reflectors still say is no more than this.
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
                changed = self.members.changed(), if !self.has_ended => {
                    drop(watched);
                    if changed.is_ok() {
                        self.catch_up();
                        return Some(self.health());
                    }
                    // Where nobody can follow namespaces any more, nothing more is to be heard of them.
                    self.has_ended = true;
                    continue;
                }
                Some(changed) = watched.next() => changed,
                else => return None,
            };
            drop(watched);
            match (health, self.health()) {
                // Its last health has been returned.
                (None, _) => _ = self.seen.remove(&namespace),
                // The word that this is the last is on its way.
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
    // The first of those that are equally bad.
    let worse = |one: Health, other: Health| if badness(&other) > badness(&one) { other } else { one };
    healths.reduce(worse).unwrap_or(Health::Connecting)
}

/// How bad a health is: first its kind, then for how long nothing has been heard.
fn badness(health: &Health) -> (u8, Option<std::time::Duration>) {
    match health {
        Health::Live { last_event } => (1, Some(last_event.elapsed())),
        Health::Syncing { .. } => (2, None),
        Health::Connecting => (3, None),
        Health::BackingOff { .. } | Health::AwaitingTurn { .. } => (4, None),
        Health::NotServed { .. } => (5, None),
        Health::Forbidden { .. } => (6, None),
        // One that has been stopped is about to be followed no more.
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
