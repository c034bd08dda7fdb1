//! `cargo xtask e2e`: runs the end-to-end tests and the examples against a real kube-apiserver, and
//! tests of other clients (kubectl and client-go) against the simulator.

use std::process::{Command, ExitCode};

use crate::apiserver;
use crate::controlplane::{self, AdditionalServer, OptionalProgram, Options, Programs};
use crate::examples;
use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// The environment variable with the kubeconfig for the tests. The tests create and delete objects,
/// so they do not use KUBECONFIG, which can name the user's current cluster.
const KUBECONFIG: &str = "INFORMER_E2E_KUBECONFIG";

/// The environment variable with the URL of etcd. The wire scenarios (`kube-simulator/tests/wire`)
/// compact etcd's history, and store unreadable objects.
const ETCD: &str = "INFORMER_E2E_ETCD";

/// The environment variable that is set if a controller-manager runs.
const CONTROLLERS: &str = "INFORMER_E2E_CONTROLLERS";

const SERVER_FLAGS: [&str; 2] =
    ["--goaway-chance=0.02", "--feature-gates=AllowUnsafeMalformedObjectDeletion=true"];

/// The client-go programs of the tests, each with the environment variable that gives the tests the
/// program's path.
const CLIENT_GO: [(&str, &str); 4] = [
    ("clientgo-follow", "INFORMER_E2E_CLIENT_GO"),
    ("clientgo-forms", "INFORMER_E2E_CLIENT_GO_FORMS"),
    ("clientgo-elect", "INFORMER_E2E_CLIENT_GO_ELECT"),
    ("clientgo-samples", "INFORMER_E2E_CLIENT_GO_SAMPLES"),
];

/// The test targets with end-to-end tests.
const TARGETS: [&str; 3] = ["e2e", "clients", "wire"];

/// The test targets that each contain a large controller, written with the crates of this workspace,
/// and its test. If the variable `INFORMER_E2E_KUBECONFIG` is not set, the tests use the simulator.
const CONTROLLER_TARGETS: [&str; 2] = ["scheduler_cache", "endpoint_slices"];

/// The number of concurrent tests in the targets `e2e` and `clients`, without `--long`.
// More than the number of cores, because these tests mostly wait for the server. The target `wire`
// sets its own number.
const CONCURRENT_TESTS: &str = "6";

/// The test module of the tests that take minutes.
const LONG: &str = "long::";

/// Arguments of `cargo xtask e2e`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,

    /// Also run the tests that take minutes: dead and slow connections; one uses `iptables` to drop
    /// packets
    #[arg(long)]
    long: bool,

    /// Test filters and options, as after `cargo test --`
    #[arg(last = true, value_name = "FILTER")]
    filter: Vec<String>,
}

impl Args {
    /// Returns arguments that start all controllers. Then Deployments get pods, pods get nodes, and
    /// simulated nodes run pods.
    pub(crate) fn all_controllers() -> Self {
        let with =
            vec![OptionalProgram::ControllerManager, OptionalProgram::Scheduler, OptionalProgram::Kwok];
        Self { options: Options { with, nodes: 5, ..Options::default() }, ..Self::default() }
    }

    pub(crate) fn long_tests() -> Self {
        Self { long: true, filter: vec![LONG.to_owned()], ..Self::default() }
    }
}

/// Runs the end-to-end tests. If the user gives no test filter and no test option, also runs the
/// examples and the test targets [`CONTROLLER_TARGETS`] in `informer-controller/tests`.
pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    // Build these targets first, so that their build errors appear before the servers start.
    let problem = "the end-to-end tests do not build; see the message above";
    process::run_or_fail(tests(&TARGETS).arg("--no-run"), signals, problem)?;
    let options = for_tests(&args.options);
    let programs = Programs::find(&options, signals)?;
    let clients = if controlplane::has_go() {
        Some(controlplane::ensure(&CLIENT_GO.map(|(name, _)| name), signals)?)
    } else {
        None
    };
    let mut cluster = apiserver::start(&options, &programs, signals)?;
    let mut command = tests(&TARGETS);
    command.args(["--", "--ignored"]).args(&args.filter);
    if args.long {
        command.args(long_test_arguments());
    } else {
        command.args(["--skip", LONG]).env("RUST_TEST_THREADS", CONCURRENT_TESTS);
    }
    command.env(KUBECONFIG, cluster.kubeconfig()).env(ETCD, cluster.etcd());
    if options.wants(OptionalProgram::ControllerManager) {
        command.env(CONTROLLERS, "1");
    }
    for (which, kubeconfig, process) in cluster.additional_servers() {
        let [for_kubeconfig, for_process] = variables(which);
        command.env(for_kubeconfig, kubeconfig).env(for_process, process.to_string());
    }
    if let Some(folder) = clients {
        command.envs(CLIENT_GO.map(|(name, variable)| (variable, folder.join(name))));
    } else {
        eprintln!("Go is not installed; skipping the tests with client-go, which need Go 1.26 or newer");
        command.args(["--skip", "client_go"]);
    }
    let tested = apiserver::run_against(&mut cluster, &programs, &mut command, signals)?;
    if tested != ExitCode::SUCCESS || !args.filter.is_empty() {
        return Ok(tested);
    }
    let kubeconfig = cluster.kubeconfig().to_owned();
    let mut command = tests(&CONTROLLER_TARGETS);
    command.args(["--", "--nocapture"]).env(KUBECONFIG, &kubeconfig);
    let tested = apiserver::run_against(&mut cluster, &programs, &mut command, signals)?;
    if tested != ExitCode::SUCCESS {
        return Ok(tested);
    }
    examples::each(|command| {
        command.env(KUBECONFIG, &kubeconfig);
        apiserver::run_against(&mut cluster, &programs, command, signals)
    })
}

/// Returns the command that runs the tests of these targets.
fn tests(targets: &[&str]) -> Command {
    let mut command = workspace::cargo();
    command.args(["test", "--workspace"]).args(targets.iter().flat_map(|target| ["--test", *target]));
    command
}

/// Returns the test arguments for `cargo xtask e2e --long`.
fn long_test_arguments() -> Vec<&'static str> {
    let lists_rules = Command::new("iptables").args(["-w", "-S", "INPUT"]).output();
    // The output of these tests contains measured times.
    let mut arguments = vec!["--show-output"];
    if !lists_rules.is_ok_and(|output| output.status.success()) {
        eprintln!("iptables is not installed or needs root; skipping the test with dropped packets");
        arguments.extend(["--skip", "dropped_packets"]);
    }
    arguments
}

/// Returns the names of the environment variables with the server's kubeconfig and process ID.
fn variables(which: AdditionalServer) -> [String; 2] {
    let name = which.name().replace('-', "_").to_uppercase();
    ["KUBECONFIG", "PID"].map(|what| format!("INFORMER_E2E_{name}_{what}"))
}

fn for_tests(options: &Options) -> Options {
    let mut options = Options { additional_servers: AdditionalServer::ALL.to_vec(), ..options.clone() };
    options.apiserver_arg.extend(SERVER_FLAGS.map(str::to_owned));
    if !options.wants(OptionalProgram::Kubectl) {
        options.with.push(OptionalProgram::Kubectl);
    }
    options
}
