//! The handler: counts the events after the initial list, and prints some of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use informer_factory::{Cached, Deleted, EventHandler};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, interval};

use crate::describe::Describe;

/// Maximum number of printed events per second, so that the output stays readable.
const LINES_PER_SECOND: u64 = 10;

/// Returns an event handler, and the receiver of the lines that the handler prints.
pub(crate) fn printer() -> (Printer, Lines) {
    // Handlers must not block, but writing to a terminal can. So the main loop writes the lines.
    let (sender, receiver) = unbounded_channel();
    let tally = Arc::<Tally>::default();
    let printer = Printer { tally: Arc::clone(&tally), lines: sender };
    (printer, Lines { tally, lines: receiver, seconds: interval(Duration::from_secs(1)) })
}

/// Counters of events, without the initial list.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) added: AtomicU64,
    pub(crate) updated: AtomicU64,
    pub(crate) deleted: AtomicU64,
    /// The number of events in the current second, for the limit of printed lines.
    this_second: AtomicU64,
}

#[derive(Clone, Debug)]
pub(crate) struct Printer {
    pub(crate) tally: Arc<Tally>,
    lines: UnboundedSender<String>,
}

impl Printer {
    /// Sends a line to the main loop, unless [`LINES_PER_SECOND`] events have occurred in this
    /// second.
    fn print(&self, line: impl FnOnce() -> String) {
        if self.tally.this_second.fetch_add(1, Ordering::Relaxed) < LINES_PER_SECOND {
            // Sending fails only when the program ends.
            _ = self.lines.send(line());
        }
    }
}

impl<K: Describe + 'static> EventHandler<K> for Printer {
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        // Objects of the initial list are neither counted nor printed.
        if !is_in_initial_list {
            self.tally.added.fetch_add(1, Ordering::Relaxed);
            self.print(|| format!("+ {}{}", object.key(), object.place()));
        }
    }

    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        self.tally.updated.fetch_add(1, Ordering::Relaxed);
        self.print(|| format!("~ {}  {}", new.key(), new.changes_since(old)));
    }

    fn on_delete(&self, object: &Deleted<K>) {
        self.tally.deleted.fetch_add(1, Ordering::Relaxed);
        let place = || object.last_known().map(|last| last.place()).unwrap_or_default();
        self.print(|| format!("- {}{}", object.key(), place()));
    }
}

/// Receives the lines that a [`Printer`] sends.
#[derive(Debug)]
pub(crate) struct Lines {
    tally: Arc<Tally>,
    lines: UnboundedReceiver<String>,
    seconds: Interval,
}

impl Lines {
    /// Waits for the next line, which can be a line about the number of events that were not
    /// printed. Cancel safe: dropping the future loses no line.
    pub(crate) async fn next(&mut self) -> String {
        loop {
            tokio::select! {
                biased;
                Some(line) = self.lines.recv() => return line,
                _ = self.seconds.tick() => {
                    let events = self.tally.this_second.swap(0, Ordering::Relaxed);
                    if events > LINES_PER_SECOND {
                        return format!("  … and {} more", events - LINES_PER_SECOND);
                    }
                }
            }
        }
    }
}
