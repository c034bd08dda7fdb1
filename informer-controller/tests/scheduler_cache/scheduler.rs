//! [`Scheduler`]: informers fill the cache and a queue of pods without a node, and workers choose a
//! node for each pod and bind it.
//!
//! kube-scheduler: `pkg/scheduler/eventhandlers.go`. A scheduler has its own client and caches.
//! Dropping it is like killing its process.

use std::error::Error;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use informer_controller::informer_workqueue::ItemExponential;
use informer_controller::{Priority, Workqueue};
use informer_factory::{
    Cached, HandlerOptions, HandlerRegistration, Handlers, ObjectKey, SharedIndexInformer,
    SharedInformerFactory, wait_for_cache_sync,
};
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::bind;
use crate::cache::Cache;
use crate::views::{NodeRoom, NodeRoomInformers, PodDemand, PodDemandInformers};

/// The `schedulerName` of this scheduler's pods. The cluster's own scheduler ignores them.
pub(crate) const NAME: &str = "most-room-first";

/// The label of the nodes that this scheduler uses.
pub(crate) const POOL: &str = "example-pool";

const WORKERS: usize = 16;

pub(crate) struct Scheduler {
    pub(crate) shared: Arc<Shared>,
    workers: JoinSet<()>,
    handlers: [HandlerRegistration; 2],
    factory: SharedInformerFactory,
}

/// The shared state of handlers and workers.
pub(crate) struct Shared {
    cache: Mutex<Cache>,
    pub(crate) queue: Workqueue<ObjectKey>,
    pub(crate) pods: SharedIndexInformer<PodDemand>,
    pub(crate) client: Client,
    pub(crate) counts: Counts,
    /// Sends a notification after each pod event, when the cache has been updated.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) bound: AtomicUsize,
    pub(crate) refused: AtomicUsize,
    pub(crate) unanswered: AtomicUsize,
    pub(crate) no_room: AtomicUsize,
}

impl Scheduler {
    /// Starts a scheduler for the nodes of a pool, and returns once its cache is complete.
    pub(crate) async fn start(client: Client, pool: &str) -> Result<Self, Box<dyn Error>> {
        let factory = SharedInformerFactory::new(client.clone());
        let nodes = factory.with_labels(&format!("{POOL}={pool}")).core().v1().node_rooms();
        // Completed pods use no resources. This selector makes them appear as deleted.
        let alive = factory.with_fields("status.phase!=Succeeded,status.phase!=Failed");
        let pods = alive.core().v1().pod_demands();
        // As in kube-scheduler, a pod that fits on no node is retried, because new nodes and deleted pods
        // make room.
        let limiter = ItemExponential::new(Duration::from_secs(1), Duration::from_secs(10));
        let shared = Arc::new(Shared {
            cache: Mutex::default(),
            queue: Workqueue::builder().name(NAME).rate_limiter(limiter).build(),
            pods: pods.clone(),
            client,
            counts: Counts::default(),
            changed: watch::Sender::new(()),
        });
        let named = |name: &str| HandlerOptions::new().name(name);
        let handlers = [
            nodes.add_event_handler_with(feed_nodes(&shared), &named("nodes")),
            pods.add_event_handler_with(feed_pods(&shared), &named("pods")),
        ];
        factory.start();
        // Wait for the handlers too, because the first decision needs complete sums.
        wait_for_cache_sync(&[&handlers[0], &handlers[1]], Duration::from_secs(120)).await?;
        let mut workers = JoinSet::new();
        workers.spawn(bind::expire(Arc::clone(&shared)));
        for _ in 0..WORKERS {
            workers.spawn(bind::work(Arc::clone(&shared)));
        }
        Ok(Self { shared, workers, handlers, factory })
    }

    /// Stops the scheduler at once: requests in flight are dropped, and nothing is cleaned up.
    pub(crate) fn kill(self) {
        drop(self);
    }

    pub(crate) async fn shutdown(mut self) {
        self.workers.shutdown().await;
        drop(self.handlers);
        self.factory.shutdown().await;
    }
}

impl Shared {
    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that is notified after each pod event, when the cache has been updated.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn observe(&self, pod: &Cached<PodDemand>, priority: Priority) {
        let node = pod.spec.node_name.as_deref();
        self.cache().observe(pod.key(), pod.uid(), pod.request(), node);
        if pod.waits_for(NAME) {
            self.queue.add_with_priority(pod.key().clone(), priority);
        }
        self.changed.send_replace(());
    }
}

fn feed_pods(shared: &Arc<Shared>) -> Handlers<PodDemand> {
    let [adds, updates, deletes] = [(); 3].map(|()| Arc::clone(shared));
    Handlers::new()
        .on_add(move |pod: &Cached<PodDemand>, is_in_initial_list| {
            adds.observe(pod, if is_in_initial_list { Priority::Low } else { Priority::Normal });
        })
        .on_update(move |_, new: &Cached<PodDemand>| updates.observe(new, Priority::Normal))
        .on_delete(move |pod| {
            deletes.cache().remove(pod.key(), pod.uid());
            deletes.changed.send_replace(());
        })
}

fn feed_nodes(shared: &Arc<Shared>) -> Handlers<NodeRoom> {
    let [adds, updates, deletes] = [(); 3].map(|()| Arc::clone(shared));
    Handlers::new()
        .on_add(move |node: &Cached<NodeRoom>, _| adds.cache().set_node(node.name(), node.allocatable()))
        .on_update(move |_, new: &Cached<NodeRoom>| updates.cache().set_node(new.name(), new.allocatable()))
        .on_delete(move |node| deletes.cache().remove_node(node.name()))
}
