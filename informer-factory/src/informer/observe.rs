//! The state, health and statistics of a [`SharedIndexInformer`].

use std::sync::Arc;

use informer_core::{HandlerStats, ResourceVersion};
use informer_reflector::Health;

use super::{InformerState, SharedIndexInformer, StopCause};
use crate::source::SourceStatus;

impl<K: Send + Sync + 'static> SharedIndexInformer<K> {
    /// Returns the status of the informer's lists and watches.
    #[must_use]
    pub fn status(&self) -> &SourceStatus {
        &self.shared.status
    }

    /// Returns the number of objects with queued changes or resyncs. The store does not have these
    /// changes yet.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.shared.queue.len()
    }

    /// Returns the names and statistics of all handlers and event streams.
    #[must_use]
    pub fn handlers(&self) -> Vec<(String, HandlerStats)> {
        self.shared.processor.handlers()
    }

    /// Returns the resource version that the store has reached; empty until the initial list is in
    /// the store. For an informer of several namespaces, this is the lowest version that the store
    /// has reached in any of them, and empty until all of them have been listed.
    #[must_use]
    pub fn watermark(&self) -> ResourceVersion {
        self.shared.indexer.watermark()
    }

    /// Returns whether the informer is idle, running or stopped, and why it stopped.
    #[must_use]
    #[doc(alias = "IsStopped")]
    pub fn state(&self) -> InformerState {
        *self.shared.state.borrow()
    }

    /// Waits until the informer has stopped, and returns the cause.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    pub async fn stopped(&self) -> StopCause {
        let mut state = self.shared.state.clone();
        let ended = state.wait_for(|state| matches!(state, InformerState::Stopped(_))).await;
        match ended.as_deref() {
            Ok(InformerState::Stopped(cause)) => *cause,
            // Unreachable: `StateKeeper` sets `Stopped` before it drops the sender.
            _ => StopCause::Dropped,
        }
    }

    /// Returns whether the informer has a handler or event stream, or a handle besides `self`, or
    /// the program has a handle of its store.
    pub(crate) fn is_in_use(&self) -> bool {
        // Store handles of the program are in an `Indexer`, a `Lister` or an `Index`.
        Arc::strong_count(&self.shared) > 1
            || self.shared.indexer.handle_count() > self.shared.own_handles
            || self.shared.processor.handler_count() > 0
    }

    /// Returns the current health of listing and watching; for several namespaces, the worst health
    /// among them.
    #[must_use]
    pub fn health(&self) -> Health {
        self.shared.status.health()
    }
}
