//! `cargo xtask e2e`: the end-to-end tests against a real kube-apiserver, and those of other clients against the
//! simulator; then the examples, against the real one, too.

use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::apiserver;
use crate::client_go;
use crate::controlplane::{Extra, Further, Options, Programs};
use crate::examples;
use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// Tells the tests which kubeconfig to use. Not KUBECONFIG alone: tests that make and delete
/// things must not run against a cluster that someone merely happens to be logged in to.
const KUBECONFIG: &str = "INFORMER_E2E_KUBECONFIG";

/// Tells the wire scenarios where the server's etcd is, which they make forget the past.
const ETCD: &str = "INFORMER_E2E_ETCD";

/// Tells the wire scenarios that a controller-manager is at work.
const CONTROLLERS: &str = "INFORMER_E2E_CONTROLLERS";

/// Has the servers send a `GOAWAY` now and then, as those do that want their load spread, and delete what they can't read.
const HABITS: [&str; 2] = ["--goaway-chance=0.02", "--feature-gates=AllowUnsafeMalformedObjectDeletion=true"];

/// Tells the tests where the programs are that use client-go: one follows pods, one compares encodings, and one wants to
/// lead.
const CLIENT_GO: [(&str, &str, &str); 3] = [
    ("INFORMER_E2E_CLIENT_GO", "./follow", "clientgofollow"),
    ("INFORMER_E2E_CLIENT_GO_FORMS", "./forms", "clientgoforms"),
    ("INFORMER_E2E_CLIENT_GO_ELECT", "./elect", "clientgoelect"),
];

/// The module of the tests that take minutes.
const LONG: &str = "long::";

/// What to start and which tests to run.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,

    /// Also run the tests that take minutes: connections that go dead, and a slow one. `iptables` drops packets for some.
    #[arg(long)]
    long: bool,

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

    /// The tests that take minutes, alone.
    pub(crate) fn long_tests() -> Self {
        Self { long: true, filter: vec![LONG.to_owned()], ..Self::default() }
    }
}

/// Builds the tests, starts a control plane and runs the tests against it.
pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    // First, so that the servers do not wait for the compiler, nor the user for both to fail.
    let status = process::run(tests().arg("--no-run"), signals, || Ok(()))?;
    if !status.success() {
        bail!("the end-to-end tests do not build; see the message above");
    }
    let on_client_go = CLIENT_GO.map(|(variable, package, name)| {
        client_go::build(package, name, signals).map(|path| path.map(|path| (variable, path)))
    });
    let options = for_tests(&args.options);
    let programs = Programs::find(&options, signals)?;
    let mut cluster = apiserver::start(&options, &programs, signals)?;
    let mut command = tests();
    command.args(["--", "--ignored"]).args(&args.filter);
    command.args(if args.long { long_form() } else { vec!["--skip", LONG] });
    command.env(KUBECONFIG, cluster.kubeconfig()).env(ETCD, cluster.etcd());
    if options.wants(Extra::ControllerManager) {
        command.env(CONTROLLERS, "1");
    }
    for (which, kubeconfig, process) in cluster.further() {
        let [for_kubeconfig, for_process] = variables(which);
        command.env(for_kubeconfig, kubeconfig).env(for_process, process.to_string());
    }
    let mut programs_in_go = 0;
    for (variable, path) in
        on_client_go.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten()
    {
        command.env(variable, path);
        programs_in_go += 1;
    }
    if programs_in_go < CLIENT_GO.len() {
        eprintln!("Go is not installed; skipping the tests with client-go, which need Go 1.26 or newer");
        command.args(["--skip", "client_go"]);
    }
    let tested = apiserver::run_against(&mut cluster, &programs, &mut command, signals)?;
    if tested != ExitCode::SUCCESS || !args.filter.is_empty() {
        return Ok(tested);
    }
    let kubeconfig = cluster.kubeconfig().to_owned();
    examples::each(|command| {
        command.env(KUBECONFIG, &kubeconfig);
        apiserver::run_against(&mut cluster, &programs, command, signals)
    })
}

fn tests() -> Command {
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--test", "e2e", "--test", "clients", "--test", "wire"]);
    command
}

/// The arguments for a run with the tests that take minutes: they print what they have measured.
fn long_form() -> Vec<&'static str> {
    let lists_rules = Command::new("iptables").args(["-w", "-S", "INPUT"]).output();
    let mut arguments = vec!["--show-output"];
    if !lists_rules.is_ok_and(|output| output.status.success()) {
        eprintln!("iptables is not installed or needs root; skipping the test with dropped packets");
        arguments.extend(["--skip", "dropped_packets"]);
    }
    arguments
}

/// Tell the wire scenarios of a further API server: how to reach it, and whom to tell to leave.
fn variables(which: Further) -> [String; 2] {
    let name = which.name().replace('-', "_").to_uppercase();
    ["KUBECONFIG", "PID"].map(|what| format!("INFORMER_E2E_{name}_{what}"))
}

/// The tests run kubectl, compare what a server does with other flags, and have clients leave their connections.
fn for_tests(options: &Options) -> Options {
    let mut options = Options { further: Further::ALL.to_vec(), ..options.clone() };
    options.apiserver_arg.extend(HABITS.map(str::to_owned));
    if !options.wants(Extra::Kubectl) {
        options.with.push(Extra::Kubectl);
    }
    options
}
