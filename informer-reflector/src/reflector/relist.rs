//! [`RelistHandle`]: has a reflector list again, though it could go on watching.
//!
//! What a list brings is compared with what is known, as always, so nothing else comes of it than what was wrong.

use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::Notify;

/// Has a [`Reflector`](super::Reflector) list again. Cloning gives another handle on the same reflector.
#[derive(Debug, Clone)]
pub struct RelistHandle {
    requests: Arc<Notify>,
}

impl RelistHandle {
    pub(super) fn new() -> Self {
        Self { requests: Arc::new(Notify::new()) }
    }

    /// Has the reflector give up its watch and list, as soon as it watches or is about to. Requests that come before
    /// it lists are one.
    pub fn request(&self) {
        self.requests.notify_one();
    }

    /// Waits for a request.
    pub(super) async fn requested(&self) {
        self.requests.notified().await;
    }

    /// A list begins, so that what was requested until now is on its way.
    pub(super) fn mark_answered(&self) {
        _ = self.requests.notified().now_or_never();
    }
}
