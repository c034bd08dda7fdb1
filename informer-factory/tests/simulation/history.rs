//! [`History`]: a log of a run, to explain failures and to compare runs.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The log lines and the violations of a run. Clones share them.
#[derive(Clone)]
pub(crate) struct History {
    began: Instant,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    lines: Vec<Line>,
    violations: Vec<Violation>,
}

struct Line {
    at: f64,
    /// The object that the line is about, if any.
    key: Option<String>,
    text: String,
}

/// A violation of an invariant.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) key: Option<String>,
    pub(crate) text: String,
}

impl History {
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), state: Arc::default() }
    }

    /// Adds a line about the run.
    pub(crate) fn log(&self, text: impl Into<String>) {
        self.add(None, text.into());
    }

    /// Adds a line about one object.
    pub(crate) fn log_object(&self, key: &str, text: impl Into<String>) {
        self.add(Some(key.to_owned()), text.into());
    }

    /// Adds a violation, and a line about it.
    pub(crate) fn violation(&self, key: Option<&str>, text: impl Into<String>) {
        let text = text.into();
        self.add(key.map(str::to_owned), format!("VIOLATION {text}"));
        self.state.lock().violations.push(Violation { key: key.map(str::to_owned), text });
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.state.lock().violations.clone()
    }

    /// Formats all lines.
    pub(crate) fn print(&self) -> String {
        self.print_lines(|_| true)
    }

    /// Formats the lines about one object and those about the run; all lines if `key` is `None`.
    pub(crate) fn print_about(&self, key: Option<&str>) -> String {
        self.print_lines(|line| key.is_none() || line.key.is_none() || line.key.as_deref() == key)
    }

    fn print_lines(&self, keep: impl Fn(&Line) -> bool) -> String {
        let state = self.state.lock();
        let lines = state.lines.iter().filter(|line| keep(line));
        lines
            .map(|Line { at, key, text }| match key {
                Some(key) => format!("{at:>9.3} {key}: {text}\n"),
                None => format!("{at:>9.3} {text}\n"),
            })
            .collect()
    }

    fn add(&self, key: Option<String>, text: String) {
        let at = self.began.elapsed().as_secs_f64();
        self.state.lock().lines.push(Line { at, key, text });
    }
}
