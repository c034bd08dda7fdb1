//! A view of pods with only labels, address and readiness.

use informer_factory::Informer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

#[derive(Informer, Deserialize, Clone, Debug)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
#[informer(prune("metadata.annotations"))]
pub(crate) struct PodEndpoint {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize, Clone, Debug)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl PodEndpoint {
    /// Returns the pod's address if the pod is ready.
    pub(crate) fn ready_address(&self) -> Option<&str> {
        let is_ready = |condition: &Condition| condition.kind == "Ready" && condition.status == "True";
        let is_ready =
            self.metadata.deletion_timestamp.is_none() && self.status.conditions.iter().any(is_ready);
        self.status.pod_ip.as_deref().filter(|_| is_ready)
    }
}
