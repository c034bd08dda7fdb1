//! [`LaggingReplica`]: another API server in front of the same storage, whose watch cache is late.

use std::sync::Arc;

use crate::error::Error;
use crate::serve::{Listener, Service};
use crate::server::Server;
use crate::simulator;
use crate::storage::Revision;

/// Another API server in front of a simulator's storage, whose watch cache can be late. Clones are the same server.
///
/// As with a real one, what is late is what comes from its memory: watches, lists and gets with a resource version. A
/// list from `0` shows an older state, one from a version that it has not heard of is refused after 3 seconds, and so
/// is a streaming list of the newest state. A list without a version waits as long for the memory, and is then taken from
/// the storage, or [refused](crate::SimulatorBuilder::refuse_late_lists). Gets without a version, and writes, go to the storage
/// at once. It is reached through its own address or service; the requests that come there are recorded with the others, and
/// faults, bookmark rules and what `/metrics` counts are the simulator's.
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
        Self { server: Arc::clone(server), revision: server.add_replica() }
    }

    /// Stays so many revisions behind the newest write from now on. It never forgets what it has seen, so to fall back
    /// takes as many writes.
    pub fn lag(&self, revisions: u64) {
        self.revision.fall_behind(revisions);
    }

    /// Learns of nothing new from now on.
    pub fn hold(&self) {
        self.lag(u64::MAX);
    }

    /// Learns of everything, and of each write at once from now on.
    pub fn catch_up(&self) {
        self.lag(0);
    }

    /// Returns the resource version that its memory has come to.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.revision.current()
    }

    /// Returns its API as a tower service, for clients in this process that need no socket.
    #[must_use]
    pub fn service(&self) -> Service {
        Service::of_replica(Arc::clone(&self.server), self.revision.clone())
    }

    /// Makes a client in this process that needs no socket. It must be called within a tokio runtime.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Serves its API on a free loopback port too, until the simulator stops, and gives a configuration for clients.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if no port can be bound.
    ///
    /// # Cancel safety
    ///
    /// A dropped call leaves nothing behind.
    pub async fn listen(&self) -> Result<kube::Config, Error> {
        let listener = Listener::start(self.service()).await.map_err(Error::Listen)?;
        Ok(simulator::config_for(&self.server, listener.address))
    }
}
