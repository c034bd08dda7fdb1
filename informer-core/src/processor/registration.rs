//! [`HandlerRegistration`]: a handler's hold on its informer.

use std::fmt;
use std::sync::Arc;

use super::handler_task;
use super::listener::{HandlerStats, ProcessorListener};
use crate::Completion;

/// Stands for a handler that listens to an informer. Dropping it removes the handler.
#[doc(alias = "ResourceEventHandlerRegistration")]
#[must_use = "dropping the registration removes the handler; call `detach` to leave it in place"]
pub struct HandlerRegistration {
    listener: Option<Arc<dyn Listener>>,
}

/// What a registration needs of a listener, whatever its objects are.
trait Listener: Send + Sync {
    fn name(&self) -> &str;
    fn synced(&self) -> &Completion;
    fn ended(&self) -> &Completion;
    fn stats(&self) -> HandlerStats;
    fn waiting_for(&self) -> Option<String>;
    fn is_calling(&self) -> bool;
    fn remove(&self);
}

impl<K: Send + Sync + 'static> Listener for ProcessorListener<K> {
    fn name(&self) -> &str {
        self.name()
    }
    fn synced(&self) -> &Completion {
        &self.synced
    }
    fn ended(&self) -> &Completion {
        &self.ended
    }
    fn stats(&self) -> HandlerStats {
        self.stats()
    }
    fn waiting_for(&self) -> Option<String> {
        self.waiting_for()
    }
    fn is_calling(&self) -> bool {
        handler_task::is_called_by(self)
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
    pub fn synced(&self) -> Completion {
        self.listener().synced().clone()
    }

    /// Returns whether the handler has seen every initial object.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.listener().synced().has_synced()
    }

    /// Says in words what keeps the handler from being synced, such as "17 events wait for it"; `None` if it is synced.
    /// With [`name`](Self::name) this is what a message needs that says why a wait has taken too long.
    #[must_use]
    pub fn waiting_for(&self) -> Option<String> {
        self.listener().waiting_for()
    }

    /// Returns how the handler fares.
    #[must_use]
    pub fn stats(&self) -> HandlerStats {
        self.listener().stats()
    }

    /// Removes the handler: what waits for it is dropped. A call that is under way may still end after this returns; if
    /// the handler is async, it is dropped where it next waits for something.
    #[doc(alias = "RemoveEventHandler")]
    pub fn remove(self) {}

    /// Removes the handler and waits until it is not being called any more and has been dropped.
    ///
    /// Inside a call of this handler, sync or async, this removes it and does not wait, because its end can't come
    /// before that of the call. (client-go's `ShutDownEventHandler` deadlocks there.) That is noticed only in the
    /// handler's own task: a sync handler that blocks until another task or thread has removed it waits for ever, and so
    /// do two sync handlers that remove each other at the same time.
    ///
    /// # Cancel safety
    /// Once it has been polled, the handler is removed; and also if the future is dropped before that.
    #[doc(alias = "ShutDownEventHandler")]
    pub async fn remove_and_wait(self) {
        let ended = self.listener().ended().clone();
        let is_calling = self.listener().is_calling();
        drop(self);
        if !is_calling {
            // It can't be given up: a task that is aborted has ended too.
            _ = ended.wait().await;
        }
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
