//! What the informers have to say about trouble, on stderr.

use std::io::{self, IsTerminal, Write};

use indicatif::MultiProgress;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Writes to stderr what the informers warn of, and when all is well again; above the progress bars if there are any.
///
/// kube's own errors are left out: the informers report each of them once, with the resource that it concerns.
pub(crate) fn to_stderr(bars: &MultiProgress) {
    let crates = ["informer_core", "informer_store", "informer_reflector", "informer_factory"];
    let ours = Targets::new().with_targets(crates.map(|name| (name, LevelFilter::INFO)));
    let bars = bars.clone();
    let lines = layer()
        .compact()
        .without_time()
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(move || AboveBars(bars.clone()));
    tracing_subscriber::registry().with(ours).with(lines).init();
}

/// Takes the bars off the screen for as long as it writes.
struct AboveBars(MultiProgress);

impl Write for AboveBars {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().write_all(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
