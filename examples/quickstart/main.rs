//! A first look at informers: a local, live copy of a cluster's nodes and pods, with an index and handlers.
//!
//! ```text
//! cargo run --release --example quickstart                     # with a simulated cluster
//! cargo run --release --example quickstart -- --kubeconfig     # with your own; it is only read
//! cargo run --release --example quickstart -- --help
//! ```

mod args;
mod describe;
mod events;
mod log;
mod progress;
mod report;
mod source;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use indicatif::MultiProgress;
use informer_factory::{HandlerOptions, Index, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::time::{Instant, interval_at};

use args::Args;
use events::Lines;
use report::Report;
use source::Source;

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let bars = MultiProgress::new();
    log::to_stderr(&bars);

    // Connect. All that informers need is a kube client.
    let source = Source::connect(args).await?;

    // A factory has one informer per resource: whoever asks for the same resource gets the same informer.
    let factory = SharedInformerFactory::new(source.client.clone());
    let nodes = factory.core().v1().nodes();
    let pods = factory.core().v1().pods();

    // An index finds objects by what is in them, here pods by the node they run on.
    let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;

    // Handlers hear of every change, for as long as their registrations are kept.
    let (printer, mut lines) = events::printer();
    let tally = printer.tally();
    let handlers = [
        nodes.add_event_handler_with(printer.clone(), &HandlerOptions::new().name("nodes")),
        pods.add_event_handler_with(printer, &HandlerOptions::new().name("pods")),
    ];

    // From here on the stores follow the server, until the factory is shut down.
    factory.start();
    let mut report = Report { started: Instant::now(), nodes, pods, handlers, tally, printed: String::new() };

    // Work until Ctrl-C or until the time is up. Here that is to wait for the first lists, and then to print.
    let outcome = tokio::select! {
        closed = async {
            report.print_source(&source)?;
            wait_for_first_lists(&factory, &report, &source.client, &bars).await;
            report.print_synced()?;
            follow(&mut report, &mut lines, &by_node).await
        } => unless_closed(closed),
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Into::into),
        // What has not synced by now is an error that says why.
        () = time_is_up(args.run_for) => factory.wait_for_cache_sync_within(Duration::ZERO).await.map_err(Into::into),
    };

    // Stop: nothing of the informers runs on after this. The stores can still be read.
    factory.shutdown().await;
    drop(factory);
    source.shutdown().await?;
    unless_closed(report.print_summary())?;
    outcome
}

/// Waits until the stores have the first lists; but not for one that may never come, such as a forbidden one.
async fn wait_for_first_lists(
    factory: &SharedInformerFactory,
    report: &Report,
    client: &Client,
    bars: &MultiProgress,
) {
    let bars = async {
        tokio::join!(
            progress::first_list("nodes", &report.nodes, client.clone(), bars),
            progress::first_list("pods", &report.pods, client.clone(), bars),
        )
    };
    tokio::select! {
        _ = factory.wait_for_cache_sync() => {}
        _ = bars => {}
    }
}

/// Prints events as they come, and every other second the state of affairs. Ends only if nobody reads it any more.
async fn follow(report: &mut Report, lines: &mut Lines, by_node: &Index<Pod, String>) -> io::Result<()> {
    let period = Duration::from_secs(2);
    let mut every_other_second = interval_at(Instant::now() + period, period);
    loop {
        tokio::select! {
            line = lines.next() => writeln!(io::stdout(), "{line}")?,
            _ = every_other_second.tick() => report.print_block(&pods_of_one_node(by_node))?,
        }
    }
}

/// Looks up the pods of the first node that has any.
fn pods_of_one_node(by_node: &Index<Pod, String>) -> String {
    let Some(node) = by_node.values().into_iter().min() else {
        return "no pod is on any node".to_owned();
    };
    // The answer is a view on one state of the store: nothing is copied, and nothing moves while it is read.
    let pods = by_node.get(&node);
    let mut some: Vec<_> = pods.iter().take(2).map(|pod| pod.key().as_str()).collect();
    if pods.len() > some.len() {
        some.push("…");
    }
    format!("{node}: {} ({} in all)", some.join(", "), pods.len())
}

async fn time_is_up(run_for: Option<Duration>) {
    match run_for {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// Takes it as a good end if the reader of the output has had enough, as in `quickstart | head`.
fn unless_closed(written: io::Result<()>) -> Result<(), Box<dyn Error>> {
    written
        .or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error.into()) })
}
