//! [`Cache`]: what pods take of each node, as the watch tells it, and as it has been decided and not told yet.
//!
//! kube-scheduler: `pkg/scheduler/backend/cache/cache.go`. What people get wrong: between a decision and the watch's word of
//! it there are more decisions, so what was decided counts at once; such a pod is *assumed*. Where no word comes, that ends
//! after a while. There is no lock, no clock and no I/O in here.

use std::collections::{BTreeMap, HashMap};

use informer_factory::{ObjectKey, Uid};
use tokio::time::Instant;

use crate::resources::Resources;

#[derive(Debug, Default)]
pub(crate) struct Cache {
    nodes: BTreeMap<String, Node>,
    pods: HashMap<ObjectKey, Placed>,
}

#[derive(Debug, Default)]
struct Node {
    /// `None`: pods are on it, but the node itself isn't known, not yet or no longer.
    allocatable: Option<Resources>,
    used: Resources,
}

#[derive(Debug)]
struct Placed {
    uid: Uid,
    node: String,
    request: Resources,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is being bound.
    Assumed,
    /// It has been bound, perhaps, and the watch should say so until then.
    AssumedUntil(Instant),
    /// The watch has said so.
    Confirmed,
}

/// What came of looking for a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// This node; the pod is assumed to be there from now on.
    Node(String),
    /// It has a place.
    AlreadyPlaced,
    /// No node has enough left.
    NoRoom,
}

impl Cache {
    /// Takes note of a node, or of what it has now.
    pub(crate) fn set_node(&mut self, name: &str, allocatable: Resources) {
        self.nodes.entry(name.to_owned()).or_default().allocatable = Some(allocatable);
    }

    /// Takes note that a node is gone. What is said to be on it counts until its pods are gone, too.
    pub(crate) fn remove_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.allocatable = None;
        }
        self.tidy(name);
    }

    /// Takes note of a pod as the watch tells it, on a node or on none.
    pub(crate) fn observe(&mut self, key: &ObjectKey, uid: &Uid, request: Resources, node: Option<&str>) {
        // An assumed pod stays where it is: the watch may be late.
        let is_another = self.pods.get(key).is_some_and(|placed| placed.uid != *uid);
        if node.is_some() || is_another {
            self.take_out(key);
        }
        if let Some(node) = node {
            self.put(key, uid, request, node.to_owned(), Standing::Confirmed);
        }
    }

    /// Takes note that a pod is gone, or has ended.
    pub(crate) fn remove(&mut self, key: &ObjectKey, uid: Option<&Uid>) {
        if self.pods.get(key).is_some_and(|placed| uid.is_none_or(|uid| placed.uid == *uid)) {
            self.take_out(key);
        }
    }

    /// Chooses the node that will have most left of what is scarcest on it, and assumes that the pod is there.
    pub(crate) fn assume(&mut self, key: &ObjectKey, uid: &Uid, request: Resources) -> Choice {
        if self.pods.contains_key(key) {
            return Choice::AlreadyPlaced;
        }
        let left = |node: &Node| (node.used + request).left_of(node.allocatable?);
        let fitting = self.nodes.iter().filter_map(|(name, node)| Some((left(node)?, name)));
        let Some((_, node)) = fitting.max_by_key(|(left, _)| *left) else {
            return Choice::NoRoom;
        };
        let node = node.clone();
        self.put(key, uid, request, node.clone(), Standing::Assumed);
        Choice::Node(node)
    }

    /// Returns an assumed pod until `deadline` to be told of by the watch: it has been bound, or nobody knows.
    pub(crate) fn expect_until(&mut self, key: &ObjectKey, uid: &Uid, deadline: Instant) {
        let placed = self.pods.get_mut(key).filter(|placed| placed.uid == *uid);
        // The watch may have been quicker than the answer.
        if let Some(placed) = placed.filter(|placed| placed.standing == Standing::Assumed) {
            placed.standing = Standing::AssumedUntil(deadline);
        }
    }

    /// Forgets an assumed pod that could not be bound.
    pub(crate) fn forget(&mut self, key: &ObjectKey, uid: &Uid) {
        let placed = self.pods.get(key).filter(|placed| placed.uid == *uid);
        if placed.is_some_and(|placed| placed.standing != Standing::Confirmed) {
            self.take_out(key);
        }
    }

    /// Forgets assumed pods of which the watch has said nothing in time, and returns them.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<ObjectKey> {
        let is_over = |placed: &Placed| matches!(placed.standing, Standing::AssumedUntil(end) if end <= now);
        let over = self.pods.iter().filter(|(_, placed)| is_over(placed));
        let over: Vec<_> = over.map(|(key, _)| key.clone()).collect();
        for key in &over {
            self.take_out(key);
        }
        over
    }

    /// Returns how many pods are assumed.
    pub(crate) fn assumed(&self) -> usize {
        self.pods.values().filter(|placed| placed.standing != Standing::Confirmed).count()
    }

    /// Returns what is taken of each node that is known.
    pub(crate) fn sums(&self) -> BTreeMap<String, Resources> {
        let known = self.nodes.iter().filter(|(_, node)| node.allocatable.is_some());
        known.map(|(name, node)| (name.clone(), node.used)).collect()
    }

    fn put(&mut self, key: &ObjectKey, uid: &Uid, request: Resources, node: String, standing: Standing) {
        self.nodes.entry(node.clone()).or_default().used += request;
        self.pods.insert(key.clone(), Placed { uid: uid.clone(), node, request, standing });
    }

    fn take_out(&mut self, key: &ObjectKey) {
        let Some(placed) = self.pods.remove(key) else { return };
        if let Some(node) = self.nodes.get_mut(&placed.node) {
            node.used -= placed.request;
        }
        self.tidy(&placed.node);
    }

    /// Forgets a node of which nothing is known and on which nothing is.
    fn tidy(&mut self, name: &str) {
        let is_idle = |node: &Node| node.allocatable.is_none() && node.used == Resources::default();
        if self.nodes.get(name).is_some_and(is_idle) {
            self.nodes.remove(name);
        }
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
