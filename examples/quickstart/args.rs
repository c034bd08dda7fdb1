//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

/// Keeps a local, live copy of a cluster's nodes and pods, and prints their changes.
///
/// Without --kubeconfig or --in-cluster, the program starts a simulated API server in this process and connects to it
/// over HTTP. On a real cluster, the program only reads.
#[derive(Debug, Parser)]
#[command(name = "quickstart")]
pub(crate) struct Args {
    /// End after this time, for example 10s; exit code 1 if an informer has not synced by then [default: at Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) run_for: Option<Duration>,

    /// Use a real cluster, from this file or, without PATH, from $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "PATH", num_args = 0..=1, conflicts_with_all = ["in_cluster", "pods", "nodes", "rate"])]
    pub(crate) kubeconfig: Option<Option<PathBuf>>,

    /// Use the cluster of this pod, with the pod's service account
    #[arg(long, conflicts_with_all = ["pods", "nodes", "rate"])]
    pub(crate) in_cluster: bool,

    /// Number of pods in the simulated cluster
    #[arg(long, value_name = "COUNT", default_value_t = 2_000)]
    pub(crate) pods: u32,

    /// Number of nodes in the simulated cluster
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) nodes: u32,

    /// Changes per second in the simulated cluster
    #[arg(long, value_name = "CHANGES", default_value_t = 20, value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(crate) rate: u32,
}
