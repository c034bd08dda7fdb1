//! A controller whose cache lags by half a second. Without a `WriteTracker`, the controller creates
//! duplicate children and causes conflicts; with a `WriteTracker`, it does not. Time is virtual.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use informer_controller::{
    ControllerRunner, ReconcileRequest, Reconciled, RunnerStats, Workqueue, controller_key, own_key,
};
use informer_factory::{Cached, Index, ObjectKey, SharedIndexInformer, SharedInformerFactory};
use informer_testing::{LaggingReplica, Simulator};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, interval, sleep};
use tokio_util::sync::CancellationToken;

const LAG: Duration = Duration::from_millis(500);
const PARENTS: u32 = 20;

/// Makes a replica lag by half a second, plus up to ten milliseconds.
async fn keep_lagging(simulator: &Simulator, replica: &LaggingReplica) {
    let mut past = VecDeque::<(Instant, u64)>::new();
    let mut ticks = interval(Duration::from_millis(10));
    loop {
        ticks.tick().await;
        let now = simulator.resource_version();
        past.push_back((Instant::now(), now));
        while let Some((_, version)) = past.front().filter(|(at, _)| at.elapsed() >= LAG) {
            replica.lag(now - version);
            replica.hold();
            past.pop_front();
        }
    }
}

/// A controller that creates one child per parent, and writes the number of children into the
/// parent's status.
struct OneChildEach {
    is_tracking: bool,
    sets: SharedIndexInformer<ReplicaSet>,
    pods: SharedIndexInformer<Pod>,
    by_owner: Index<Pod, String>,
    client: kube::Client,
    simulator: Arc<Simulator>,
    duplicates: AtomicU32,
    conflicts: AtomicU32,
    writes: AtomicU32,
}

impl OneChildEach {
    async fn reconcile(self: Arc<Self>, request: ReconcileRequest) -> Result<Reconciled, kube::Error> {
        let Some(set) = self.sets.get(request.key()) else { return Ok(Reconciled::Done) };
        let children = self.by_owner.count(set.metadata.uid.as_deref().expect("set by the server"));
        if children == 0 {
            self.create_child(&request, &set).await?;
        }
        let reported = set.status.as_ref().map_or(0, |status| status.replicas);
        if reported != i32::try_from(children).expect("a small number") {
            self.write_status(&request, &set, children).await?;
        }
        Ok(Reconciled::Done)
    }

    async fn create_child(&self, request: &ReconcileRequest, set: &ReplicaSet) -> Result<(), kube::Error> {
        let mut pod = Pod::default();
        pod.metadata.generate_name = Some(format!("{}-", set.name_unchecked()));
        pod.metadata.owner_references = Some(set.controller_owner_ref(&()).into_iter().collect());
        let pods = Api::<Pod>::namespaced(self.client.clone(), "shop");
        let params = PostParams::default();
        self.writes.fetch_add(1, Ordering::Relaxed);
        match self.is_tracking {
            true => request.writes().track(&self.pods, &pod, pods.create(&params, &pod)).await?,
            false => pods.create(&params, &pod).await?,
        };
        let all = self.simulator.list_all::<Pod>().expect("pods are served");
        let is_of_set =
            |pod: &&Pod| pod.owner_references().iter().any(|owner| Some(&owner.uid) == set.uid().as_ref());
        if all.iter().filter(is_of_set).count() > 1 {
            self.duplicates.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn write_status(
        &self,
        request: &ReconcileRequest,
        set: &Cached<ReplicaSet>,
        children: usize,
    ) -> Result<(), kube::Error> {
        let mut set = ReplicaSet::clone(set);
        let replicas = i32::try_from(children).expect("a small number");
        set.status = Some(ReplicaSetStatus { replicas, ..ReplicaSetStatus::default() });
        let sets = Api::<ReplicaSet>::namespaced(self.client.clone(), "shop");
        let (name, params) = (set.name_unchecked(), PostParams::default());
        self.writes.fetch_add(1, Ordering::Relaxed);
        let update = sets.replace_status(&name, &params, &set);
        let answer = match self.is_tracking {
            true => request.writes().track(&self.sets, &set, update).await,
            false => update.await,
        };
        if matches!(&answer, Err(kube::Error::Api(status)) if status.is_conflict()) {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
        }
        answer.map(drop)
    }
}

fn parent(n: u32) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "namespace": "shop", "name": format!("parent-{n}") },
    })
}

