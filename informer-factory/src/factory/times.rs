//! [`Times`]: how long watches last, and how long the server may be silent, where a factory or a type has its own idea.
//!
//! What each is for, and its limits, is said at [`ReflectorConfig`], which they are set on.

use std::time::Duration;

use informer_reflector::ReflectorConfig;

/// What was said of times. What was not is as the reflector has it by default.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) watch_timeout: Option<Duration>,
    pub(super) watch_silence: Option<Duration>,
    pub(super) stream_pause: Option<Duration>,
}

impl Times {
    /// These, and those of `others` where these say nothing.
    pub(super) fn or(self, others: Self) -> Self {
        Self {
            watch_timeout: self.watch_timeout.or(others.watch_timeout),
            watch_silence: self.watch_silence.or(others.watch_silence),
            stream_pause: self.stream_pause.or(others.stream_pause),
        }
    }

    pub(super) fn set<K>(self, mut reflector: ReflectorConfig<K>) -> ReflectorConfig<K> {
        if let Some(at_least) = self.watch_timeout {
            reflector = reflector.watch_timeout(at_least);
        }
        if let Some(at_most) = self.watch_silence {
            reflector = reflector.watch_silence(at_most);
        }
        if let Some(at_most) = self.stream_pause {
            reflector = reflector.stream_pause(at_most);
        }
        reflector
    }
}
