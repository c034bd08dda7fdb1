//! How a handler wants to be served: [`HandlerOptions`].

use std::time::Duration;

/// How a handler wants to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerOptions {
    /// The handler's name in messages. Default: the type of the handler.
    pub name: Option<String>,
    /// How often the handler wants every object handed out again. Default: [`Resync::Default`].
    pub resync: Resync,
    /// How many events may wait, the one that the handler is being called with included, before further ones are
    /// coalesced per key; `None`: any number, at the price of memory without bound. Default: 1,024. Zero counts as one.
    ///
    /// A batch that begins below the threshold is taken as a whole, so at most the threshold, one batch, and one event
    /// per key wait (I11).
    pub threshold: Option<usize>,
    /// Whether an update that was coalesced may come with the new state in the place of the old one, too. Default: no,
    /// it comes with the state that the handler was told last.
    ///
    /// That state is mostly one that nobody else holds any more. A handler that is stuck while every object changes
    /// keeps a second copy of the whole cache alive with it; one that only looks at keys, or at what is true now, can do
    /// without. A deletion that was coalesced then comes with the last state that there was as the one told last.
    /// Ignored where [`EventHandler::needs_old_states`](crate::EventHandler::needs_old_states) says so.
    pub forgoes_old_states: bool,
}

/// How often a handler has every object handed out again as an unchanged update.
///
/// A resync asks nothing of the server: it replays what is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Resync {
    /// As often as the informer does by default.
    #[default]
    Default,
    /// Never.
    Never,
    /// After this time, rounded up to a multiple of the informer's check period; at least one second. Zero means
    /// never.
    ///
    /// The informer's check period is settled when it starts, as the shortest that anybody has asked for until then.
    /// A handler that joins later and asks for a shorter one is served at that period, and has no resyncs if nobody
    /// wanted any; the log says so. These are client-go's rules.
    Every(Duration),
}

impl Resync {
    /// Nobody has resyncs more often.
    pub(super) const SHORTEST: Duration = Duration::from_secs(1);

    /// The period asked for, given the informer's default. Zero means never, as in client-go.
    pub(super) fn period(self, default: Option<Duration>) -> Option<Duration> {
        // Beyond this it makes no difference, and a sum with it can't overflow a clock.
        const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
        let asked = match self {
            Self::Default => default,
            Self::Never => None,
            Self::Every(period) => Some(period),
        };
        asked.filter(|period| !period.is_zero()).map(|period| period.clamp(Self::SHORTEST, LONGEST))
    }
}

impl Default for HandlerOptions {
    fn default() -> Self {
        Self { name: None, resync: Resync::Default, threshold: Some(1024), forgoes_old_states: false }
    }
}

impl HandlerOptions {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name by which messages call the handler.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how often the handler wants every object handed out again.
    #[must_use]
    pub fn resync(mut self, resync: Resync) -> Self {
        self.resync = resync;
        self
    }

    /// Sets how many events may wait before further ones are coalesced per key; `None`: any number.
    #[must_use]
    pub fn threshold(mut self, threshold: Option<usize>) -> Self {
        self.threshold = threshold;
        self
    }

    /// Lets updates that were coalesced come with the new state in the place of the old one, which spares the memory of
    /// the old ones while the handler is behind.
    #[must_use]
    pub fn coalesce_drops_old(mut self) -> Self {
        self.forgoes_old_states = true;
        self
    }
}
