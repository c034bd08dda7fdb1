//! Prints the log of the informers on stderr.

use std::io::{self, IsTerminal, Write};

use indicatif::MultiProgress;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Prints warnings of the informers and their recoveries to stderr, above the progress bars if there are any.
///
/// kube's own errors are left out, because the informers report each of them once, with its resource.
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

/// A writer that hides the bars while it writes.
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
