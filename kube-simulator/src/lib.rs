//! A Kubernetes API server for tests of controllers and clients. It serves HTTP/1.1 and HTTP/2 and
//! keeps its objects in memory.
//!
//! A [`Simulator`] does not play back recorded answers. It has storage with a history, resource
//! versions, paged lists, watches that begin at an earlier version, bookmarks, selectors, conflicts
//! and expired resource versions. It also has discovery, custom resource definitions, tables, all
//! kinds of patches with server-side apply, owner references and finalizers. It serves JSON, YAML,
//! protobuf and, with the feature `cbor`, CBOR.
//!
//! `kubectl` and client-go's informers work with it unchanged. The
//! [differences from a real server](#differences-from-a-real-server) are listed below. A test can
//! also [inject faults](#faults).
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
//! // From here on, clients use it like any other API server.
//! let config_maps: Api<ConfigMap> = Api::namespaced(simulator.client()?, "payments");
//! assert_eq!(config_maps.list(&ListParams::default()).await?.items.len(), 1);
//!
//! // In addition, a test can examine the requests of its clients.
//! assert_eq!(simulator.request_count(&RequestFilter::verb(Verb::List)), 1);
//! simulator.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # A whole cluster
//!
//! [`Simulator::populate`] fills the simulator with nodes, workloads and pods that look like those
//! of a real cluster, and [`Cluster::churn`] keeps the nodes and pods changing. A seed determines
//! both.
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
//! # Faults
//!
//! - Requests: [`fail_next`](Simulator::fail_next) and [`fail_while`](Simulator::fail_while) take a
//!   [`Fault`]. A fault is a [`CannedResponse`], no answer, a stall until a [`Gate`] is released,
//!   or a body that ends, aborts or stalls after any number of bytes. Credentials:
//!   [`expire_tokens`](Simulator::expire_tokens).
//! - Watches: [`inject`](Simulator::inject) sends bytes or errors into open streams, or ends the
//!   streams. [`lose_bookmarks`](Simulator::lose_bookmarks) drops bookmarks.
//! - History: [`compact`](Simulator::compact), and [`restart`](Simulator::restart) with or
//!   [without](Simulator::restart_without_history) the history. [`restore`](Simulator::restore)
//!   returns to the objects and the resource versions of a backup.
//!   [`restore_ahead`](Simulator::restore_ahead) restores the objects too, but the next resource
//!   versions are higher than all earlier versions.
//! - Server states: a [shutdown](Simulator::begin_shutdown), [drained
//!   connections](Simulator::drain_connections) (`GOAWAY` in HTTP/2), an
//!   [unready](Simulator::set_watch_cache_ready) watch cache, an
//!   [unreadable](ObjectStore::delete_corrupt) object.
//! - A second API server that lags: [`lagging_replica`](Simulator::lagging_replica).
//! - A random but reproducible sequence of most of these: [`FaultPlan`].
//!
//! # Connections
//!
//! The port accepts HTTP/1.1, and HTTP/2 with prior knowledge. With the feature `tls`, the port can
//! use TLS (`SimulatorBuilder::tls`); kubectl and client-go then speak HTTP/2. Both read their
//! configuration from a file with the content of [`Simulator::kubeconfig`]. kube's client speaks
//! HTTP/1.1 only.
//!
//! # Time
//!
//! All clocks are tokio's, including the clock for dates in objects
//! ([`SimulatorBuilder::start_date`]). Only the objects of a [`Cluster`] have dates from another
//! clock, which the cluster advances. A test that pauses time should
//! [start in process](SimulatorBuilder::start_in_process) and use [`Simulator::service`], which
//! needs no socket. With a socket, paused time advances while bytes are in transit.
//!
//! # Custom resources
//!
//! The builder adds a resource ([`SimulatorBuilder::resource_of`]), or a client creates a
//! `CustomResourceDefinition`, as the installation of an operator does. Discovery then includes the
//! resource. Objects are pruned, defaulted and validated with the schema. When the definition is
//! deleted, all objects of the resource are deleted, and the watches of the resource end.
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
//! # Differences from a real server
//!
//! - **Controllers.** The simulator does the work of the garbage collector and the namespace
//!   controller, before it answers the client. It simulates no other controllers of
//!   `kube-controller-manager`: a Deployment creates no pods. An object whose owner never existed
//!   remains. To disable both controllers: [`SimulatorBuilder::without_controllers`].
//! - **Kubelets.** A deleted pod without finalizers is removed at once, whatever its grace period.
//!   To make deleted pods wait for a kubelet: [`SimulatorBuilder::graceful_pod_deletion`].
//! - **Namespaces** need not exist. To require them: [`SimulatorBuilder::require_namespaces`]. The
//!   content of a namespace that is being deleted is treated as on a real server. As there, clients
//!   cannot delete the namespaces `default`, `kube-public` and `kube-system`.
//! - **Built-in kinds** have no schemas. Their objects are not validated or defaulted, and unknown
//!   fields are kept. Exceptions: the metadata is validated. Custom resource definitions are
//!   validated and get defaults. The `stringData` of a Secret is moved to `data`. The initial
//!   status, the selector of a Job, the finalizer and the name label of a namespace, and the
//!   defaults of `replicas` and of the `type` of a Secret are set. The limits and builder settings
//!   on this page apply, too. Each kind has one version, except for the autoscaler
//!   (`autoscaling/v1` and `v2`). `v1` and `events.k8s.io` Events are two resources.
//! - **Custom resources.** These parts of schemas are not checked: CEL rules, `pattern`, `format`,
//!   `oneOf` and similar keywords, `multipleOf`, `uniqueItems`, the number of properties, and
//!   exclusive bounds. The only supported conversion strategy between versions is `None`. A
//!   selectable field of one version is selectable in all versions. A changed schema prunes and
//!   completes a stored object only at the next write of this object. Two definitions in one group
//!   can use the same kind or short name.
//! - **Warnings.** The answer to a create, update or patch of a custom resource has a `Warning`
//!   header if the schema has an unchecked rule for a field of the object, with few exceptions. The
//!   header names the rule and up to three fields. A warning is also sent for a workload (other
//!   than a `ReplicationController`) that a real server refuses because it has no containers, or
//!   because its selector is missing, is empty or does not match its template. Other built-in kinds
//!   cause no warning.
//! - **Server-side apply** tracks the owners of leaves (such as scalars and atomic lists) and of
//!   elements of sets and keyed lists. The only key field with a default value is `protocol`. An
//!   object without `managedFields` has no owners, for example an object that a test stores itself.
//!   As on a real server, the first apply to such an object makes `before-first-apply` its owner,
//!   so an apply that changes values must be forced.
//! - **Encodings.** Objects are encoded in JSON and YAML. Built-in kinds also have protobuf. CBOR
//!   must be enabled in the builder (`SimulatorBuilder::serve_cbor`), and requires the feature
//!   `cbor`. Other documents, such as discovery, exist in JSON only, except `/openapi/v2`, which
//!   also has protobuf. Because built-in kinds have no schemas, a stored field can have a wrong
//!   type; protobuf omits such fields, and a warning is logged. A watch over a WebSocket needs a
//!   socket and the feature `websocket`; otherwise the answer is an ordinary watch.
//! - **History.** By default, a list at an exact version (`resourceVersionMatch=Exact`) can go back
//!   at most 102,400 events of the resource, even if no compaction has removed older events. A
//!   [compaction](Simulator::compact) on request also clears the watch cache's history.
//! - **Bookmarks** are sent even if nothing was written since the last bookmark, so two bookmarks
//!   can have the same resource version. In a real cluster, there are always other writes between
//!   two bookmarks, such as those to Leases.
//! - **Slow watches** are closed at a lag of more than 10,000 events. By contrast, a real server
//!   waits for a slow client, and closes the watch after a too long wait. If a test writes at full
//!   speed, clients cannot keep up, so the simulator applies the real server's rule only on request
//!   ([`close_slow_watches_in_time`](SimulatorBuilder::close_slow_watches_in_time)). If a client
//!   stops reading, the simulator closes the watch, and counts it in `/metrics`, only when the
//!   client reads again. A real server does not close watches of Event objects, which have no watch
//!   cache.
//! - **Feature gates** in alpha are off, except for those that the [builder](SimulatorBuilder)
//!   enables. For example, the list option `shardSelector` is ignored.
//! - **Paths.** `/metrics` contains only `apiserver_terminated_watchers_total`, and paths that
//!   begin with `/api/v1/watch` do not exist.
//! - **Limits** are those of a real server: 3 MiB per request, 10,000 operations and 3 MiB of
//!   copies per JSON patch, 256 KiB of annotations, 128 bytes for a field manager, 1.5 MiB per
//!   object in etcd, 32 seconds for the head of a request and 60 for its body. The simulator adds a
//!   maximum depth of 100 levels for objects, and of 64 levels for YAML. It also limits the errors,
//!   conflicts and warnings in one answer to a few hundred kilobytes.
//! - **Rights.** Every request is authorized. There is no admission beyond the rules on this page.
//! - **`OpenAPI`** has the complete schemas of custom resources, except for the metadata, which is
//!   simplified. For built-in kinds it has the names and types of fields, but no lists of required
//!   fields, and descriptions only of `apiVersion`, `kind` and `metadata`. `/openapi/v2` is empty.
//! - **The `kubernetes` service** and its endpoints, which contain the loopback address, are
//!   created only with [`SimulatorBuilder::require_namespaces`].

mod api;
mod fault;
mod http;
mod kinds;
#[cfg(doctest)]
mod readme;
mod simulator;
mod storage;

pub use fault::{
    CannedResponse, Fault, FaultGuard, FaultPlan, FaultPlanOptions, Gate, PlannedFault, ServerFault,
    ShutdownAnswer, WatchInjection,
};
pub use http::{RecordedRequest, RequestFilter, ResponseBody, Service, StreamingLists, Verb};
pub use kinds::ResourceKind;
pub use simulator::{
    Change, Churn, Cluster, ClusterSpec, Error, LaggingReplica, ObjectStore, Simulator, SimulatorBuilder,
    StoredObject,
};
pub use storage::Backup;
