//! [`Cluster`]: a realistic cluster of nodes, namespaces, workloads and pods.
//!
//! Pods have the size (about 9 KB) and the shape of real pods. Timestamps come from the cluster's
//! own clock, so that two runs with the same seed give the same bytes.

mod churn;
mod managed_fields;
mod names;
mod node;
mod pod;
mod workload;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::simulator::Error;
use crate::simulator::ObjectStore;
use crate::simulator::Simulator;
pub use churn::{Change, Churn};
use names::Names;
use node::Node;
use workload::Workload;

/// The start of the cluster's clock: 2026-06-01, 08:00 UTC, in seconds since the epoch.
const FIRST_SECOND: i64 = 1_780_300_800;

/// The approximate number of pods per workload. Clusters with few pods have fewer per workload,
/// because each namespace has at least one workload.
const PODS_PER_WORKLOAD: usize = 6;

/// The size of a [`Cluster`], and the seed of its random choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// The number of nodes. Default: 10; at least 1.
    pub nodes: usize,
    /// The number of pods, over all namespaces. Default: 200.
    pub pods: usize,
    /// The number of namespaces. Default: 8; at least 1.
    pub namespaces: usize,
    /// The seed of all random choices. The same seed gives the same cluster. Default: 0.
    pub seed: u64,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self { nodes: 10, pods: 200, namespaces: 8, seed: 0 }
    }
}

/// The nodes, workloads and pods that [`Simulator::populate`] has created in a simulator.
/// [`Cluster::churn`] changes the pods and nodes continuously.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    workloads: Vec<Workload>,
    pods: Vec<PodRef>,
    draw: Draw,
    node_store: ObjectStore,
    pod_store: ObjectStore,
}

/// A pod that the cluster has created.
#[derive(Clone, Debug)]
struct PodRef {
    key: String,
    /// An index into the cluster's workloads.
    workload: usize,
}

impl PodRef {
    fn name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }
}

/// The source of the cluster's random choices and timestamps.
#[derive(Debug)]
struct Draw {
    random: fastrand::Rng,
    clock: Timestamp,
}

impl Draw {
    fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            clock: Timestamp::from_second(FIRST_SECOND).unwrap_or(Timestamp::UNIX_EPOCH),
        }
    }

    fn now(&self) -> String {
        self.clock.to_string()
    }

    fn advance(&mut self, seconds: i64) {
        self.clock = self.clock.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(self.clock);
    }

    fn uid(&mut self) -> String {
        crate::api::writes::uuid(&mut self.random)
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.random.usize(..choices.len())]
    }
}

impl Simulator {
    /// Fills the simulator with a cluster. The simulator must serve the built-in kinds.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownResource`] if a kind is not served, [`Error::Refused`] if an object of the
    /// cluster already exists.
    pub fn populate(&self, spec: &ClusterSpec) -> Result<Cluster, Error> {
        let mut draw = Draw::new(spec.seed);
        let namespaces: Vec<String> = (0..spec.namespaces.max(1)).map(names::namespace).collect();
        for name in &namespaces {
            self.create(&namespace(name, &mut draw))?;
        }
        let nodes: Vec<Node> = (0..spec.nodes.max(1)).map(|index| Node::draw(index, &mut draw)).collect();
        for node in &nodes {
            self.create(&node.object(&mut draw))?;
        }
        let count = (spec.pods / PODS_PER_WORKLOAD).max(namespaces.len());
        let mut names = Names::default();
        let workloads: Vec<Workload> = (0..count)
            .map(|index| Workload::draw(&namespaces[index % namespaces.len()], index, &mut names, &mut draw))
            .collect();
        let mut cluster = Cluster {
            nodes,
            workloads,
            pods: Vec::with_capacity(spec.pods),
            draw,
            node_store: self.objects("v1", "Node")?,
            pod_store: self.objects("v1", "Pod")?,
        };
        cluster.create_pods(spec.pods)?;
        for workload in &cluster.workloads {
            for object in workload.objects() {
                self.create(&object)?;
            }
        }
        Ok(cluster)
    }
}

impl Cluster {
    /// Returns the number of pods that the cluster has created and not deleted.
    #[must_use]
    pub fn pods(&self) -> usize {
        self.pods.len()
    }

    /// Returns a [`Churn`], which makes about this many changes per second while
    /// [`Churn::run_until`] runs. The maximum is 200,000; higher rates have the same effect. A
    /// negative or infinite rate counts as 0.
    #[must_use]
    pub fn churn(self, changes_per_second: f64) -> Churn {
        Churn::new(self, changes_per_second)
    }

    fn create_pods(&mut self, count: usize) -> Result<(), Error> {
        for index in 0..count {
            let workload = index % self.workloads.len();
            let mut pod = self.workloads[workload].new_pod(workload, &self.pod_store, &mut self.draw);
            let node = &self.nodes[self.draw.random.usize(..self.nodes.len())];
            pod.run_on(node, &mut self.draw);
            self.pods.push(pod.create(&self.pod_store)?);
        }
        Ok(())
    }
}

fn namespace(name: &str, draw: &mut Draw) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "uid": draw.uid(),
            "creationTimestamp": draw.now(),
            "labels": { "kubernetes.io/metadata.name": name, "team": name },
        },
        "spec": { "finalizers": ["kubernetes"] },
        "status": { "phase": "Active" },
    })
}
