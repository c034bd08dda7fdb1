//! The first of two crates, which opens a group. The second crate is the test, which adds kinds and
//! a version.

use informer_factory::Informer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

/// The kind that opens the group.
#[derive(Informer, Deserialize, Debug)]
#[informer(group = "fleet.example.com", version = "v1", kind = "Ship", namespaced)]
#[informer(index(name = "by_flag", path = "metadata.labels[\"flag\"]"))]
pub struct Ship {
    metadata: ObjectMeta,
}
