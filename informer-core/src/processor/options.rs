//! The settings of one handler: [`HandlerOptions`] and [`Resync`].

use std::time::Duration;

/// The settings of one handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerOptions {
    /// The handler's name in logs and messages. Default: the type of the handler.
    pub name: Option<String>,
    /// The resync period of the handler. Default: [`Resync::Default`].
    pub resync: Resync,
    /// If this number of events or more is waiting, new events are coalesced per key. The event
    /// that the handler is processing counts as waiting. Default: 1,024. Zero means one. With
    /// `None`, events are never coalesced, and memory is unbounded.
    ///
    /// If fewer events than the threshold are waiting, the next batch is added as a whole. So the
    /// number of waiting events of a single slow handler is at most the sum of the threshold, one
    /// batch, and one event per key (two for an object that was deleted and added again). Slow
    /// handlers share their coalesced events. A handler that becomes slow later needs only the
    /// later events, so these are coalesced separately from the earlier events. So each additional
    /// slow handler adds at most one coalesced event per key (or two, as above).
    pub threshold: Option<usize>,
    /// Whether a coalesced update has its new object also as its old object, and so does not keep
    /// the previous version in memory. Default: `false`; the old object is then the last version
    /// that the handler received.
    ///
    /// By default, a waiting update keeps the old object in memory, often as the only user of that
    /// object. If every object changes while a handler is blocked, memory contains two versions of
    /// every object. Set this option for a handler that only needs keys or current objects.
    /// [`Deleted::previous`](crate::Deleted::previous) of a coalesced deletion is then the newest
    /// version before the deletion. The option is ignored if
    /// [`EventHandler::needs_old_states`](crate::EventHandler::needs_old_states) returns `true`.
    pub coalesce_drops_old: bool,
}

/// The period after which a handler receives every stored object again, as an unchanged update.
///
/// A resync sends no request to the server. A handler that is behind can also receive resyncs that
/// were due only for other handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Resync {
    /// The informer's default period.
    #[default]
    Default,
    /// No resyncs.
    Never,
    /// A resync after this period, which is rounded up to a multiple of the informer's check
    /// period, and to at least one second. Zero means never.
    ///
    /// The check period is fixed when the informer starts: it is the shortest of the informer's
    /// default period and the periods that handlers have requested until then. A handler that is
    /// added later cannot get a shorter period: if it requests one, it gets the check period. If
    /// there is no check period, the handler gets no resyncs. Both cases are logged. These are
    /// client-go's rules, except one: in client-go, no handler gets resyncs if the informer has no
    /// default period.
    Every(Duration),
}

impl Resync {
    /// The shortest resync period.
    pub(super) const MIN: Duration = Duration::from_secs(1);

    /// Returns the requested period, but at least one second and at most a year; `None` for no
    /// resyncs. `default` is the informer's default period. A period of zero means no resyncs, as
    /// in client-go.
    pub(super) fn period(self, default: Option<Duration>) -> Option<Duration> {
        // Periods are limited, so that adding a period to a time cannot overflow.
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
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the handler's name in logs and messages.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the resync period of the handler.
    #[must_use]
    pub fn resync(mut self, resync: Resync) -> Self {
        self.resync = resync;
        self
    }

    /// Sets the threshold: if this number of events or more is waiting, new events are coalesced
    /// per key. `None` means that events are never coalesced.
    #[must_use]
    pub fn threshold(mut self, threshold: Option<usize>) -> Self {
        self.threshold = threshold;
        self
    }

    /// Makes coalesced updates drop the old object, which saves memory while the handler is slow;
    /// see [`coalesce_drops_old`](Self#structfield.coalesce_drops_old).
    #[must_use]
    pub fn coalesce_drops_old(mut self) -> Self {
        self.coalesce_drops_old = true;
        self
    }
}
