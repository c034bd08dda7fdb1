//! The command line.

use std::path::PathBuf;
use std::time::Duration;

pub(crate) const HELP: &str = "\
Keeps a local, live copy of a cluster's nodes and pods, and prints their changes.

Without --kubeconfig or --in-cluster, the program starts a simulated API server in this process and connects to it
over HTTP. Real clusters need the Cargo feature `cluster`, and the program only reads from them.

  --for DURATION       End after this time, for example 10s or 2m. The exit code is 1 if an informer has not synced
                       by then. Default: at Ctrl-C
  --kubeconfig [PATH]  Use a real cluster, from this file or, without PATH, from $KUBECONFIG or ~/.kube/config
  --in-cluster         Use the cluster of this pod, with the pod's service account
  --pods COUNT         Pods in the simulated cluster. Default: 2000
  --nodes COUNT        Nodes in the simulated cluster. Default: 50
  --rate CHANGES       Changes per second in the simulated cluster. Default: 20
  --inspect [PORT]     Serve a web page about the informers on 127.0.0.1. Default port: any free one.
                       Needs `cargo run --features inspect`
";

#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) run_for: Option<Duration>,
    pub(crate) cluster: Cluster,
    pub(crate) pods: usize,
    pub(crate) nodes: usize,
    pub(crate) rate: u32,
    /// The port of the inspector's web page, zero for any free port; `None` without `--inspect`.
    pub(crate) inspect: Option<u16>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Cluster {
    Simulated,
    /// The cluster of a kubeconfig file; `None` means `$KUBECONFIG` or `~/.kube/config`.
    Kubeconfig(Option<PathBuf>),
    /// The cluster that the program runs in.
    Own,
}

impl Args {
    /// Parses the command line. Returns `None` for `--help`.
    pub(crate) fn parse() -> Result<Option<Self>, String> {
        let cluster = Cluster::Simulated;
        let mut args = Self { run_for: None, cluster, pods: 2_000, nodes: 50, rate: 20, inspect: None };
        let mut rest = std::env::args().skip(1).peekable();
        let mut has_simulator_option = false;
        while let Some(name) = rest.next() {
            let cluster = match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--in-cluster" => Cluster::Own,
                "--kubeconfig" => {
                    let path = rest.next_if(|next| !next.starts_with("--"));
                    Cluster::Kubeconfig(path.map(PathBuf::from))
                }
                "--for" => {
                    args.run_for = Some(value(&name, rest.next(), "a time such as 10s or 2m", duration)?);
                    continue;
                }
                "--inspect" => {
                    let port = rest.next_if(|next| !next.starts_with("--"));
                    let port = port.map(|port| value(&name, Some(port), "a port", |port| port.parse().ok()));
                    args.inspect = Some(port.transpose()?.unwrap_or_default());
                    continue;
                }
                "--pods" | "--nodes" | "--rate" => {
                    let number = value(&name, rest.next(), "a number from 1 to 100000", number)?;
                    match name.as_str() {
                        "--pods" => args.pods = number as usize,
                        "--nodes" => args.nodes = number as usize,
                        _ => args.rate = number,
                    }
                    has_simulator_option = true;
                    continue;
                }
                _ => return Err(format!("unknown argument {name}; --help lists the arguments")),
            };
            if args.cluster != Cluster::Simulated {
                return Err("use either --kubeconfig or --in-cluster, and only once".to_owned());
            }
            args.cluster = cluster;
        }
        if args.cluster != Cluster::Simulated && !cfg!(feature = "cluster") {
            return Err("real clusters need TLS; add `--features cluster` before the `--`".to_owned());
        }
        if args.inspect.is_some() && cfg!(not(feature = "inspect")) {
            return Err("--inspect needs the feature `inspect`: cargo run -p quickstart --features inspect \
                        --example quickstart -- --inspect"
                .to_owned());
        }
        if has_simulator_option && args.cluster != Cluster::Simulated {
            return Err("--pods, --nodes and --rate are for the simulated cluster; remove them".to_owned());
        }
        Ok(Some(args))
    }
}

fn value<T>(
    name: &str,
    text: Option<String>,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, String> {
    let text = text.unwrap_or_default();
    parse(&text).ok_or_else(|| format!("{name} needs {expected}, not \"{text}\""))
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| (1..=100_000).contains(number))
}

fn duration(text: &str) -> Option<Duration> {
    let (number, seconds) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s')?, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}
