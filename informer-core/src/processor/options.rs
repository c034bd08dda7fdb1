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
    /// If this number of events or more is waiting for the handler, new events are coalesced:
    /// events of the same object are merged into one. The event that the handler is processing
    /// counts as waiting. The objects that exist when the handler is added do not count. Default:
    /// 1,024. Zero means one. With `None`, events are never coalesced, and memory is unbounded.
    ///
    /// A handler is slow while events are coalesced for it. Apart from events that are just being
    /// merged, the number of waiting events of a slow handler is at most the sum of:
    ///
    /// - the threshold,
    /// - the number of events of one transaction of the store,
    /// - the merged events: one per object, or two per object that was deleted and added again.
    ///
    /// If two or more handlers are slow at the same time, the bound is higher until they have all
    /// caught up: with `n` slow handlers, up to `n + 1` merged events of the same object can wait
    /// for each of them (or two times that number, if the object was deleted and added again).
    pub threshold: Option<usize>,
    /// Whether a slow handler receives updates without the old object, to save memory. A handler is
    /// slow once the number of waiting events has reached the
    /// [`threshold`](Self#structfield.threshold). Default: `false`.
    ///
    /// - `false`: the old object of an update is always the last version that the handler received.
    ///   A waiting update keeps this old version in memory. If every object changes while a handler
    ///   is blocked, memory contains two versions of every object.
    /// - `true`: an update that arrives while the handler is slow contains the new object as both
    ///   the old and the new object. [`Deleted::previous`](crate::Deleted::previous) can be a
    ///   version that the handler did not receive. Set the option to `true` only for a handler that
    ///   needs no old versions.
    ///
    /// The option is ignored if
    /// [`EventHandler::needs_old_states`](crate::EventHandler::needs_old_states) returns `true`.
    pub coalesce_drops_old: bool,
}

/// How often a handler receives every stored object again, as an unchanged update. Objects with an
/// unprocessed change are skipped.
///
/// A resync sends no request to the server. Slow handlers share waiting events, so a slow handler
/// can also receive resyncs that were due only for another handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Resync {
    /// The informer's default period.
    #[default]
    Default,
    /// No resyncs.
    Never,
    /// A resync after each such period. The period is rounded up to a multiple of the informer's
    /// check period, and to at least one second. Zero means no resyncs. More than a year means a
    /// year.
    ///
    /// The check period is the interval at which the informer looks for due resyncs. When the
    /// informer starts, it sets the check period to the shortest of its default period and the
    /// periods of its handlers. For a handler that is added after the start, there are two limits,
    /// and both are logged:
    ///
    /// - If the handler requests a shorter period than the check period, its period is the check
    ///   period.
    /// - If there is no check period, because no period was set before the start, the handler gets
    ///   no resyncs.
    ///
    /// These are client-go's rules, except two: client-go has no maximum, and in client-go, no
    /// handler gets resyncs if the informer has no default period.
    Every(Duration),
}

impl Resync {
    pub(super) const MIN: Duration = Duration::from_secs(1);

    /// Returns the resync period of a handler, between one second and a year; `None` for no
    /// resyncs. `default` is the period for [`Resync::Default`].
    pub(super) fn period(self, default: Option<Duration>) -> Option<Duration> {
        // Periods are limited, so that adding a period to a time cannot overflow.
        const MAX: Duration = Duration::from_secs(365 * 24 * 3600);
        let requested = match self {
            Self::Default => default,
            Self::Never => None,
            Self::Every(period) => Some(period),
        };
        // As in client-go, zero means no resyncs.
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

    /// Sets the threshold: if this number of events or more is waiting for the handler, new events
    /// of the same object are merged into one. `None` means that events are never merged.
    #[must_use]
    pub fn threshold(mut self, threshold: Option<usize>) -> Self {
        self.threshold = threshold;
        self
    }

    /// Saves memory: an update that arrives while the handler is slow contains the new object also
    /// as the old object. See [`coalesce_drops_old`](Self#structfield.coalesce_drops_old).
    #[must_use]
    pub fn coalesce_drops_old(mut self) -> Self {
        self.coalesce_drops_old = true;
        self
    }
}
