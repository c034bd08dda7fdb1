//! Configuring and starting a simulator.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::built_in;
use crate::error::Error;
use crate::resource::ResourceKind;
use crate::serve::{Listener, Service};
use crate::server::{Server, Settings};
use crate::simulator::Simulator;
use crate::watch::{StreamingLists, WatchRules};

/// Configures a [`Simulator`].
#[derive(Clone, Debug)]
pub struct SimulatorBuilder {
    kinds: Vec<ResourceKind>,
    settings: Settings,
}

impl Default for SimulatorBuilder {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            settings: Settings {
                history_limit: 20_000,
                first_revision: 1_000,
                watch_rules: WatchRules {
                    patience: 10_000,
                    streaming_lists: StreamingLists::default(),
                },
                bookmark_interval: Duration::from_secs(60),
                seed: 0,
                begins_on: SystemTime::now(),
            },
        }
    }
}

impl SimulatorBuilder {
    /// Serves the common built-in kinds: pods, nodes, services, deployments, jobs, leases and some thirty more.
    #[must_use]
    pub fn built_in_kinds(mut self) -> Self {
        self.kinds.extend(built_in::kinds());
        self
    }

    /// Serves one more kind of resource. The first description of a resource counts.
    #[must_use]
    pub fn resource(mut self, kind: ResourceKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Serves the resource behind a Rust type; see [`ResourceKind::of`].
    #[must_use]
    pub fn resource_of<K>(self) -> Self
    where
        K: kube::Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.resource(ResourceKind::of::<K>())
    }

    /// Sets how many events each resource keeps for watches and lists of the past. Default: 20,000; at least 1.
    #[must_use]
    pub fn history_limit(mut self, events: usize) -> Self {
        self.settings.history_limit = events.max(1);
        self
    }

    /// Sets how far, in events, a watch may fall behind before it is closed without a word. Default: 10,000.
    #[must_use]
    pub fn watch_buffer(mut self, events: usize) -> Self {
        self.settings.watch_rules.patience = events.max(1);
        self
    }

    /// Sets how watches with `sendInitialEvents` are taken. Default: [`StreamingLists::Served`].
    #[must_use]
    pub fn streaming_lists(mut self, how: StreamingLists) -> Self {
        self.settings.watch_rules.streaming_lists = how;
        self
    }

    /// Sets the time between two bookmarks of a watch. Default: one minute, as in the real server.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Sets the resource version from which the simulator counts. Default: 1,000, at least 1.
    ///
    /// It is not 0 by default because no real server's is by the time one can talk to it.
    #[must_use]
    pub fn first_resource_version(mut self, version: u64) -> Self {
        self.settings.first_revision = version.max(1);
        self
    }

    /// Sets the seed of UIDs and generated names, which are the same in each run. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Sets the date on which the simulator's clock begins; it is put on what is created and deleted. From there it goes
    /// as tokio's clock does, so that it stands still while that is paused. Default: now.
    #[must_use]
    pub fn begins_on(mut self, date: SystemTime) -> Self {
        self.settings.begins_on = date;
        self
    }

    /// Starts the simulator without a socket, for clients in this process: [`Simulator::service`] and
    /// [`Simulator::client`]. Its address has port 0, where nobody listens.
    #[must_use]
    pub fn start_in_process(self) -> Simulator {
        Simulator::new(self.server(), None)
    }

    /// Starts the simulator on a free loopback port. It must be called within a tokio runtime with I/O and time.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if no port can be bound.
    ///
    /// # Cancel safety
    ///
    /// A dropped call leaves nothing behind.
    pub async fn start(self) -> Result<Simulator, Error> {
        let server = self.server();
        let service = Service::new(server.clone());
        let listener = Listener::start(service, &server.stop).await.map_err(Error::Listen)?;
        Ok(Simulator::new(server, Some(listener)))
    }

    fn server(self) -> Arc<Server> {
        let server = Arc::new(Server::new(self.settings));
        for kind in self.kinds {
            server.register(kind);
        }
        server
    }
}
