//! [`ListWatchFailure`]: what is told of a list or watch that has failed.
//!
//! client-go: `WatchErrorHandler` of tools/cache/reflector.go, which hears only of what ends in a relist.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use informer_core::{ListWatchError, panic_message};

/// A list or watch that has failed, and what the reflector does next.
#[derive(Debug)]
#[non_exhaustive]
pub struct ListWatchFailure<'a> {
    /// What is listed and watched, for messages.
    pub description: &'a str,
    /// What went wrong.
    pub error: &'a ListWatchError,
    /// What the server is asked for next.
    pub next: NextRequest,
    /// How long the reflector waits before that; zero if it goes on at once. While the server is away it may be longer,
    /// until it is the reflector's [turn](super::SharedServer), or shorter.
    pub wait: Duration,
}

/// What a reflector asks the server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextRequest {
    /// Everything that exists, as a streaming list or in pages.
    List,
    /// What happens after the last version that was seen.
    Watch,
}

/// Hears of each failure.
pub(super) type OnFailure = Arc<dyn Fn(&ListWatchFailure<'_>) + Send + Sync>;

/// Calls `hears`, whose panic ends that call and nothing else (I12). No lock is held (I8).
pub(super) fn tell(hears: Option<&OnFailure>, failure: &ListWatchFailure<'_>) {
    let Some(hears) = hears else { return };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| hears(failure))) {
        let panic = panic_message(payload);
        tracing::error!(resource = failure.description, panic, "on_failure callback panicked");
    }
}
