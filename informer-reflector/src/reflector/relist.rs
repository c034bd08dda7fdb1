//! [`RelistHandle`]: requests a relist from a reflector.
//!
//! A relist, like every list, causes changes only for objects that differ from the stored objects.
//! A [`DeltaFifo`](informer_core::DeltaFifo) without access to a store also queues the unchanged
//! objects that its consumer has already processed.

use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::Notify;

/// Requests relists from a [`Reflector`](super::Reflector). A clone is another handle to the same
/// reflector.
#[derive(Debug, Clone)]
pub struct RelistHandle {
    requests: Arc<Notify>,
}

impl RelistHandle {
    pub(super) fn new() -> Self {
        Self { requests: Arc::new(Notify::new()) }
    }

    /// Makes the reflector end its watch and relist. Several requests before the relist count as
    /// one.
    pub fn request(&self) {
        self.requests.notify_one();
    }

    pub(super) async fn requested(&self) {
        self.requests.notified().await;
    }

    pub(super) fn clear_requests(&self) {
        _ = self.requests.notified().now_or_never();
    }
}
