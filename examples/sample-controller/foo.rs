//! `Foo`, which stands for a `Deployment` of its own.

use informer_factory::Informer;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What somebody wants: a Deployment with this name and so many replicas.
#[derive(CustomResource, Informer, Deserialize, Serialize, Clone, Debug, JsonSchema)]
#[kube(group = "sample.example.com", version = "v1alpha1", kind = "Foo", namespaced, status = "FooStatus")]
#[informer(index(name = "by_deployment", path = "spec.deployment_name"))]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooSpec {
    pub(crate) deployment_name: String,
    pub(crate) replicas: i32,
}

/// What the controller says of it.
#[derive(Deserialize, Serialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooStatus {
    /// The generation of the `Foo` that this is about.
    pub(crate) observed_generation: i64,
    pub(crate) available_replicas: i32,
    /// Why it is not as wanted, and can't be.
    pub(crate) problem: Option<String>,
}
