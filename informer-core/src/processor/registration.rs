//! [`HandlerRegistration`]: a handler's hold on its informer.

use std::fmt;
use std::sync::Arc;

use super::listener::{HandlerStats, ProcessorListener};
use crate::Synced;

/// Stands for a handler that listens to an informer. Dropping it removes the handler.
#[doc(alias = "ResourceEventHandlerRegistration")]
#[must_use = "dropping the registration removes the handler; call `detach` to leave it in place"]
pub struct HandlerRegistration {
    listener: Option<Arc<dyn Listener>>,
}

/// What a registration needs of a listener, whatever its objects are.
trait Listener: Send + Sync {
    fn name(&self) -> &str;
    fn synced(&self) -> &Synced;
    fn ended(&self) -> &Synced;
    fn stats(&self) -> HandlerStats;
    fn remove(&self);
}

impl<K: Send + Sync + 'static> Listener for ProcessorListener<K> {
    fn name(&self) -> &str {
        self.name()
    }
    fn synced(&self) -> &Synced {
        &self.synced
    }
    fn ended(&self) -> &Synced {
        &self.ended
    }
    fn stats(&self) -> HandlerStats {
        self.stats()
    }
    fn remove(&self) {
        self.remove();
    }
}

impl HandlerRegistration {
    pub(super) fn new<K: Send + Sync + 'static>(listener: Arc<ProcessorListener<K>>) -> Self {
        Self { listener: Some(listener) }
    }

    fn listener(&self) -> &dyn Listener {
        // Only `detach` and `drop` take it, and both end the registration.
        self.listener.as_deref().expect("a registration has its listener until it ends")
    }

    /// Returns the handler's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.listener().name()
    }

    /// Returns the promise that the handler has been called with every object of the first list, or of the replay if
    /// it joined later, and has returned from each call (I6).
    #[must_use]
    pub fn synced(&self) -> Synced {
        self.listener().synced().clone()
    }

    /// Says whether the handler has seen every initial object.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.listener().synced().has_synced()
    }

    /// Returns how the handler fares.
    #[must_use]
    pub fn stats(&self) -> HandlerStats {
        self.listener().stats()
    }

    /// Removes the handler: what waits for it is dropped. A call that is under way may still end after this returns.
    #[doc(alias = "RemoveEventHandler")]
    pub fn remove(self) {}

    /// Removes the handler and waits until it is not being called any more.
    ///
    /// From inside the handler itself this would wait for its own end; use [`remove`](Self::remove) there.
    ///
    /// # Cancel safety
    /// The handler is removed even if the future is dropped before it is ready.
    #[doc(alias = "ShutDownEventHandler")]
    pub async fn remove_and_wait(self) {
        let ended = self.listener().ended().clone();
        drop(self);
        // It can't be given up: a task that is aborted has ended too.
        _ = ended.wait().await;
    }

    /// Leaves the handler in place for as long as the informer lives, and gives up the hold on it.
    pub fn detach(mut self) {
        self.listener = None;
    }
}

impl Drop for HandlerRegistration {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.take() {
            listener.remove();
        }
    }
}

impl fmt::Debug for HandlerRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerRegistration")
            .field("name", &self.name())
            .field("has_synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}
