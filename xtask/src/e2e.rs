//! `cargo xtask e2e`: the end-to-end tests against a real kube-apiserver.

use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::apiserver;
use crate::controlplane::{Extra, Options, Programs};
use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// Tells the tests which kubeconfig to use. Not KUBECONFIG alone: tests that make and delete
/// things must not run against a cluster that someone merely happens to be logged in to.
const KUBECONFIG: &str = "INFORMER_E2E_KUBECONFIG";

/// Tells the wire scenarios where the server's etcd is, which they make forget the past.
const ETCD: &str = "INFORMER_E2E_ETCD";

/// What to start and which tests to run.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,

    /// Which tests to run and how, as after `cargo test --`.
    #[arg(last = true, value_name = "FILTER")]
    filter: Vec<String>,
}

impl Args {
    /// With all that makes a cluster live: Deployments get pods, pods get nodes, and nodes run them.
    pub(crate) fn whole_control_plane() -> Self {
        let with = vec![Extra::ControllerManager, Extra::Scheduler, Extra::Kwok];
        Self { options: Options { with, nodes: 5, ..Options::default() }, ..Self::default() }
    }
}

/// Builds the tests, starts a control plane and runs the tests against it.
pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    // First, so that the servers do not wait for the compiler, nor the user for both to fail.
    let status = process::run(tests().arg("--no-run"), signals, || Ok(()))?;
    if !status.success() {
        bail!("the end-to-end tests do not build; see the message above");
    }
    let programs = Programs::find(&args.options, signals)?;
    let mut cluster = apiserver::start(&args.options, &programs, signals)?;
    let mut command = tests();
    command.args(["--", "--ignored"]).args(&args.filter);
    command.env(KUBECONFIG, cluster.kubeconfig()).env(ETCD, cluster.etcd());
    apiserver::run_against(&mut cluster, &programs, &mut command, signals)
}

fn tests() -> Command {
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--test", "e2e", "--test", "wire"]);
    command
}
