//! The scheduling loop: takes a pod, finds a node, and binds the pod to the node.
//!
//! Decisions are made one at a time, under the cache's lock. The requests follow concurrently, without the lock.
//! kube-scheduler: the scheduling cycle and the binding cycle of `pkg/scheduler/schedule_one.go`.

use std::sync::Arc;
use std::time::Duration;

use informer_factory::{Cached, ObjectKey};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use kube::core::Status;
use serde_json::json;
use tokio::time::{Instant, interval};

use crate::cache::Choice;
use crate::scheduler::{Desk, NAME};
use crate::views::PodDemand;

/// How long a bound pod is assumed to be on its node before the watch confirms it.
const ASSUMED_FOR: Duration = Duration::from_secs(30);

/// The error for a pod that fits on no node.
struct Unplaced;

/// Finds nodes for pods, one after the other.
pub(crate) async fn work(desk: Arc<Desk>) {
    while let Some(item) = desk.queue.get().await {
        match place(&desk, item.key()).await {
            Ok(()) => item.done(),
            Err(Unplaced) => _ = item.retry(),
        }
    }
}

/// Removes assumed pods whose deadline has passed.
pub(crate) async fn expire(desk: Arc<Desk>) {
    let mut seconds = interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        let expired = desk.cache().expire(Instant::now());
        for key in expired {
            desk.queue.add(key);
        }
    }
}

async fn place(desk: &Desk, key: &ObjectKey) -> Result<(), Unplaced> {
    // The queued key can be outdated.
    let Some(pod) = desk.pods.get(key).filter(|pod| pod.waits_for(NAME)) else { return Ok(()) };
    let choice = desk.cache().assume(key, pod.uid(), pod.request());
    let node = match choice {
        Choice::Node(node) => node,
        Choice::AlreadyPlaced => return Ok(()),
        Choice::NoRoom => {
            desk.counts.count_no_room();
            return Err(Unplaced);
        }
    };
    let answer = bind(desk, &pod, &node).await;
    if let Err(kube::Error::Api(status)) = &answer
        && (400..500).contains(&status.code)
    {
        // The server rejected the binding. If the pod is already bound or deleted, the watch reports that, and nothing
        // else is to do.
        desk.counts.count_refused();
        desk.cache().forget(key, pod.uid());
        return Err(Unplaced);
    }
    // Without an answer, the outcome is unknown: the pod may be bound. If not, it is queued again after the deadline.
    match answer {
        Ok(()) => desk.counts.count_bound(),
        Err(_) => desk.counts.count_unanswered(),
    }
    desk.cache().expect_until(key, pod.uid(), Instant::now() + ASSUMED_FOR);
    Ok(())
}

async fn bind(desk: &Desk, pod: &Cached<PodDemand>, node: &str) -> Result<(), kube::Error> {
    let api = Api::<Pod>::namespaced(desk.client.clone(), pod.namespace().unwrap_or_default());
    // With the UID, so that a new pod of the same name is not bound to the old pod's node.
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": pod.name(), "uid": pod.uid().to_string() },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    let _: Status = api.create_subresource("binding", pod.name(), &PostParams::default(), &binding).await?;
    Ok(())
}
