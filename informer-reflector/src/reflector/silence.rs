//! [`SilenceDetector`]: the time of the last data from the server, and the detection of silent
//! connections.

use std::time::Duration;

use tokio::time::Instant;

/// The number of consecutive silent connections that are replaced after the configured time. All
/// further silent connections are replaced after at least [`FIRST_BOOKMARK`]. When data of a watch
/// arrives, the count starts again at 0.
const MAX_QUICK_REPLACEMENTS: u32 = 2;

/// The longest time from the start of a watch until its first bookmark. Kubernetes 1.36 sends the
/// bookmark after two minutes.
const FIRST_BOOKMARK: Duration = Duration::from_secs(125);

#[derive(Debug)]
pub(super) struct SilenceDetector {
    /// The time at which the last data of a watch, or the last complete list, arrived.
    pub(super) last_event: Instant,
    /// The time from which the silence is measured: the last data, the start of the watch, or the
    /// end of a pause in reading.
    pub(super) quiet_since: Instant,
    /// `false` while a watch waits because the store has no room: the reflector then reads no data.
    pub(super) is_reading: bool,
    /// The number of consecutive connections that the reflector replaced because no data arrived.
    /// Data of a watch resets the number to 0.
    pub(super) silent_connections: u32,
}

impl Default for SilenceDetector {
    fn default() -> Self {
        let now = Instant::now();
        Self { last_event: now, quiet_since: now, is_reading: true, silent_connections: 0 }
    }
}

impl SilenceDetector {
    pub(super) fn received(&mut self) {
        self.quiet_since = Instant::now();
        self.last_event = self.quiet_since;
    }

    /// Measures the silence from now on.
    pub(super) fn restart(&mut self) {
        self.quiet_since = Instant::now();
    }

    /// Returns the time without data after which the reflector replaces the connection. After two
    /// silent connections in a row, the time is at least two minutes.
    pub(super) fn limit(&self, configured: Duration) -> Duration {
        // If no object changes, even a working connection is silent until its first bookmark.
        let is_quick = self.silent_connections < MAX_QUICK_REPLACEMENTS;
        if is_quick { configured } else { configured.max(FIRST_BOOKMARK) }
    }

    /// Returns whether no data has arrived for the time `limit`, although the reflector was
    /// reading.
    pub(super) fn is_silent(&self, limit: Duration) -> bool {
        self.is_reading && self.quiet_since.elapsed() >= limit
    }
}
