//! Collects the log lines of the reflector.

use std::sync::{Arc, Once};

use informer_reflector::ReflectorStatus;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;

use super::script::Run;

/// Collects messages, and reads a reflector's status at each message, as a subscriber may.
#[derive(Clone, Default)]
pub(super) struct Log {
    pub(super) lines: Arc<Mutex<Vec<String>>>,
    status: Arc<Mutex<Option<ReflectorStatus>>>,
}

impl Log {
    pub(super) fn start_for(&self, run: &Run) -> DefaultGuard {
        *self.status.lock() = Some(run.status.clone());
        self.start()
    }

    pub(super) fn start(&self) -> DefaultGuard {
        // With a single subscriber, tracing caches a callsite's interest from the thread that
        // reaches it first, even if that thread has no subscriber. Therefore install one for all
        // threads.
        static FOR_ALL_THREADS: Once = Once::new();
        FOR_ALL_THREADS.call_once(|| _ = tracing::subscriber::set_global_default(Self::default()));
        tracing::subscriber::set_default(self.clone())
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("informer_reflector") && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        _ = self.status.lock().as_ref().map(ReflectorStatus::quarantined);
        let mut line = Message::default();
        event.record(&mut line);
        self.lines.lock().push(line.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// The message and the fields of an event.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let space = if self.0.is_empty() { "" } else { " " };
        match field.name() {
            "message" => self.0 += &format!("{space}{value:?}"),
            name => self.0 += &format!("{space}{name}={value:?}"),
        }
    }
}
