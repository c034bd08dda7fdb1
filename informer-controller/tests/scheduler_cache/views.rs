//! Views of pods and nodes with the fields that a scheduler needs; the decoder skips all others.

use informer_factory::Informer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::quantity;
use crate::resources::Resources;

/// A view of a pod with only its resource requests, scheduler and node.
#[derive(Informer, Deserialize, Clone, Debug)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
#[informer(prune("metadata.annotations"))]
pub(crate) struct PodDemand {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: Demand,
}

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Demand {
    pub(crate) node_name: Option<String>,
    pub(crate) scheduler_name: Option<String>,
    containers: Vec<Container>,
    #[serde(default)]
    init_containers: Vec<Container>,
    #[serde(default)]
    overhead: Amounts,
}

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
struct Container {
    #[serde(default)]
    resources: Requirements,
    restart_policy: Option<String>,
}

#[derive(Deserialize, Clone, Debug, Default)]
struct Requirements {
    #[serde(default)]
    requests: Amounts,
}

#[derive(Deserialize, Clone, Debug, Default)]
struct Amounts {
    #[serde(default, deserialize_with = "quantity::millis")]
    cpu: u128,
    #[serde(default, deserialize_with = "quantity::units")]
    memory: u128,
    #[serde(default, deserialize_with = "quantity::units")]
    pods: u128,
}

/// A view of a node with only the resources that the node offers to pods.
#[derive(Informer, Deserialize, Clone, Debug)]
#[informer(group = "", version = "v1", kind = "Node", cluster)]
#[informer(prune("metadata.annotations"))]
pub(crate) struct NodeRoom {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    status: Room,
}

#[derive(Deserialize, Clone, Debug, Default)]
struct Room {
    #[serde(default)]
    allocatable: Amounts,
}

impl PodDemand {
    /// Returns whether the pod waits for the scheduler of this name.
    pub(crate) fn waits_for(&self, scheduler: &str) -> bool {
        self.spec.node_name.is_none()
            && self.spec.scheduler_name.as_deref() == Some(scheduler)
            && self.metadata.deletion_timestamp.is_none()
    }

    /// Returns the resources that the pod needs on a node. Init containers run one after the other,
    /// before the main containers and beside the sidecars that have already started.
    /// kube-scheduler: `PodRequests` of `component-helpers/resource`, without pod-level resources
    /// and resizes in progress.
    pub(crate) fn request(&self) -> Resources {
        let (mut running, mut most) = (Resources::default(), Resources::default());
        for container in &self.spec.init_containers {
            let needs = container.resources.requests.resources();
            most = most.max(running + needs);
            if container.restart_policy.as_deref() == Some("Always") {
                running += needs;
            }
        }
        for container in &self.spec.containers {
            running += container.resources.requests.resources();
        }
        most.max(running) + self.spec.overhead.resources() + Resources::ONE_POD
    }
}

impl NodeRoom {
    /// Returns the resources that the node offers to pods.
    pub(crate) fn allocatable(&self) -> Resources {
        self.status.allocatable.resources()
    }
}

impl Amounts {
    fn resources(&self) -> Resources {
        Resources { cpu: self.cpu, memory: self.memory, pods: self.pods }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_needs_the_maximum_of_containers_and_init_containers() {
        let pod: PodDemand = serde_json::from_value(serde_json::json!({
            "metadata": { "name": "a" },
            "spec": {
                "initContainers": [
                    { "resources": { "requests": { "cpu": "300m" } } },
                    { "resources": { "requests": { "cpu": "100m" } }, "restartPolicy": "Always" },
                    { "resources": { "requests": { "memory": "1Gi" } } },
                ],
                "containers": [{ "resources": { "requests": { "cpu": "150m", "memory": "64Mi" } } }, {}],
                "overhead": { "cpu": "10m" },
            },
        }))
        .expect("a pod");
        assert_eq!(pod.request(), Resources { cpu: 310, memory: 1 << 30, pods: 1 });
    }
}
