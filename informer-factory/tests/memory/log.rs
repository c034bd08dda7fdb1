//! Collects log lines, for tests that check them.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::Level;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;

/// Collects the messages of this thread, each with its level and fields in one line.
#[derive(Clone)]
pub(crate) struct Log {
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    /// Collects messages of this level and above until the guard is dropped.
    pub(crate) fn keep(level: Level) -> (Self, DefaultGuard) {
        let new = || Self { level, lines: Arc::default() };
        // With a single subscriber, tracing caches a callsite's interest from the thread that
        // reaches it first, even if that thread has no subscriber. A second subscriber, for all
        // threads, prevents this.
        static FOR_ALL_THREADS: Once = Once::new();
        FOR_ALL_THREADS.call_once(|| _ = tracing::subscriber::set_global_default(new()));
        let log = new();
        let guard = tracing::subscriber::set_default(log.clone());
        (log, guard)
    }

    /// Returns the lines that contain `part`.
    pub(crate) fn with(&self, part: &str) -> Vec<String> {
        self.lines.lock().iter().filter(|line| line.contains(part)).cloned().collect()
    }
}

/// The text of a log line, to which its fields are appended.
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
