//! [`LaggingReplica`]: another API server on the same storage, whose watch cache can lag.

use std::sync::Arc;

use crate::http::Server;
use crate::http::{Listener, Service};
use crate::simulator;
use crate::simulator::Error;
use crate::storage::Revision;

/// Another API server on a simulator's storage, whose watch cache can lag. A clone is another
/// handle to the same server.
///
/// As on a real server, the lag affects the requests that the watch cache answers:
///
/// - Watches receive events late.
/// - A list or get at version `0` returns an older state.
/// - A list or get at a version that the cache has not reached waits for the cache. The request
///   fails if the wait takes more than 3 seconds. The same applies to a streaming list of the
///   newest state.
/// - A list without a version also waits up to 3 seconds. If the cache is still too old, the server
///   then reads the list from the storage, or [refuses] the list.
///
/// Gets without a version, and writes, use the storage at once. Only a `deletecollection` first
/// reads a list, by the rules for lists above.
///
/// The replica has its own [socket](Self::listen) and [in-process service](Self::service). Recorded
/// requests, faults, bookmark settings and `/metrics` are shared with the simulator.
///
/// [refuses]: crate::SimulatorBuilder::refuse_late_lists
///
/// ```
/// use kube_simulator::{Error, Simulator};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::api::{Api, ListParams};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let simulator = Simulator::builder().built_in_kinds().start().await?;
/// let replica = simulator.lagging_replica();
/// replica.hold();
/// let metadata = serde_json::json!({ "namespace": "b", "name": "a" });
/// simulator.create(&serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }))?;
///
/// let config_maps = Api::<ConfigMap>::namespaced(replica.client(), "b");
/// let any = ListParams::default().at("0");
/// assert!(config_maps.list(&any).await?.items.is_empty());
/// assert_eq!(config_maps.list(&ListParams::default()).await?.items.len(), 1);
/// replica.catch_up();
/// assert_eq!(config_maps.list(&any).await?.items.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LaggingReplica {
    server: Arc<Server>,
    revision: Revision,
}

impl LaggingReplica {
    pub(crate) fn of(server: &Arc<Server>) -> Self {
        Self { server: Arc::clone(server), revision: server.api.revision.of_replica() }
    }

    /// Sets the lag of the watch cache behind the newest write, in revisions. A smaller lag takes
    /// effect at once. For a larger lag, the cache keeps its state until new writes have increased
    /// the lag to `revisions`.
    pub fn lag(&self, revisions: u64) {
        self.revision.set_lag(revisions);
    }

    /// Stops the watch cache at its current resource version until the next call of
    /// [`catch_up`](Self::catch_up), [`lag`](Self::lag) or
    /// [`hold_replicas`](crate::Simulator::hold_replicas). If the test restores a backup with an
    /// older version, the cache stops at that version.
    ///
    /// Exception: to list a resource at the cache's version, the simulator needs all later events
    /// of the resource. If its history no longer has all of them, a list returns a later state of
    /// the resource: the oldest state that the history covers.
    /// [`delete_corrupt`](crate::ObjectStore::delete_corrupt) clears the history of one resource.
    /// [`restart_without_history`](crate::Simulator::restart_without_history),
    /// [`restore`](crate::Simulator::restore) and
    /// [`restore_ahead`](crate::Simulator::restore_ahead) clear the history of all resources.
    pub fn hold(&self) {
        self.lag(u64::MAX);
    }

    /// Removes the lag, so that the watch cache receives each write at once.
    pub fn catch_up(&self) {
        self.lag(0);
    }

    /// Returns the resource version that the watch cache has reached.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.revision.current()
    }

    /// Returns the API as a tower service, for clients in this process that need no socket.
    #[must_use]
    pub fn service(&self) -> Service {
        Service::of_replica(Arc::clone(&self.server), self.revision.clone())
    }

    /// Creates a client in this process that needs no socket. Must be called within a tokio
    /// runtime.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Serves the API on a free loopback port, in addition to the in-process service, until the
    /// simulator stops. Returns a configuration for clients of that port.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if no port can be bound.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no task and no open port.
    pub async fn listen(&self) -> Result<kube::Config, Error> {
        let listener = Listener::start(self.service()).await.map_err(Error::Listen)?;
        Ok(simulator::config_for(&self.server, listener.address))
    }
}
