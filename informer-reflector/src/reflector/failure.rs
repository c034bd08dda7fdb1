//! [`ListWatchFailure`]: a failed list or watch, for the failure handler.
//!
//! client-go: `WatchErrorHandler` of tools/cache/reflector.go, which is called only for failures
//! that lead to a relist.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use informer_core::{ListWatchError, panic_message};

/// A failed list or watch, and the reflector's next request.
#[derive(Debug)]
#[non_exhaustive]
pub struct ListWatchFailure<'a> {
    /// The resource and its scope for messages, such as `pods in namespace "shop"`.
    pub description: &'a str,
    /// The error of the failed list or watch.
    pub error: &'a ListWatchError,
    /// The reflector's next request after this failure, unless a relist is requested before it.
    pub next: NextRequest,
    /// The planned wait before the next request; zero if the request follows immediately. While the
    /// server is unavailable, the reflector can send the request later or earlier than planned (see
    /// [`SharedServer`](super::SharedServer)).
    pub wait: Duration,
}

/// A reflector's next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextRequest {
    /// A list, streaming or paged.
    List,
    /// A watch from the last resource version on.
    Watch,
}

pub(super) type OnFailure = Arc<dyn Fn(&ListWatchFailure<'_>) + Send + Sync>;

/// Calls the failure handler, if any. No lock is held (invariant I8), and a panic of the handler is
/// logged (invariant I12).
pub(super) fn report(handler: Option<&OnFailure>, failure: &ListWatchFailure<'_>) {
    let Some(handler) = handler else { return };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| handler(failure))) {
        let panic = panic_message(payload);
        tracing::error!(resource = failure.description, panic, "on_failure callback panicked");
    }
}
