//! [`Simulator`]: the handle with which a test or a program controls a simulator.

mod builder;
mod cluster;
mod error;
mod faults;
mod lagging_replica;
mod store;

pub use builder::SimulatorBuilder;
pub use cluster::{Change, Churn, Cluster, ClusterSpec};
pub use error::Error;
pub use lagging_replica::LaggingReplica;
pub use store::{ObjectStore, StoredObject};

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::http::Server;
use crate::http::{Listener, Service};
use crate::http::{RecordedRequest, RequestFilter};
use crate::kinds::ResourceKind;

/// A running simulator of an API server.
///
/// Dropping the handle stops the simulator without waiting. [`shutdown`](Self::shutdown) also waits
/// until its connections are closed.
#[derive(Debug)]
pub struct Simulator {
    server: Arc<Server>,
    /// `None` without a socket, and after `shutdown`.
    listener: Option<Listener>,
    address: SocketAddr,
}

impl Simulator {
    /// Returns a builder with the default configuration.
    #[must_use]
    pub fn builder() -> SimulatorBuilder {
        SimulatorBuilder::default()
    }

    pub(crate) fn new(server: Arc<Server>, listener: Option<Listener>) -> Self {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let address = listener.as_ref().map_or(nowhere, |listener| listener.address);
        Self { server, listener, address }
    }

    /// Stops the server: ends all watches, completes the requests in flight, and waits until its
    /// socket and all connections to the socket are closed. After 2 seconds, connections are closed
    /// even if they are still in use, for example because a client does not read its last response.
    ///
    /// Also stops all [lagging replicas](Self::lagging_replica), but does not wait for their
    /// connections.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends only the wait; the simulator still stops.
    pub async fn shutdown(mut self) {
        self.server.api.stop.cancel();
        if let Some(listener) = self.listener.take() {
            listener.stopped().await;
        }
    }
}

/// Methods that give clients access to the simulator.
impl Simulator {
    /// Returns the URL of the API, such as `http://127.0.0.1:40123`; `https` if the port uses
    /// TLS.
    #[must_use]
    pub fn url(&self) -> String {
        url(&self.server, self.address)
    }

    /// Returns the configuration of a client that uses the simulator's socket.
    ///
    /// The retries of kube's client are disabled, because they would hide the server's answers from
    /// a test.
    #[must_use]
    pub fn kube_config(&self) -> kube::Config {
        config_for(&self.server, self.address)
    }

    /// Returns the content of a kubeconfig file for other programs, such as kubectl.
    ///
    /// The file contains one cluster, one context, and the trusted certificate if the port uses
    /// TLS. The token is `simulator`, which the server accepts unless the test
    /// [requires](Self::require_token) another token or [expires](Self::expire_tokens) all tokens.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let mut cluster = json!({ "server": self.url() });
        if let Some(tls) = &self.server.tls {
            cluster["certificate-authority-data"] = BASE64_STANDARD.encode(tls.pem()).into();
        }
        let name = "simulator";
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": name, "cluster": cluster }],
            // Without credentials, kubectl prompts its user if the port uses TLS.
            "users": [{ "name": name, "user": { "token": name } }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
            "current-context": name,
        });
        // JSON is valid YAML.
        kubeconfig.to_string()
    }

    /// Creates a client that uses the simulator's socket or, without a socket, calls the
    /// simulator's [service](Self::service) in process. The client's default namespace is
    /// `default`.
    ///
    /// # Errors
    ///
    /// [`Error::Client`] if kube cannot build a client.
    pub fn client(&self) -> Result<kube::Client, Error> {
        match self.address.port() {
            0 => Ok(kube::Client::new(self.service(), "default")),
            _ => kube::Client::try_from(self.kube_config()).map_err(Error::Client),
        }
    }

    /// Returns the API as a tower service, for clients in this process that need no socket.
    #[must_use]
    pub fn service(&self) -> Service {
        Service::new(self.server.clone())
    }
}

/// Methods for direct access to the storage, without HTTP and its checks.
impl Simulator {
    /// Serves one more kind of resource from now on. A resource that is already served does not
    /// change.
    pub fn register(&self, kind: ResourceKind) {
        self.server.api.register(kind);
    }

    /// Returns the store of a kind, which reads and writes objects without HTTP. The arguments have
    /// the form of the fields in objects, such as `apps/v1` and `Deployment`.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownResource`] if the simulator does not serve the kind.
    pub fn objects(&self, api_version: &str, kind: &str) -> Result<ObjectStore, Error> {
        ObjectStore::find(&self.server, api_version, kind)
    }

    /// Returns the store of a Rust type's kind, which reads and writes objects without HTTP.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownResource`] if the simulator does not serve the kind.
    pub fn objects_of<K: kube::Resource<DynamicType = ()>>(&self) -> Result<ObjectStore, Error> {
        self.objects(&K::api_version(&()), &K::kind(&()))
    }

