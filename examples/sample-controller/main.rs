//! The sample-controller of Kubernetes: the controller creates and maintains a Deployment for each `Foo`.
//!
//! The controller uses status, events, owner references, a finalizer, and leader election between
//! two processes. By default, the program runs a scenario: it starts an API server and two
//! controllers, kills the leader during its work, and starts a third controller.
//!
//! ```text
//! cargo run --example sample-controller
//! cargo run --example sample-controller -- controller --namespace default
//! ```
//!
//! The second command runs one controller in your cluster. First define `Foo`, and create an empty
//! `ConfigMap` named `foo-directory` in the namespace.

#![allow(clippy::disallowed_names, reason = "in the sample-controller, a `Foo` is called foo")]

mod controller;
mod deployments;
mod foo;
mod scenario;

use std::error::Error;
use std::time::Duration;

use clap::{Parser, Subcommand};
use informer_controller::{LeaderElectionConfig, LeaderElector};
use informer_testing::Simulator;
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The environment variable with the path of a test cluster's kubeconfig, as in `cargo xtask e2e`.
const KUBECONFIG: &str = "INFORMER_E2E_KUBECONFIG";

const LEASE: &str = "foo-controller";

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand)]
enum Role {
    /// Control the `Foo`s of a namespace while this process is the leader
    Controller {
        #[arg(long, default_value = "default")]
        namespace: String,
        /// The identity of this process in the lease; default: the host's name and random digits
        #[arg(long)]
        identity: Option<String>,
        /// The URL of the API server; default: the server of the kubeconfig
        #[arg(long)]
        url: Option<String>,
        /// End when the standard input ends, which happens when the parent process ends
        #[arg(long)]
        until_input_ends: bool,
    },
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match Args::parse().role {
        Some(Role::Controller { namespace, identity, url, until_input_ends }) => {
            let client = connect(url.as_deref()).await?;
            // Short times, so that the scenario does not wait long for the lease of a killed leader.
            let election = LeaderElectionConfig::new(&namespace, LEASE)
                .lease_duration(Duration::from_secs(4))
                .renew_deadline(Duration::from_secs(3))
                .retry_period(Duration::from_secs(1));
            let election = match identity {
                Some(identity) => election.identity(identity),
                None => election,
            };
            let elector = LeaderElector::new(client.clone(), election)?;
            controller::run(client, &namespace, elector, shutdown(until_input_ends)).await
        }
        None if std::env::var_os(KUBECONFIG).is_some() => scenario::run(&connect(None).await?, None).await,
        None => {
            let simulator = Simulator::builder().built_in_kinds().start().await?;
            let url = simulator.url();
            scenario::run(&connect(Some(&url)).await?, Some(&url)).await?;
            simulator.shutdown().await;
            Ok(())
        }
    }
}

/// Returns a token that is cancelled by Ctrl-C and, if `until_input_ends` is set, at the end of the standard
/// input.
fn shutdown(until_input_ends: bool) -> CancellationToken {
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        _ = tokio::signal::ctrl_c().await;
        stop.cancel();
    });
    if until_input_ends {
        let stop = shutdown.clone();
        std::thread::spawn(move || {
            _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            stop.cancel();
        });
    }
    shutdown
}

async fn connect(url: Option<&str>) -> Result<Client, Failure> {
    let config = match (url, std::env::var(KUBECONFIG)) {
        (Some(url), _) => Config::new(url.parse()?),
        (None, Ok(path)) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &KubeConfigOptions::default())
                .await?
        }
        (None, Err(_)) => Config::infer().await?,
    };
    Ok(informer_factory::connect(config, ConfigExt::rustls_https_connector_with_connector)?)
}
