//! [`Completion`]: a one-time event for which any number of tasks can wait.

use std::sync::{Arc, OnceLock};

use thiserror::Error;

use crate::sync::Latch;

/// A one-time event for which any number of tasks can wait, for example: the initial list is in the
/// store.
///
/// Clones share one state. A completion ends in one of two ways, and both wake all waiters: it is
/// [set](Self::set), or it is [cancelled](Self::cancel) because the event will never happen.
#[doc(alias = "DoneChecker")]
#[doc(alias = "InformerSynced")]
#[derive(Debug, Clone, Default)]
pub struct Completion {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `true` if the completion has been set, and `false` if it has been cancelled.
    outcome: OnceLock<bool>,
    /// Set after `outcome`.
    ended: Latch,
}

/// The error of [`Completion::wait`] if the completion was cancelled. The event will never happen,
/// for one of these reasons:
///
/// - The informer, the handler or the queue has stopped.
/// - The event is the sync of a namespace, and the namespace was removed before it was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the awaited event will never happen: the informer or handler has stopped, or the namespace to sync was removed"
)]
pub struct NeverSynced;

impl Completion {
    /// Returns a completion that is neither set nor cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the completion and wakes all waiters. Has no effect if the completion is set or
    /// cancelled.
    pub fn set(&self) {
        self.end(true);
    }

    /// Declares that the event of this completion will never happen. Every [`wait`](Self::wait)
    /// then returns [`NeverSynced`]. Has no effect if the completion is set.
    pub fn cancel(&self) {
        self.end(false);
    }

    fn end(&self, is_set: bool) {
        if self.state.outcome.set(is_set).is_ok() {
            self.state.ended.set();
        }
    }

    /// Returns the number of handles of this completion: this one and its clones.
    #[doc(hidden)]
    #[must_use]
    pub fn handle_count(&self) -> usize {
        Arc::strong_count(&self.state)
    }

    /// Returns whether the completion is set.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.state.outcome.get() == Some(&true)
    }

    /// Waits until the completion is set.
    ///
    /// # Errors
    /// [`NeverSynced`] if the completion has been cancelled and is not set.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future only ends this wait.
    pub async fn wait(&self) -> Result<(), NeverSynced> {
        self.state.ended.wait().await;
        if self.has_synced() { Ok(()) } else { Err(NeverSynced) }
    }
}

#[cfg(all(test, not(informer_loom)))]
mod tests {
    use std::sync::Barrier;

    use futures::FutureExt;

    use super::*;

    #[test]
    fn completion_set_and_then_cancelled_stays_set() {
        let completions: Vec<Completion> = (0..20_000).map(|_| Completion::new()).collect();
        let both_ready = Barrier::new(2);
        // The result is counted here and asserted after the scope: a panic here would leave the
        // other thread waiting at the barrier.
        let mut kept = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for completion in &completions {
                    both_ready.wait();
                    completion.set();
                    completion.cancel();
                }
            });
            for completion in &completions {
                both_ready.wait();
                let waited = std::iter::repeat_with(|| completion.wait().now_or_never()).flatten().next();
                kept += usize::from(waited == Some(Ok(())));
            }
        });
        assert_eq!(kept, completions.len());
    }

    #[test]
    fn cancelled_completion_is_never_set() {
        let completion = Completion::new();
        completion.cancel();
        completion.set();
        assert!(!completion.has_synced());
        assert_eq!(completion.wait().now_or_never(), Some(Err(NeverSynced)));
    }
}
