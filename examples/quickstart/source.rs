//! The source of the objects: a simulated API server in this process, or a real cluster.

use std::error::Error;
use std::fmt;
use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_simulator::{Churn, ClusterSpec, Simulator};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::args::{Args, Cluster};

/// An API server and a client for it.
pub(crate) struct Source {
    pub(crate) client: Client,
    address: String,
    simulation: Option<Simulation>,
}

/// A simulated cluster, and the task that changes it.
struct Simulation {
    simulator: Simulator,
    stop: oneshot::Sender<()>,
    churn: JoinHandle<Result<Churn, kube_simulator::Error>>,
}

impl Source {
    /// Creates a client for the API server that the command line selects. If this is a simulated
    /// server, also starts the server. Sends no request to a real server.
    pub(crate) async fn connect(args: &Args) -> Result<Self, Box<dyn Error>> {
        let (config, simulation) = match &args.cluster {
            Cluster::Simulated => {
                let simulation = Simulation::start(args).await?;
                (simulation.simulator.kube_config(), Some(simulation))
            }
            Cluster::Kubeconfig(path) => (from_kubeconfig(path.as_deref()).await?, None),
            Cluster::Own => {
                let config = Config::incluster().map_err(|error| {
                    format!("this program does not run in a cluster: {}", with_causes(&error))
                })?;
                (config, None)
            }
        };
        let address = config.cluster_url.to_string();
        #[cfg(feature = "cluster")]
        let connector = kube::client::ConfigExt::rustls_https_connector_with_connector;
        // The simulator needs no TLS.
        #[cfg(not(feature = "cluster"))]
        let connector = |_: &Config, tcp| Ok(tcp);
        let client = informer_factory::connect(config, connector)
            .map_err(|error| format!("cannot create a client for {address}: {}", with_causes(&error)))?;
        Ok(Self { client, address, simulation })
    }

    pub(crate) async fn shutdown(self) -> Result<(), Box<dyn Error>> {
        // When the last clone of the client is dropped, its connections are closed, so that the
        // simulator need not wait for them.
        drop(self.client);
        if let Some(Simulation { simulator, stop, churn }) = self.simulation {
            drop(stop);
            churn.await??;
            simulator.shutdown().await;
        }
        Ok(())
    }
}

impl Simulation {
    async fn start(args: &Args) -> Result<Self, Box<dyn Error>> {
        let simulator = Simulator::builder().built_in_kinds().start().await?;
        let spec =
            ClusterSpec { nodes: args.nodes, pods: args.pods, namespaces: 16, ..ClusterSpec::default() };
        let cluster = simulator.populate(&spec)?;
        let (stop, stopped) = oneshot::channel();
        // The churn ends when `stop` is dropped. Then `stopped.await` returns an error, which is expected.
        let stopped = async move { _ = stopped.await };
        let churn = tokio::spawn(cluster.churn(args.rate.into()).run_until(stopped));
        Ok(Self { simulator, stop, churn })
    }
}

async fn from_kubeconfig(path: Option<&Path>) -> Result<Config, String> {
    let options = KubeConfigOptions::default();
    let (config, name) = match path {
        Some(path) => {
            let name = path.display().to_string();
            let config = match Kubeconfig::read_from(path) {
                Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
                Err(error) => Err(error),
            };
            (config, name)
        }
        None => (Config::from_kubeconfig(&options).await, "$KUBECONFIG or ~/.kube/config".to_owned()),
    };
    config.map_err(|error| format!("cannot use the kubeconfig ({name}): {}", with_causes(&error)))
}

/// Formats an error and its causes in one line. Skips causes that the error already contains, and the source excerpt of
/// YAML errors.
fn with_causes(error: &dyn Error) -> String {
    let first_line = |error: &dyn Error| error.to_string().lines().next().unwrap_or_default().to_owned();
    let mut text = first_line(error);
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = first_line(cause);
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.simulation.is_some() { "a simulated cluster" } else { "the cluster" };
        write!(f, "{kind} at {}", self.address)
    }
}
