//! An API server to test controllers with: it speaks Kubernetes over real HTTP, and keeps its objects in memory.
//!
//! A [`Simulator`] is not a mock that plays back what a test recorded. It has storage with a history, resource
//! versions, lists in pages, watches that replay, bookmarks, selectors, conflicts and expired resource versions, and
//! answers as a real server does, down to the reasons in its refusals. On top of that a test can make it misbehave:
//! [`fail_next`](Simulator::fail_next), [`inject`](Simulator::inject), [`compact`](Simulator::compact).
//!
//! ```
//! use informer_testing::{RequestFilter, Simulator, Verb};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, ListParams};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let simulator = Simulator::builder().built_in_kinds().start().await?;
//! simulator.create(&json!({
//!     "apiVersion": "v1",
//!     "kind": "ConfigMap",
//!     "metadata": { "namespace": "payments", "name": "limits" },
//!     "data": { "perMinute": "60" },
//! }))?;
//!
//! // From here on it is an API server like any other.
//! let config_maps: Api<ConfigMap> = Api::namespaced(simulator.client()?, "payments");
//! assert_eq!(config_maps.list(&ListParams::default()).await?.items.len(), 1);
//!
//! // Except that one can ask it what it was asked.
//! assert_eq!(simulator.request_count(&RequestFilter::verb(Verb::List)), 1);
//! simulator.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # A whole cluster
//!
//! [`Simulator::populate`] fills the simulator with nodes, workloads and pods that look like those of a real cluster,
//! and [`Cluster::churn`] keeps them changing. Both follow from a seed alone.
//!
//! ```
//! # use informer_testing::{ClusterSpec, Error, Simulator};
//! # use std::time::Duration;
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Error> {
//! let simulator = Simulator::builder().built_in_kinds().start().await?;
//! let cluster = simulator.populate(&ClusterSpec { nodes: 3, pods: 20, ..ClusterSpec::default() })?;
//! let one_minute = tokio::time::sleep(Duration::from_secs(60));
//! cluster.churn(2.0).run_until(one_minute).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Without a server
//!
//! [`MemorySource`] takes the API server's place behind the seam: it is a `ListerWatcher` over objects in memory, for
//! unit tests of what an informer feeds. It has no HTTP, no JSON and no tasks.
//!
//! # Time
//!
//! All clocks are tokio's. A test that pauses them should talk to [`Simulator::service`], which needs no socket; with
//! a socket, paused time runs ahead while bytes are under way.
//!
//! # What is different from a real server
//!
//! There are no controllers, no kubelet and no garbage collector: deletes take effect at once unless finalizers hold
//! the object, and dependants stay. Objects are not checked against schemas, namespaces need not exist, everyone may
//! do everything, `managedFields` are kept but not computed, and a strategic merge patch is a plain merge patch.

mod builder;
mod built_in;
mod catalogue;
mod clock;
mod cluster;
mod credentials;
mod custom;
mod discovery;
mod error;
mod fault;
mod lagging_replica;
mod list;
mod memory_source;
mod naming;
mod numbers;
mod object;
mod openapi;
mod ownership;
mod replica;
mod request;
mod resource;
mod schema;
mod selector;
mod serve;
mod server;
mod shape;
mod simulator;
mod status;
mod storage;
mod store;
mod upkeep;
mod watch;
mod writes;

pub use builder::SimulatorBuilder;
pub use cluster::{Change, Churn, Cluster, ClusterSpec};
pub use error::Error;
pub use fault::{
    CannedResponse, Disturbance, Fault, FaultPlan, FaultPlanOptions, Gate, PlannedTrouble, Trouble,
};
pub use lagging_replica::LaggingReplica;
pub use memory_source::MemorySource;
pub use replica::Replica;
pub use request::{RecordedRequest, RequestFilter, Verb};
pub use resource::ResourceKind;
pub use serve::{ResponseBody, Service};
pub use simulator::Simulator;
pub use storage::Backup;
pub use store::{ObjectStore, StoredObject};
pub use watch::{StreamingLists, WatchInjection};