    /// Creates an object as given, including its status; see [`ObjectStore::create`].
    ///
    /// # Errors
    ///
    /// - [`Error::UnknownResource`] if the kind of the object is not served
    /// - [`Error::Refused`] if the object exists, has no valid name or is not a JSON object
    /// - [`Error::Conversion`] if the object cannot be serialized
    pub fn create(&self, object: &impl Serialize) -> Result<StoredObject, Error> {
        let (store, body) = ObjectStore::of_object(&self.server, object)?;
        store.create_body(body)
    }

    /// Replaces an object as given; see [`ObjectStore::update`].
    ///
    /// # Errors
    ///
    /// - [`Error::UnknownResource`] if the kind of the object is not served
    /// - [`Error::Refused`] if there is no such object, if the given `resourceVersion` (except `0`)
    ///   or UID differs from that of the stored object, or if the given object is not a JSON object
    /// - [`Error::Conversion`] if the given object cannot be serialized
    pub fn update(&self, object: &impl Serialize) -> Result<StoredObject, Error> {
        let (store, body) = ObjectStore::of_object(&self.server, object)?;
        store.update_body(body)
    }

    /// Creates or replaces an object as given, and ignores its `resourceVersion`.
    ///
    /// # Errors
    ///
    /// - [`Error::UnknownResource`] if the kind of the object is not served
    /// - [`Error::Refused`] if the object has no valid name, has another UID than the stored
    ///   object, or is not a JSON object
    /// - [`Error::Conversion`] if the object cannot be serialized
    pub fn apply(&self, object: &impl Serialize) -> Result<StoredObject, Error> {
        let (store, body) = ObjectStore::of_object(&self.server, object)?;
        store.apply_body(body)
    }

    /// Deletes the object with this key (`namespace/name`, or only the name for a cluster-scoped
    /// object). An object with finalizers only gets a deletion timestamp, as on a real server.
    /// Returns the removed object, or the object with its deletion timestamp.
    ///
    /// # Errors
    ///
    /// - [`Error::UnknownResource`] if the kind is not served
    /// - [`Error::Refused`] if there is no such object
    pub fn delete<K: kube::Resource<DynamicType = ()>>(&self, key: &str) -> Result<StoredObject, Error> {
        self.objects_of::<K>()?.delete(key)
    }

    /// Returns the object with this key (`namespace/name`, or only the name for a cluster-scoped
    /// object).
    ///
    /// # Errors
    ///
    /// - [`Error::UnknownResource`] if the kind is not served
    /// - [`Error::Refused`] if there is no such object
    /// - [`Error::Conversion`] if the stored object cannot be decoded as a `K`
    pub fn get<K>(&self, key: &str) -> Result<K, Error>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.objects_of::<K>()?.get(key)?.parse()
    }

    /// Lists all objects of a kind in key order.
    ///
    /// # Errors
    ///
    /// - [`Error::UnknownResource`] if the kind is not served
    /// - [`Error::Conversion`] if a stored object cannot be decoded as a `K`
    pub fn list_all<K>(&self) -> Result<Vec<K>, Error>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.objects_of::<K>()?.list().iter().map(StoredObject::parse).collect()
    }
}

/// A method that reads the server's current resource version.
impl Simulator {
    /// Returns the newest resource version, over all resources.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.server.api.revision.current()
    }
}

/// Methods that examine the requests and watches of clients.
impl Simulator {
    /// Returns the matching requests, oldest first. Only the latest 10,000 requests are recorded.
    #[must_use]
    pub fn requests(&self, filter: &RequestFilter) -> Vec<RecordedRequest> {
        self.server.requests.matching(filter)
    }

    /// Counts the matching requests among the latest 10,000.
    #[must_use]
    pub fn request_count(&self, filter: &RequestFilter) -> usize {
        self.server.requests.count(filter)
    }

    /// Removes all recorded requests.
    pub fn clear_requests(&self) {
        self.server.requests.clear();
    }

    /// Waits until this many matching requests are recorded, including requests from before the
    /// call. Only the latest 10,000 requests are recorded, so a larger `count` is never reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn wait_for_requests(&self, filter: &RequestFilter, count: usize) {
        self.server.requests.wait_for(filter, count).await;
    }

    /// Counts the open watch streams whose requests match the filter.
    #[must_use]
    pub fn open_watches(&self, filter: &RequestFilter) -> usize {
        self.server.watches.count(filter)
    }

    /// Waits until exactly this many matching watch streams are open.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn wait_for_watches(&self, filter: &RequestFilter, count: usize) {
        self.server.watches.wait_for(filter, count).await;
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.server.api.stop.cancel();
    }
}

fn url(server: &Server, address: SocketAddr) -> String {
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}

pub(crate) fn config_for(server: &Server, address: SocketAddr) -> kube::Config {
    // A socket address always gives a valid URI, so the default is never used.
    let mut config = kube::Config::new(url(server, address).parse().unwrap_or_default());
    config.default_retry = false;
    config.root_cert = server.tls.as_ref().map(|tls| vec![tls.der().to_vec()]);
    config
}
