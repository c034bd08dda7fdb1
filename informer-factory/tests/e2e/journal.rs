//! [`Journal`]: a handler that records its events, for tests of single events rather than of the
//! final state.

use informer_factory::{Cached, Deleted, EventHandler};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::within;

/// A handler that writes one line for each event: `+name` for an add, `~name` for an update,
/// `-name` for a deletion, `-name (missed)` for a deletion that a list revealed, and `^name` for a
/// release.
pub(crate) struct Journal {
    lines: UnboundedSender<String>,
}

/// The lines of a [`Journal`].
pub(crate) struct Lines {
    lines: UnboundedReceiver<String>,
}

pub(crate) fn journal() -> (Journal, Lines) {
    let (sender, lines) = unbounded_channel();
    (Journal { lines: sender }, Lines { lines })
}

impl Lines {
    /// Returns the next `count` lines, sorted, because events of different objects have no order.
    pub(crate) async fn next(&mut self, count: usize) -> Vec<String> {
        let mut next = Vec::with_capacity(count);
        while next.len() < count {
            next.push(within(self.lines.recv()).await.expect("the handler is registered"));
        }
        next.sort_unstable();
        next
    }

    /// Returns whether all lines that have been written so far have been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.lines.is_empty()
    }
}

impl Journal {
    fn write(&self, line: String) {
        // The receiver is dropped when the test ends.
        _ = self.lines.send(line);
    }
}

impl<K: Send + Sync + 'static> EventHandler<K> for Journal {
    fn on_add(&self, object: &Cached<K>, _is_in_initial_list: bool) {
        self.write(format!("+{}", object.name()));
    }

    fn on_update(&self, _old: &Cached<K>, new: &Cached<K>) {
        self.write(format!("~{}", new.name()));
    }

    fn on_delete(&self, object: &Deleted<K>) {
        let how = if object.is_exact() { "" } else { " (missed)" };
        self.write(format!("-{}{how}", object.name()));
    }

    fn on_release(&self, object: &Cached<K>) {
        self.write(format!("^{}", object.name()));
    }
}
