//! The scheduling loop: takes a pod, finds a node, and binds the pod to the node.
//!
//! It makes one decision at a time, under the cache's lock, and sends the requests concurrently,
//! without the lock. kube-scheduler: the scheduling cycle and the binding cycle of
//! `pkg/scheduler/schedule_one.go`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use informer_factory::{Cached, ObjectKey};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use kube::core::Status;
use serde_json::json;
use tokio::time::{Instant, interval};

use crate::cache::Choice;
use crate::scheduler::{NAME, Shared};
use crate::views::PodDemand;

/// The time within which the watch must confirm that a pod is bound. Until then, the pod is assumed
/// to be on its node.
const ASSUMED_FOR: Duration = Duration::from_secs(30);

/// The error for a pod that was not bound to a node.
struct NotPlaced;

/// Finds nodes for pods, one after the other.
pub(crate) async fn work(shared: Arc<Shared>) {
    while let Some(item) = shared.queue.get().await {
        match place(&shared, item.key()).await {
            Ok(()) => item.done(),
            Err(NotPlaced) => _ = item.retry(),
        }
    }
}

/// Removes assumed pods whose deadline has passed.
pub(crate) async fn expire(shared: Arc<Shared>) {
    let mut seconds = interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        let expired = shared.cache().expire(Instant::now());
        for key in expired {
            shared.queue.add(key);
        }
    }
}

async fn place(shared: &Shared, key: &ObjectKey) -> Result<(), NotPlaced> {
    // The queued key may be outdated.
    let Some(pod) = shared.pods.get(key).filter(|pod| pod.waits_for(NAME)) else { return Ok(()) };
    let choice = shared.cache().assume(key, pod.uid(), pod.request());
    let node = match choice {
        Choice::Node(node) => node,
        Choice::AlreadyPlaced => return Ok(()),
        Choice::NoRoom => {
            shared.counts.no_room.fetch_add(1, Ordering::Relaxed);
            return Err(NotPlaced);
        }
    };
    let answer = bind(shared, &pod, &node).await;
    if let Err(kube::Error::Api(status)) = &answer
        && (400..500).contains(&status.code)
    {
        // The server rejected the binding. If the pod is already bound or deleted, an event reports
        // that, and the retry does nothing.
        shared.counts.refused.fetch_add(1, Ordering::Relaxed);
        shared.cache().forget(key, pod.uid());
        return Err(NotPlaced);
    }
    // Without a response, the outcome is unknown: the pod may be bound. If it is not, the pod is
    // queued again after the deadline.
    let count = match answer {
        Ok(()) => &shared.counts.bound,
        Err(_) => &shared.counts.unanswered,
    };
    count.fetch_add(1, Ordering::Relaxed);
    shared.cache().expect_until(key, pod.uid(), Instant::now() + ASSUMED_FOR);
    Ok(())
}

async fn bind(shared: &Shared, pod: &Cached<PodDemand>, node: &str) -> Result<(), kube::Error> {
    let api = Api::<Pod>::namespaced(shared.client.clone(), pod.namespace().unwrap_or_default());
    // Because of the UID, the server rejects the binding if the pod was deleted and created again.
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": pod.name(), "uid": pod.uid().to_string() },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    let _: Status = api.create_subresource("binding", pod.name(), &PostParams::default(), &binding).await?;
    Ok(())
}
