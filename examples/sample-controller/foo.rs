//! `Foo`, a custom resource with its own `Deployment`.

use informer_factory::Informer;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of a `Foo`: a Deployment with this name and this number of replicas.
#[derive(CustomResource, Informer, Deserialize, Serialize, Clone, Debug, JsonSchema)]
#[kube(group = "sample.example.com", version = "v1alpha1", kind = "Foo", namespaced, status = "FooStatus")]
#[informer(index(name = "by_deployment", path = "spec.deployment_name"))]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooSpec {
    pub(crate) deployment_name: String,
    pub(crate) replicas: i32,
}

/// The state of a `Foo` that the controller reports.
#[derive(Deserialize, Serialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooStatus {
    /// The generation of the `Foo` that this status describes.
    pub(crate) observed_generation: i64,
    pub(crate) available_replicas: i32,
    /// The reason why the desired state of the `Foo` cannot be reached; `None` without a problem.
    pub(crate) problem: Option<String>,
}
