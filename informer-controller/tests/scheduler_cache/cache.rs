//! [`Cache`]: the resources that pods use on each node, according to the watch and to decisions
//! that the watch has not confirmed yet.
//!
//! kube-scheduler: `pkg/scheduler/backend/cache/cache.go`. A decision counts at once, because the
//! scheduler makes further decisions before the watch confirms it. Until the confirmation, the pod
//! is *assumed* to be on its node. An assumption expires if the watch does not confirm it in time.
//! The cache has no lock, no clock and no I/O.

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
    /// `None` if the cache has pods of the node, but not the node itself.
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
    /// The binding request is in flight.
    Assumed,
    /// The pod may be bound; the watch should confirm the binding before this deadline.
    AssumedUntil(Instant),
    /// The watch has confirmed the binding.
    Confirmed,
}

/// The result of a scheduling decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The pod is assumed to be on this node.
    Node(String),
    /// The pod already has a node.
    AlreadyPlaced,
    /// No node has enough resources left.
    NoRoom,
}

impl Cache {
    /// Adds a node, or updates its resources.
    pub(crate) fn set_node(&mut self, name: &str, allocatable: Resources) {
        self.nodes.entry(name.to_owned()).or_default().allocatable = Some(allocatable);
    }

    /// Removes a node. Its pods count until they are removed, too.
    pub(crate) fn remove_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.allocatable = None;
        }
        self.remove_unused_node(name);
    }

    /// Records a pod from the watch, with or without a node.
    pub(crate) fn observe(&mut self, key: &ObjectKey, uid: &Uid, request: Resources, node: Option<&str>) {
        // Without a node in the event, an assumed pod keeps its node, because the watch may lag.
        let is_another = self.pods.get(key).is_some_and(|placed| placed.uid != *uid);
        if node.is_some() || is_another {
            self.take_out(key);
        }
        if let Some(node) = node {
            self.put(key, uid, request, node.to_owned(), Standing::Confirmed);
        }
    }

    /// Removes a pod that is deleted or has ended.
    pub(crate) fn remove(&mut self, key: &ObjectKey, uid: Option<&Uid>) {
        if self.pods.get(key).is_some_and(|placed| uid.is_none_or(|uid| placed.uid == *uid)) {
            self.take_out(key);
        }
    }

    /// Chooses the node that will have the largest free share of its scarcest resource, and assumes the
    /// pod to be on this node.
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

    /// Sets the deadline for the watch to confirm an assumed pod. The pod is bound, or the outcome of
    /// the binding request is unknown.
    pub(crate) fn expect_until(&mut self, key: &ObjectKey, uid: &Uid, deadline: Instant) {
        let placed = self.pods.get_mut(key).filter(|placed| placed.uid == *uid);
        // The watch may confirm the pod before the response arrives.
        if let Some(placed) = placed.filter(|placed| placed.standing == Standing::Assumed) {
            placed.standing = Standing::AssumedUntil(deadline);
        }
    }

    /// Removes an assumed pod whose binding failed.
    pub(crate) fn forget(&mut self, key: &ObjectKey, uid: &Uid) {
        let placed = self.pods.get(key).filter(|placed| placed.uid == *uid);
        if placed.is_some_and(|placed| placed.standing != Standing::Confirmed) {
            self.take_out(key);
        }
    }

    /// Removes assumed pods that the watch has not confirmed in time, and returns their keys.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<ObjectKey> {
        let is_over = |placed: &Placed| matches!(placed.standing, Standing::AssumedUntil(end) if end <= now);
        let over = self.pods.iter().filter(|(_, placed)| is_over(placed));
        let over: Vec<_> = over.map(|(key, _)| key.clone()).collect();
        for key in &over {
            self.take_out(key);
        }
        over
    }

    pub(crate) fn assumed(&self) -> usize {
        self.pods.values().filter(|placed| placed.standing != Standing::Confirmed).count()
    }

    /// Returns the used resources of each known node.
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
        self.remove_unused_node(&placed.node);
    }

    /// Removes the entry of a node that has no pods and, according to the watch, does not exist.
    fn remove_unused_node(&mut self, name: &str) {
        let is_idle = |node: &Node| node.allocatable.is_none() && node.used == Resources::default();
        if self.nodes.get(name).is_some_and(is_idle) {
            self.nodes.remove(name);
        }
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
