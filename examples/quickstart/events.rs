//! The handler: it counts every event, and writes a readable number of them as lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use informer_factory::{Cached, Deleted, EventHandler};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, interval};

use crate::describe::Describe;

/// How many events are shown in a second; more than that nobody can read.
const LINES_PER_SECOND: u64 = 10;

/// Returns a handler and the lines that it writes.
///
/// A handler is called on the async runtime and must not block, as writing to a terminal can. So it puts its lines into
/// a channel, and the main loop writes them.
pub(crate) fn printer() -> (Printer, Lines) {
    let (sender, receiver) = unbounded_channel();
    let tally = Arc::<Tally>::default();
    let printer = Printer { tally: Arc::clone(&tally), lines: sender };
    (printer, Lines { tally, lines: receiver, seconds: interval(Duration::from_secs(1)) })
}

/// How many events there have been.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) added: AtomicU64,
    pub(crate) updated: AtomicU64,
    pub(crate) deleted: AtomicU64,
    /// Those of the present second.
    this_second: AtomicU64,
}

/// Handles the events of any kind of object that it can describe.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    tally: Arc<Tally>,
    lines: UnboundedSender<String>,
}

impl Printer {
    /// Counts the events; see [`Tally`].
    pub(crate) fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// Sends a line, if there have not been too many in this second.
    fn print(&self, line: impl FnOnce() -> String) {
        if self.tally.this_second.fetch_add(1, Ordering::Relaxed) < LINES_PER_SECOND {
            // If nobody reads any more the program is about to end.
            _ = self.lines.send(line());
        }
    }
}

impl<K: Describe + 'static> EventHandler<K> for Printer {
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        // What existed before is no news.
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

/// The lines of a [`Printer`].
#[derive(Debug)]
pub(crate) struct Lines {
    tally: Arc<Tally>,
    lines: UnboundedReceiver<String>,
    seconds: Interval,
}

impl Lines {
    /// Waits for the next line. Nothing is lost if the future is dropped.
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
