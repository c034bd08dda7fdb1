//! An API server to test controllers with: it speaks Kubernetes over real HTTP/1.1 and HTTP/2, and keeps its objects in
//! memory.
//!
//! A [`Simulator`] is not a mock that plays back what a test recorded. It has storage with a history, resource
//! versions, lists in pages, watches that replay, bookmarks, selectors, conflicts and expired resource versions;
//! discovery, custom resource definitions, tables, all kinds of patches with server-side apply, owner references and
//! finalizers; and speaks JSON, YAML, protobuf and CBOR. `kubectl` and informers of client-go work on it unchanged. What it
//! does not check is [below](#what-is-different-from-a-real-server). On top of that a test can make it misbehave; see
//! [there](#trouble).
//!
//! ```
//! use kube_simulator::{RequestFilter, Simulator, Verb};
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
//! # use kube_simulator::{ClusterSpec, Error, Simulator};
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
//! # Trouble
//!
//! - Requests: [`fail_next`](Simulator::fail_next) and [`fail_while`](Simulator::fail_while) take a [`Fault`], which is a
//!   [`CannedResponse`], silence, a stall until a [`Gate`] is released, or a body that ends, breaks off or stalls after any
//!   number of bytes. Credentials: [`expire_tokens`](Simulator::expire_tokens).
//! - Watches: [`inject`](Simulator::inject) puts bytes, errors and endings into open streams, and
//!   [`lose_bookmarks`](Simulator::lose_bookmarks) keeps bookmarks from coming.
//! - History: [`compact`](Simulator::compact), [`restart`](Simulator::restart) with or
//!   [without](Simulator::restart_without_history) it, and backups, [restored](Simulator::restore) so that resource
//!   versions go back, or [moved ahead](Simulator::restore_ahead).
//! - A server that is [shutting down](Simulator::begin_shutdown), or has its clients
//!   [leave their connections](Simulator::drain_connections), as HTTP/2 does with a `GOAWAY`; a watch cache that is
//!   [not filled yet](Simulator::set_watch_cache_ready), an object that [can't be read](ObjectStore::delete_corrupt).
//! - A second API server that is late: [`lagging_replica`](Simulator::lagging_replica).
//! - All of this at random, the same each time: [`FaultPlan`].
//!
//! # Connections
//!
//! The port takes HTTP/1.1, and HTTP/2 of clients that begin with it. With the feature `tls` it can be secured
//! (`SimulatorBuilder::tls`), which has kubectl and client-go speak HTTP/2; [`Simulator::kubeconfig`] is how they get in.
//! kube's own client speaks HTTP/1.1 only.
//!
//! # Time
//!
//! All clocks are tokio's, also the one from which objects get their dates ([`SimulatorBuilder::begins_on`]). A test that
//! pauses them should [start in process](SimulatorBuilder::start_in_process) and talk to [`Simulator::service`], which
//! needs no socket; with a socket, paused time runs ahead while bytes are under way.
//!
//! # Custom resources
//!
//! A resource is served because the builder says so ([`SimulatorBuilder::resource_of`]), or because somebody creates a
//! `CustomResourceDefinition`, as an operator's installation does. Then discovery follows, objects are pruned, get
//! their defaults and are checked against the schema, and with the definition they are deleted and their watches end.
//!
//! ```
//! use kube_simulator::Simulator;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let simulator = Simulator::builder().built_in_kinds().start().await?;
//! let schema = json!({ "type": "object", "properties": { "spec": {
//!     "type": "object",
//!     "properties": { "size": { "type": "integer", "default": 3 } },
//! } } });
//! simulator.create(&json!({
//!     "apiVersion": "apiextensions.k8s.io/v1",
//!     "kind": "CustomResourceDefinition",
//!     "metadata": { "name": "caches.example.com" },
//!     "spec": {
//!         "group": "example.com",
//!         "scope": "Namespaced",
//!         "names": { "plural": "caches", "kind": "Cache" },
//!         "versions": [{
//!             "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
//!         }],
//!     },
//! }))?;
//! let cache = json!({ "metadata": { "name": "a" }, "spec": {} }).to_string().into_bytes();
//! let request = http::Request::post("/apis/example.com/v1/namespaces/default/caches").body(cache)?;
//! let created: serde_json::Value = simulator.client()?.request(request).await?;
//! assert_eq!(created["spec"]["size"], 3);
//! # Ok(())
//! # }
//! ```
//!
//! # What is different from a real server
//!
//! - **Controllers.** The simulator does what the garbage collector and the namespace controller do, before the client
//!   has its answer, and nothing of what others do: a Deployment makes no pods. An object whose owner has never
//!   existed stays. Without these two: [`SimulatorBuilder::without_controllers`].
//! - **Kubelets.** A deleted pod is gone at once, whatever its grace period:
//!   [`SimulatorBuilder::graceful_pod_deletion`].
//! - **Namespaces** need not exist: [`SimulatorBuilder::require_namespaces`]. The content of one that is being deleted
//!   is as on a real server.
//! - **Built-in kinds** have no schemas: their objects are neither checked nor given defaults, but for what is said here
//!   (replicas, the plain text of Secrets, the first status, the selector of a Job), and their unknown fields are kept. Each
//!   has one version, but for the autoscaler (`autoscaling/v1` and `v2`). `v1` and `events.k8s.io` Events are two resources.
//! - **Custom resources**: CEL rules, `pattern`, `format`, `oneOf` and its kin, `multipleOf`, `uniqueItems`, the number of
//!   properties and exclusive bounds of schemas are not looked at; the only conversion between versions is `None`; fields
//!   that any version lets be selected can be selected in all.
//! - **Warnings.** A write to which such a rule applies is answered with a `Warning` header that names the rule and the
//!   fields; so is a workload that a real server refuses, because it has no containers or its selector does not match its
//!   template. Other built-in kinds, of which none is checked, bring no warning.
//! - **Server-side apply** keeps account of leaves and of the elements of keyed lists. Which built-in lists have keys
//!   follows from the field's name, for the lists that people patch; the same goes for strategic merge patches.
//! - **Encodings.** Objects are sent and taken in JSON and YAML, of the stable versions of built-in kinds also in protobuf,
//!   but for `apiextensions.k8s.io` and `certificates.k8s.io`; and in CBOR if the [builder](SimulatorBuilder::serve_cbor)
//!   says so. What is no object, such as discovery, is there in JSON only. As built-in kinds have no schemas, one can be
//!   stored that is none: what of it is not of its field's type is left out of protobuf, with a warning in the log.
//!   A watch over a WebSocket needs the socket; there is none in process.
//! - **History.** Of each resource at most the last 102,400 events are kept for exact lists of the past, however soon that is
//!   after the last compaction; and what is [compacted](Simulator::compact) on demand is forgotten by the watch cache, too.
//! - **Bookmarks** come also where nothing has been written at all. A real server has something new to tell by then.
//! - **Slow watches** are closed when they are 10,000 events behind, so that a test may write as fast as it likes;
//!   [`close_slow_watches_in_time`](SimulatorBuilder::close_slow_watches_in_time) has them closed as a real server does. A
//!   watch whose client takes nothing at all is closed, and counted by `/metrics`, when it goes on reading. Those of events,
//!   which have no watch cache, a real server doesn't close.
//! - **Feature gates** of alpha stages are off, but for those that the [builder](SimulatorBuilder) turns on: `shardSelector` is
//!   ignored. `/metrics` has `apiserver_terminated_watchers_total` and nothing else, and there are no paths that begin with
//!   `/api/v1/watch`.
//! - **Limits** are a real server's: 3 MiB per request, 10,000 operations and 3 MiB of copies per JSON patch, 256 KiB of
//!   annotations, 128 bytes for a field manager, 1.5 MiB per object in etcd, 32 seconds for the head of a request and 60 for
//!   its body. Its own is the depth of objects, 100 levels; and an answer lists errors, conflicts and warnings only up to
//!   some hundred kilobytes.
//! - **Rights.** Everyone may do everything. There is no admission but what is said above.
//! - **`OpenAPI`** is there for custom resources in full, for built-in kinds with the names and types of fields, but without
//!   descriptions and without what is required. `/openapi/v2` is empty.
//! - **The `kubernetes` service** and its endpoints, which name the loopback address, come with
//!   [`SimulatorBuilder::require_namespaces`].

mod autoscaling;
mod builder;
mod built_in;
mod catalogue;
mod cbor;
mod clock;
mod cluster;
mod controllers;
mod credentials;
mod custom;
mod discovery;
mod encoding;
mod error;
mod fault;
mod first_objects;
mod indent;
mod lagging_replica;
mod list;
mod naming;
mod numbers;
mod object;
mod openapi;
mod ownership;
mod protobuf;
#[cfg(doctest)]
mod readme;
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
mod watch;
mod writes;

pub use builder::SimulatorBuilder;
pub use cluster::{Change, Churn, Cluster, ClusterSpec};
pub use error::Error;
pub use fault::{
    CannedResponse, Disturbance, Fault, FaultPlan, FaultPlanOptions, Gate, PlannedTrouble, ShutdownAnswer,
    Trouble,
};
pub use lagging_replica::LaggingReplica;
pub use request::{RecordedRequest, RequestFilter, Verb};
pub use resource::ResourceKind;
pub use serve::{ResponseBody, Service};
pub use simulator::Simulator;
pub use storage::Backup;
pub use store::{ObjectStore, StoredObject};
pub use watch::{StreamingLists, WatchInjection};
