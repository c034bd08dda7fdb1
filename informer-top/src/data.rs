//! The JSON documents that the inspector returns, and the rates that are computed from them.
//!
//! Unknown fields are ignored, and most missing fields have a default, so that other versions of
//! informer-monitor can be read, too.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// A text without characters that could control the terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Text(String);

impl Text {
    /// Replaces white space by spaces. Removes control characters, sequences that begin with
    /// `ESC [`, and characters that change the direction of text. The text of other escape
    /// sequences stays.
    pub(crate) fn new(text: &str) -> Self {
        let mut shown = String::with_capacity(text.len());
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                // `ESC [` begins a sequence such as a color, which ends with one of these characters.
                '\u{1B}' if letters.next_if_eq(&'[').is_some() => {
                    letters.by_ref().find(|letter| matches!(letter, '@'..='~'));
                }
                '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {}
                _ if letter.is_whitespace() => shown.push(' '),
                _ if letter.is_control() => {}
                _ => shown.push(letter),
            }
        }
        Self(shown)
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(&String::deserialize(deserializer)?))
    }
}

/// The document of `/inspect/api/overview`. A document without the required fields is not from an
/// inspector.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Overview {
    /// The time since the inspector was created, in milliseconds.
    pub(crate) at: u64,
    #[serde(default)]
    pub(crate) memory: Option<u64>,
    pub(crate) informers: Vec<Informer>,
    #[serde(default)]
    pub(crate) controllers: Vec<Controller>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Informer {
    /// Identifies the informer in requests. The text must not be shown unchanged, because the
    /// server can send characters that control the terminal.
    pub(crate) id: String,
    pub(crate) description: Text,
    pub(crate) object: Text,
    pub(crate) state: Text,
    pub(crate) synced: bool,
    pub(crate) health: Text,
    pub(crate) health_text: Text,
    /// The age of the last event, bookmark or list; `None` if the informer is not live.
    pub(crate) last_event_ms: Option<f64>,
    pub(crate) objects: u64,
    pub(crate) bytes: Option<u64>,
    pub(crate) watermark: Text,
    pub(crate) received: Text,
    pub(crate) queued: u64,
    pub(crate) quarantined: u64,
    pub(crate) lists: u64,
    pub(crate) watches: u64,
    pub(crate) failures: u64,
    pub(crate) events: Events,
    pub(crate) handlers: Vec<Handler>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Events {
    pub(crate) added: u64,
    pub(crate) modified: u64,
    pub(crate) deleted: u64,
    pub(crate) bookmarks: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Handler {
    pub(crate) name: Text,
    pub(crate) pending: u64,
    pub(crate) delivered: u64,
    pub(crate) coalesced: u64,
    pub(crate) panicked: u64,
    pub(crate) busy_ms: f64,
    pub(crate) slowest_ms: f64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Controller {
    pub(crate) name: Text,
    pub(crate) queued: u64,
    pub(crate) active: u64,
    pub(crate) longest_ms: f64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) parked_now: u64,
    pub(crate) parked_keys: Vec<ParkedKey>,
    pub(crate) failed_keys: Vec<FailedKey>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ParkedKey {
    pub(crate) key: Text,
    pub(crate) age_ms: f64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct FailedKey {
    pub(crate) key: Text,
    pub(crate) failure: Text,
    pub(crate) failures: u64,
    pub(crate) retry_ms: f64,
}

/// The fields of the document of `/inspect/api/informer` that the overview lacks and this program
/// shows.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Details {
    pub(crate) recent_lists: Vec<RecentList>,
    pub(crate) failures_by_cause: BTreeMap<Text, u64>,
    pub(crate) quarantined_objects: Vec<Quarantined>,
    pub(crate) namespaces: Vec<Namespace>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RecentList {
    pub(crate) cause: Text,
    pub(crate) age_ms: f64,
    pub(crate) took_ms: f64,
    pub(crate) objects: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Quarantined {
    pub(crate) key: Option<Text>,
    pub(crate) error: Text,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Namespace {
    pub(crate) name: Text,
    pub(crate) health_text: Text,
}

/// How bad the state of an informer is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    Bad,
    Busy,
    Good,
}

impl Informer {
    /// Returns the severity by the rules of the inspector's page (`server.js` of informer-monitor).
    pub(crate) fn severity(&self) -> Severity {
        match (&*self.state, &*self.health) {
            ("panicked" | "stopped", _) => Severity::Bad,
            ("not started", _) => Severity::Busy,
            (_, "live") if self.quarantined > 0 => Severity::Busy,
            (_, "live") => Severity::Good,
            (_, "connecting" | "syncing") => Severity::Busy,
            _ => Severity::Bad,
        }
    }

    /// Returns the health of a running informer in words, or the state of an informer that does not
    /// run.
    pub(crate) fn health_words(&self) -> String {
        let quarantined = match self.quarantined {
            0 => String::new(),
            number => format!(", {number} quarantined"),
        };
        match (&*self.state, &*self.health) {
            ("running" | "", "live") => format!("live{quarantined}"),
            ("running" | "", _) if self.health_text.is_empty() => self.health.to_string(),
            ("running" | "", _) => self.health_text.to_string(),
            (state, _) => state.to_owned(),
        }
    }

    /// Returns the number of pending events of the handler with the most, including the event of
    /// its current call; 0 without handlers.
    pub(crate) fn lag(&self) -> u64 {
        self.handlers.iter().map(|handler| handler.pending).max().unwrap_or(0)
    }
}

/// The numbers of an informer's events and handler calls per second. Both are `None` if they are
/// unknown, for example for a new informer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) events: Option<f64>,
    pub(crate) calls: Option<f64>,
}

/// The time of the previous [`Overview`], and the numbers of each informer's events and handler
/// calls at that time.
#[derive(Debug, Default)]
pub(crate) struct History {
    at: u64,
    counters: HashMap<String, [u64; 2]>,
}

impl History {
    /// Returns each informer's rates since the previous overview, by the identifier of the
    /// informer. If a restart of the observed program is detected, all rates are `None`. `age`, the
    /// time since the previous overview was received, is only used to detect a restart.
    pub(crate) fn rates(&mut self, overview: &Overview, age: Duration) -> HashMap<String, Rates> {
        // `inspector.js` of informer-monitor computes the same rates for the inspector's page, but
        // does not check whether the program has restarted.
        let seconds = overview.at.saturating_sub(self.at) as f64 / 1000.0;
        // The inspector was created after the previous overview, so its program has probably
        // restarted.
        let has_restarted = Duration::from_millis(overview.at) < age;
        let counters: HashMap<_, _> =
            overview.informers.iter().map(|informer| (informer.id.clone(), totals(informer))).collect();
        let rates = counters.iter().map(|(id, now)| {
            let before = self.counters.get(id).filter(|_| seconds > 0.0 && !has_restarted);
            let rate = |index: usize| Some(now[index].saturating_sub(before?[index]) as f64 / seconds);
            (id.clone(), Rates { events: rate(0), calls: rate(1) })
        });
        let rates = rates.collect();
        (self.at, self.counters) = (overview.at, counters);
        rates
    }
}

/// Returns the numbers of an informer's events (without bookmarks) and handler calls.
fn totals(informer: &Informer) -> [u64; 2] {
    let events = &informer.events;
    let calls = informer.handlers.iter().map(|handler| handler.delivered).sum();
    [events.added + events.modified + events.deleted, calls]
}
