//! The settings of one handler: [`HandlerOptions`] and [`Resync`].

use std::time::Duration;

/// The settings of one handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerOptions {
    /// The handler's name in messages. Default: the type of the handler.
    pub name: Option<String>,
    /// The resync period of the handler. Default: [`Resync::Default`].
    pub resync: Resync,
    /// The number of waiting events at which further events are coalesced per key. The event of the
    /// current call counts. Default: 1,024. Zero counts as one. `None` never coalesces, and memory
    /// is then unbounded.
    ///
    /// If fewer events than the threshold are waiting, the next batch is added as a whole. So the
    /// waiting events are at most the threshold, one batch, and one event per key (I11).
    pub threshold: Option<usize>,
    /// Whether a coalesced update has the new object also as its old object. Default: `false`; its
    /// old object is the last object that the handler received.
    ///
    /// Usually only the waiting event retains that last object. If every object changes while a
    /// handler is blocked, a second copy of the whole cache stays in memory. Set this for a handler
    /// that only needs keys or current objects. A coalesced deletion then has its last known object
    /// as [`Deleted::previous`](crate::Deleted::previous). Ignored if
    /// [`EventHandler::needs_old_states`](crate::EventHandler::needs_old_states) returns `true`.
    pub coalesce_drops_old: bool,
}

/// The period after which a handler receives every stored object again, as an unchanged update.
///
/// A resync sends no request to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Resync {
    /// The informer's default period.
    #[default]
    Default,
    /// No resyncs.
    Never,
    /// This period, rounded up to a multiple of the informer's check period; at least one second.
    /// Zero means never.
    ///
    /// The check period is fixed when the informer starts: the shortest period that any handler has
    /// requested until then. A handler that is added later and requests a shorter period gets the
    /// check period, or no resyncs if there is no check period. Both are logged. These are
    /// client-go's rules.
    Every(Duration),
}

impl Resync {
    /// The shortest period.
    pub(super) const MIN: Duration = Duration::from_secs(1);

    /// Returns the requested period, given the informer's default. Zero means never, as in
    /// client-go.
    pub(super) fn period(self, default: Option<Duration>) -> Option<Duration> {
        // The sum of any time and this period can't overflow.
        const MAX: Duration = Duration::from_secs(365 * 24 * 3600);
        let requested = match self {
            Self::Default => default,
            Self::Never => None,
            Self::Every(period) => Some(period),
        };
        requested.filter(|period| !period.is_zero()).map(|period| period.clamp(Self::MIN, MAX))
    }
}

impl Default for HandlerOptions {
    fn default() -> Self {
        Self { name: None, resync: Resync::Default, threshold: Some(1024), coalesce_drops_old: false }
    }
}

impl HandlerOptions {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the handler's name in messages.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the resync period.
    #[must_use]
    pub fn resync(mut self, resync: Resync) -> Self {
        self.resync = resync;
        self
    }

    /// Sets the number of waiting events at which further events are coalesced per key; `None`:
    /// never.
    #[must_use]
    pub fn threshold(mut self, threshold: Option<usize>) -> Self {
        self.threshold = threshold;
        self
    }

    /// Makes coalesced updates drop the old object, which saves memory while the handler is behind;
    /// see [`coalesce_drops_old`](Self#structfield.coalesce_drops_old).
    #[must_use]
    pub fn coalesce_drops_old(mut self) -> Self {
        self.coalesce_drops_old = true;
        self
    }
}
