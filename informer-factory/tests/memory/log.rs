//! What the library logs, for tests that check it.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::Level;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;

/// Keeps what is logged in this thread, each message with its level and fields in one line.
#[derive(Clone)]
pub(crate) struct Log {
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    /// Keeps messages of this level and above for as long as the guard lives.
    pub(crate) fn keep(level: Level) -> (Self, DefaultGuard) {
        let new = || Self { level, lines: Arc::default() };
        // While there is only one subscriber, tracing asks whichever thread meets a message first
        // whether anybody wants it, and remembers a no. So every thread has a subscriber.
        static FOR_ALL_THREADS: Once = Once::new();
        FOR_ALL_THREADS.call_once(|| _ = tracing::subscriber::set_global_default(new()));
        let log = new();
        let guard = tracing::subscriber::set_default(log.clone());
        (log, guard)
    }

    /// Returns the lines that have `part` in them.
    pub(crate) fn with(&self, part: &str) -> Vec<String> {
        self.lines.lock().iter().filter(|line| line.contains(part)).cloned().collect()
    }
}

/// One line.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("informer_") && *metadata.level() <= self.level
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.lines.lock().push(line.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
