//! [`Churn`]: continuous changes of a cluster's pods and nodes.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Cluster, PodRef, node, pod};
use crate::simulator::Error;

const TICK: Duration = Duration::from_millis(10);

/// After a delay, one tick makes at most as many changes as usually happen within this time, or one
/// change if these are fewer than one.
const MAX_CATCH_UP: Duration = Duration::from_millis(100);

/// Maximum number of changes in one tick, so that a churn of any rate can be stopped.
const MAX_CHANGES_PER_TICK: f64 = 2_000.0;

/// A change that [`Churn::step`] has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// A pod was created, pending and on no node.
    PodCreated,
    /// A pending pod was assigned to a node.
    PodScheduled,
    /// A scheduled pod has started and is ready.
    PodStarted,
    /// A pod became unready, or ready again.
    PodFlapped,
    /// A pod was deleted.
    PodDeleted,
    /// A node sent a heartbeat.
    NodeHeartbeat,
    /// No change, because another client has deleted the object, or because the cluster has no
    /// running pods.
    Missed,
}

/// Changes a cluster continuously. The cluster's seed determines the sequence of changes.
///
/// The number of pods stays approximately the same. Watches receive one event per change.
///
/// Pods are deleted with a grace period of 0 seconds, which removes them at once. With
/// [`graceful_pod_deletion`](crate::SimulatorBuilder::graceful_pod_deletion), watches receive two
/// events for a deletion: `MODIFIED` with the deletion timestamp, then `DELETED`.
#[derive(Debug)]
pub struct Churn {
    cluster: Cluster,
    rate: f64,
    /// Deleted pods that have no replacement yet.
    vacancies: VecDeque<PodRef>,
    /// New pods that are not running yet, with the next change of each pod.
    starting: VecDeque<(PodRef, Stage)>,
}

/// The next change of a new pod: its assignment to a node, or its start on that node.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Node,
    Start { node: usize },
}

impl Churn {
    pub(super) fn new(cluster: Cluster, rate: f64) -> Self {
        let rate = if rate.is_finite() { rate.max(0.0) } else { 0.0 };
        Self { cluster, rate, vacancies: VecDeque::new(), starting: VecDeque::new() }
    }

    /// Makes changes until `stop` is ready, at the rate that was passed to [`Cluster::churn`].
    /// Returns the churn, so that it can continue later.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the simulator refuses a change. This happens only if an object with
    /// the name of a stateful set's new pod exists. For example, another client has created it, or
    /// a finalizer keeps the deleted pod.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the churn between two changes.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) -> Result<Self, Error> {
        let mut stop = std::pin::pin!(stop);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Instant::now();
        let mut due = 0.0;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return Ok(self),
                _ = ticks.tick() => {}
            }
            // A busy machine misses ticks. The next tick makes up for missed changes, but their
            // number is limited, so that they do not block the runtime. The limit is at least one
            // change, because lower limits would stop the churn.
            let passed = std::mem::replace(&mut last, Instant::now()).elapsed();
            let most = (self.rate * MAX_CATCH_UP.as_secs_f64()).clamp(1.0, MAX_CHANGES_PER_TICK);
            due = (due + self.rate * passed.as_secs_f64()).min(most);
            while due >= 1.0 {
                due -= 1.0;
                self.step()?;
            }
        }
    }

    /// Makes one change, or none: see [`Change::Missed`].
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the simulator refuses the change, except with status 404.
    pub fn step(&mut self) -> Result<Change, Error> {
        self.cluster.draw.advance(1);
        let change = match self.cluster.draw.random.u8(0..100) {
            0..45 if !self.starting.is_empty() => self.bring_up(),
            0..65 => self.flap(),
            65..85 => self.heartbeat(),
            _ if self.vacancies.is_empty() => self.delete(),
            _ => self.replace(),
        };
        match change {
            Err(Error::Refused(refusal)) if refusal.is_not_found() => Ok(Change::Missed),
            other => other,
        }
    }

    fn replace(&mut self) -> Result<Change, Error> {
        let Some(gone) = self.vacancies.pop_front() else {
            return Ok(Change::Missed);
        };
        let cluster = &mut self.cluster;
        let workload = &cluster.workloads[gone.workload];
        let pod = workload.replacement(&gone, &cluster.pod_store, &mut cluster.draw);
        self.starting.push_back((pod.create(&cluster.pod_store)?, Stage::Node));
        Ok(Change::PodCreated)
    }

    /// Changes the first pod in `starting`: assigns it to a node, or starts it on its node.
    fn bring_up(&mut self) -> Result<Change, Error> {
        let Some((pod, stage)) = self.starting.pop_front() else {
            return Ok(Change::Missed);
        };
        let Cluster { nodes, pods, draw, pod_store, .. } = &mut self.cluster;
        let (node, change) = match stage {
            Stage::Node => (draw.random.usize(..nodes.len()), Change::PodScheduled),
            Stage::Start { node } => (node, Change::PodStarted),
        };
        let moved = pod_store.modify(&pod.key, |value| match stage {
            Stage::Node => pod::schedule(value, &nodes[node], &draw.now()),
            Stage::Start { .. } => pod::start(value, &nodes[node], draw),
        });
        match (&moved, stage) {
            // Another client has deleted the pod.
            (Err(_), _) => self.vacancies.push_back(pod),
            (Ok(_), Stage::Node) => self.starting.push_back((pod, Stage::Start { node })),
            (Ok(_), Stage::Start { .. }) => pods.push(pod),
        }
        moved.map(|_| change)
    }

    fn flap(&mut self) -> Result<Change, Error> {
        let Some(index) = self.draw_pod() else {
            return Ok(Change::Missed);
        };
        let cluster = &mut self.cluster;
        let now = cluster.draw.now();
        let flapped = cluster.pod_store.modify(&cluster.pods[index].key, |value| pod::flap(value, &now));
        if let Err(error) = flapped {
            // Another client has deleted the pod. Remove it, so that it is not drawn again.
            self.vacancies.push_back(cluster.pods.swap_remove(index));
            return Err(error);
        }
        Ok(Change::PodFlapped)
    }

    fn heartbeat(&mut self) -> Result<Change, Error> {
        let cluster = &mut self.cluster;
        let index = cluster.draw.random.usize(..cluster.nodes.len());
        let now = cluster.draw.now();
        cluster.node_store.modify(&cluster.nodes[index].name, |value| node::heartbeat(value, &now))?;
        Ok(Change::NodeHeartbeat)
    }

    fn delete(&mut self) -> Result<Change, Error> {
        let Some(index) = self.draw_pod() else {
            return Ok(Change::Missed);
        };
        let pod = self.cluster.pods.swap_remove(index);
        let deleted = self.cluster.pod_store.delete_at_once(&pod.key);
        self.vacancies.push_back(pod);
        deleted?;
        Ok(Change::PodDeleted)
    }

    fn draw_pod(&mut self) -> Option<usize> {
        let count = self.cluster.pods.len();
        (count > 0).then(|| self.cluster.draw.random.usize(..count))
    }
}
