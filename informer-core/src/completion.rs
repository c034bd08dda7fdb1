//! [`Completion`]: a promise that is kept once, or given up, and can be asked for or awaited by many.

use thiserror::Error;

use crate::sync::Latch;

/// Whether something has happened that happens only once: a first list is in the store, a handler has seen its
/// initial objects.
///
/// Clones share one state. Nothing is polled: waiters are woken when it happens, and also when it has become clear that
/// it never will.
#[doc(alias = "DoneChecker")]
#[doc(alias = "InformerSynced")]
#[derive(Debug, Clone, Default)]
pub struct Completion {
    kept: Latch,
    given_up: Latch,
}

/// What was waited for has been stopped, and will not sync any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("stopped before it was synced")]
pub struct NeverSynced;

impl Completion {
    /// Returns a promise that is not kept yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the promise and wakes all who wait; later calls change nothing.
    pub fn set(&self) {
        self.kept.set();
    }

    /// Returns the promise up, if it isn't kept, and wakes all who wait.
    pub fn give_up(&self) {
        self.given_up.set();
    }

    /// Returns whether the promise has been kept.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.kept.is_set()
    }

    /// Waits until the promise is kept.
    ///
    /// # Errors
    /// [`NeverSynced`] if it was given up first.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn wait(&self) -> Result<(), NeverSynced> {
        tokio::select! {
            biased;
            () = self.kept.wait() => Ok(()),
            // Both may have happened since the first look, in this order.
            () = self.given_up.wait() => if self.has_synced() { Ok(()) } else { Err(NeverSynced) },
        }
    }
}

#[cfg(all(test, not(informer_loom)))]
mod tests {
    use std::sync::Barrier;

    use futures::FutureExt;

    use super::*;

    #[test]
    fn completed_then_abandoned_completion_stays_completed() {
        let promises: Vec<Completion> = (0..20_000).map(|_| Completion::new()).collect();
        let both_ready = Barrier::new(2);
        // Counted first: who panics here lets the other wait for ever.
        let mut kept = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for promise in &promises {
                    both_ready.wait();
                    promise.set();
                    promise.give_up();
                }
            });
            for promise in &promises {
                both_ready.wait();
                let waited = std::iter::repeat_with(|| promise.wait().now_or_never()).flatten().next();
                kept += usize::from(waited == Some(Ok(())));
            }
        });
        assert_eq!(kept, promises.len());
    }
}
