//! A first look at informers: a local, live copy of a cluster's nodes and pods, with an index and handlers.
//!
//! ```text
//! cargo run -p quickstart --example quickstart                                        # with a simulated cluster
//! cargo run -p quickstart --features cluster --example quickstart -- --kubeconfig     # with your cluster; read-only
//! cargo run -p quickstart --features inspect --example quickstart -- --inspect        # with a web page
//! cargo run -p quickstart --example quickstart -- --help
//! ```

mod args;
mod describe;
mod events;
#[cfg(feature = "inspect")]
mod inspect;
mod report;
mod source;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use informer_factory::{HandlerOptions, Index, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use tokio::time::{Instant, interval_at};

use args::{Args, HELP};
use events::Lines;
use report::Report;
use source::Source;

/// This allocator is faster than glibc's when one thread frees objects that another thread has allocated.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let args = match Args::parse() {
        Ok(Some(args)) => args,
        Ok(None) => {
            // If standard output is closed, as by `| head -1`, the text is not needed.
            _ = io::stdout().write_all(HELP.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    // Connect. Informers need only a kube client.
    let source = Source::connect(args).await?;

    // A factory has one informer per resource, object type and scope: all requests for the same
    // three return the same informer.
    let factory = SharedInformerFactory::new(source.client.clone());
    let nodes = factory.core().v1().nodes();
    let pods = factory.core().v1().pods();

    // An index finds objects by their content, here pods by their node.
    let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;

    // Handlers receive changes while their registrations exist.
    let (printer, mut lines) = events::printer();
    let tally = printer.tally.clone();
    let handlers = [
        nodes.add_event_handler_with(printer.clone(), &HandlerOptions::new().name("nodes")),
        pods.add_event_handler_with(printer, &HandlerOptions::new().name("pods")),
    ];

    // The inspector is a web page about the informers. Without the feature, `Args::parse` rejects
    // `--inspect`.
    #[cfg(feature = "inspect")]
    if let Some(port) = args.inspect {
        inspect::serve(port, &factory, &nodes, &pods).await?;
    }

    // Start the informers. The stores are kept current until the factory is shut down.
    factory.start();
    let mut report = Report { started: Instant::now(), nodes, pods, handlers, tally, printed: String::new() };

    // Work until Ctrl-C or until the time is up: wait for the initial lists, then print events.
    let outcome = tokio::select! {
        written = async {
            report.print_source(&source)?;
            // Wait for the initial lists, but only for some seconds: a list that the server forbids never
            // completes.
            match factory.wait_for_cache_sync_within(Duration::from_secs(5)).await {
                Ok(()) => report.print_synced()?,
                Err(not_synced) => writeln!(io::stdout(), "{not_synced}")?,
            }
            follow(&mut report, &mut lines, &by_node).await
        } => unless_closed(written),
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Into::into),
        // If an informer has not synced by now, the outcome is an error that names the informer and the reason.
        () = time_is_up(args.run_for) => factory.wait_for_cache_sync_within(Duration::ZERO).await.map_err(Into::into),
    };

    // Stop all tasks of the informers. The stores remain readable.
    factory.shutdown().await;
    drop(factory);
    source.shutdown().await?;
    unless_closed(report.print_summary())?;
    outcome
}

/// Prints events as they arrive and, every two seconds, a report if it has changed. Ends only if
/// writing fails.
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

/// Describes the pods of the node whose name is first in the alphabet.
fn pods_of_one_node(by_node: &Index<Pod, String>) -> String {
    let Some(node) = by_node.values().into_iter().min() else {
        return "no pod has a node".to_owned();
    };
    // The result is a view of one state of the store: the objects are not copied and do not change.
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

/// Treats a closed output as success, because `quickstart | head` closes it.
fn unless_closed(written: io::Result<()>) -> Result<(), Box<dyn Error>> {
    written
        .or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error.into()) })
}