/// Simulates other clients, which delete and change children, and change settings of the parents.
async fn churn(simulator: &Simulator, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for step in 0..400 {
        let pods = simulator.list_all::<Pod>().expect("pods are served");
        let pod = random.choice(&pods);
        match (random.u32(0..4), pod) {
            (0, Some(pod)) => _ = simulator.delete::<Pod>(&format!("shop/{}", pod.name_unchecked())),
            (1, Some(pod)) => {
                let mut pod = pod.clone();
                pod.labels_mut().insert("step".into(), step.to_string());
                simulator.apply(&pod).expect("the object exists");
            }
            _ => {
                let name = format!("parent-{}", random.u32(0..PARENTS));
                let settings = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": { "namespace": "shop", "name": name },
                    "data": { "step": step.to_string() },
                });
                simulator.apply(&settings).expect("the object is valid");
            }
        }
        sleep(Duration::from_millis(random.u64(0..50))).await;
    }
}

/// The writes and errors of a controller while other clients change objects for ten seconds.
#[derive(Debug)]
struct Account {
    writes: u32,
    duplicates: u32,
    conflicts: u32,
    stats: RunnerStats,
}

async fn run(is_tracking: bool, seed: u64) -> Account {
    let simulator = Arc::new(Simulator::builder().built_in_kinds().seed(seed).start_in_process());
    let replica = simulator.lagging_replica();
    replica.hold();
    let factory = SharedInformerFactory::new(replica.client()).in_namespace("shop");
    let (sets, pods) = (factory.apps().v1().replica_sets(), factory.core().v1().pods());
    let settings = factory.core().v1().config_maps();
    let owners = |pod: &Pod| pod.owner_references().iter().map(|owner| owner.uid.clone()).collect::<Vec<_>>();
    let by_owner = pods.add_index("owner", owners).expect("a free index name");
    let runner = ControllerRunner::new(Workqueue::builder().name("parents").build())
        .workers(4)
        .watches(&sets, own_key)
        .watches(&pods, controller_key::<ReplicaSet, Pod>)
        .watches(&settings, own_key::<ConfigMap>);
    let (monitor, shutdown) = (runner.monitor(), CancellationToken::new());
    let controller = Arc::new(OneChildEach {
        is_tracking,
        sets,
        pods,
        by_owner,
        client: simulator.client().expect("a client"),
        simulator: Arc::clone(&simulator),
        duplicates: AtomicU32::new(0),
        conflicts: AtomicU32::new(0),
        writes: AtomicU32::new(0),
    });
    factory.start();
    let calls = Arc::clone(&controller);
    let reconcile = move |request| Arc::clone(&calls).reconcile(request);
    let work = tokio::spawn(runner.run(reconcile, shutdown.clone()));
    let others = async {
        for n in 0..PARENTS {
            simulator.create(&parent(n)).expect("a new object");
        }
        churn(&simulator, seed).await;
        sleep(Duration::from_secs(5)).await;
    };
    tokio::select! {
        () = others => {}
        () = keep_lagging(&simulator, &replica) => {}
    }
    shutdown.cancel();
    work.await.expect("no panic").expect("synced");
    factory.shutdown().await;
    let account = Account {
        writes: controller.writes.load(Ordering::Relaxed),
        duplicates: controller.duplicates.load(Ordering::Relaxed),
        conflicts: controller.conflicts.load(Ordering::Relaxed),
        stats: monitor.stats(),
    };
    if is_tracking {
        assert_correct(&simulator);
    }
    account
}

fn assert_correct(simulator: &Simulator) {
    let pods = simulator.list_all::<Pod>().expect("pods are served");
    for set in simulator.list_all::<ReplicaSet>().expect("replica sets are served") {
        let key = ObjectKey::namespaced("shop", &set.name_unchecked());
        let of_set = |pod: &Cached<Pod>| controller_key::<ReplicaSet, Pod>(pod).as_ref() == Some(&key);
        let children =
            pods.iter().filter(|pod| of_set(&Cached::new((*pod).clone()).expect("a valid name"))).count();
        assert_eq!(children, 1, "{key}");
        assert_eq!(set.status.map(|status| status.replicas), Some(1), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn i9_late_cache_causes_no_duplicates_or_conflicts() {
    let (with, without) = (run(true, 1).await, run(false, 1).await);
    println!("with a tracker {with:?}\nwithout {without:?}");
    assert_eq!((with.duplicates, with.conflicts, with.stats.failed), (0, 0, 0), "{with:?}");
    assert_eq!(with.stats.parked_timed_out, 0, "{with:?}");
    assert!(with.writes > 100 && with.stats.parked > 50, "too few writes or parked keys: {with:?}");
    assert!(without.duplicates > 20 && without.conflicts > 20, "the cache did not lag: {without:?}");
}
