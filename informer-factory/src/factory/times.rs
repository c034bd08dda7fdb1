//! [`Times`]: how long watches last, and how long the server may be silent, where a factory or a type has its own idea.
//!
//! What each is for, and its limits, is said at [`ReflectorConfig`], which they are set on.

use std::time::Duration;

use informer_reflector::ReflectorConfig;

/// What was said of times. What was not is as the reflector has it by default.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) watch_timeout: Option<Duration>,
    pub(super) watch_idle_timeout: Option<Duration>,
    pub(super) list_stall_timeout: Option<Duration>,
}

impl Times {
    /// These, and those of `others` where these say nothing.
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
