//! [`Trace`]: a subscriber that records the spans and log lines of this project's crates.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Level, Metadata, Subscriber};

/// Fields by name. The message of a log line is the field `message`.
type Fields = BTreeMap<&'static str, String>;

/// The recorded spans and log lines. A clone is another handle to the same records.
#[derive(Clone, Default)]
pub(crate) struct Trace {
    spans: Arc<Mutex<Vec<Entry>>>,
    lines: Arc<Mutex<Vec<Entry>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    pub(crate) fields: Fields,
}

impl Trace {
    /// Records the spans and lines of the current thread until the guard is dropped.
    pub(crate) fn start(&self) -> DefaultGuard {
        // With a single subscriber, tracing caches a callsite's interest from the thread that
        // reaches it first, even if that thread has no subscriber. A second subscriber, for all
        // threads, prevents this.
        static FOR_ALL_THREADS: Once = Once::new();
        FOR_ALL_THREADS.call_once(|| _ = tracing::subscriber::set_global_default(Self::default()));
        tracing::subscriber::set_default(self.clone())
    }

    /// Returns the spans with this name.
    pub(crate) fn spans(&self, name: &str) -> Vec<Entry> {
        self.spans.lock().iter().filter(|span| span.name == name).cloned().collect()
    }

    /// Returns the log lines of this level and of less verbose levels.
    pub(crate) fn lines(&self, level: Level) -> Vec<Entry> {
        self.lines.lock().iter().filter(|line| line.level <= level).cloned().collect()
    }

    /// Removes all lines.
    pub(crate) fn clear_lines(&self) {
        self.lines.lock().clear();
    }

    /// Returns all spans and lines as one text.
    pub(crate) fn text(&self) -> String {
        format!("{:?}\n{:?}", self.spans.lock(), self.lines.lock())
    }
}

impl Subscriber for Trace {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("informer_")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut spans = self.spans.lock();
        let mut span = Entry::new(attributes.metadata());
        attributes.record(&mut span);
        spans.push(span);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let place = usize::try_from(span.into_u64()).expect("span ids are indexes") - 1;
        values.record(&mut self.spans.lock()[place]);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Entry::new(event.metadata());
        event.record(&mut line);
        self.lines.lock().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Entry {
    fn new(metadata: &Metadata<'static>) -> Self {
        Self { name: metadata.name(), level: *metadata.level(), fields: Fields::new() }
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("(none)", String::as_str)
    }
}

impl Visit for Entry {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}
