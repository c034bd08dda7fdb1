//! [`Times`]: the timeouts that a factory or a type sets. [`ReflectorConfig`] documents them and their limits.

use std::time::Duration;

use informer_reflector::ReflectorConfig;

/// Timeouts; `None` leaves the reflector's default.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) watch_timeout: Option<Duration>,
    pub(super) watch_idle_timeout: Option<Duration>,
    pub(super) list_stall_timeout: Option<Duration>,
}

impl Times {
    /// Returns these timeouts, completed by `others`.
    pub(super) fn or(self, others: Self) -> Self {
        Self {
            watch_timeout: self.watch_timeout.or(others.watch_timeout),
            watch_idle_timeout: self.watch_idle_timeout.or(others.watch_idle_timeout),
            list_stall_timeout: self.list_stall_timeout.or(others.list_stall_timeout),
        }
    }

    pub(super) fn set<K>(self, mut reflector: ReflectorConfig<K>) -> ReflectorConfig<K> {
        if let Some(at_least) = self.watch_timeout {
            reflector = reflector.watch_timeout(at_least);
        }
        if let Some(at_most) = self.watch_idle_timeout {
            reflector = reflector.watch_idle_timeout(at_most);
        }
        if let Some(at_most) = self.list_stall_timeout {
            reflector = reflector.list_stall_timeout(at_most);
        }
        reflector
    }
}
