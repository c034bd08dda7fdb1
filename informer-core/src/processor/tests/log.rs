//! Records the crate's log, so that tests can read it.

use std::sync::Once;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Records the log of all threads from now on. The subscriber is global, because tracing caches for
/// all threads whether a message is enabled.
pub(super) fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| _ = tracing::subscriber::set_global_default(Log));
}

/// Returns the recorded log lines about the handler with this name.
pub(super) fn about(handler: &str) -> Vec<String> {
    LINES.lock().iter().filter(|line| line.contains(&format!("handler={handler} "))).cloned().collect()
}

struct Log;

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("informer_core") && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(format!("{} ", event.metadata().level()));
        event.record(&mut line);
        LINES.lock().push(line.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}
