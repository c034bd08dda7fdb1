//! [`HandlerRegistration`]: a registered handler.

use std::fmt;
use std::sync::Arc;

use super::handler_task;
use super::listener::{HandlerStats, ProcessorListener};
use crate::Completion;

/// A registered handler. Dropping the registration removes the handler.
#[doc(alias = "ResourceEventHandlerRegistration")]
#[must_use = "dropping the registration removes the handler; call `detach` to keep the handler"]
pub struct HandlerRegistration {
    listener: Option<Arc<ProcessorListener>>,
}

impl HandlerRegistration {
    pub(super) fn new(listener: Arc<ProcessorListener>) -> Self {
        Self { listener: Some(listener) }
    }

    pub(super) fn listener(&self) -> &ProcessorListener {
        // Only `detach` and `drop` take the listener, and both end the registration.
        self.listener.as_deref().expect("the registration has its listener until `detach` or `drop`")
    }

    /// Returns the handler's name: the name in its [`HandlerOptions`](crate::HandlerOptions), or
    /// else its type.
    #[must_use]
    pub fn name(&self) -> &str {
        self.listener().name()
    }

    /// Returns a [`Completion`] that is set once the handler has returned from the calls for all
    /// initial objects. These are the objects of the initial list. For a handler that was added
    /// after the initial list, these are the objects that were in the store when the handler was
    /// added.
    #[must_use]
    pub fn synced(&self) -> Completion {
        self.listener().synced.clone()
    }

    /// Returns whether the handler has returned from the calls for all initial objects. These are
    /// the objects of the initial list, or the objects in the store if the handler was added after
    /// that list.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.listener().synced.has_synced()
    }

    /// Returns the reason why the handler is not synced, such as "17 events are waiting"; `None` if
    /// the handler is synced. Use the reason with [`name`](Self::name) in the message of a timeout.
    #[must_use]
    pub fn waiting_for(&self) -> Option<String> {
        self.listener().waiting_for()
    }

    /// Returns the handler's statistics, such as the number of waiting events.
    #[must_use]
    pub fn stats(&self) -> HandlerStats {
        self.listener().stats()
    }

    /// Removes the handler and drops its waiting events. A running call can return after this
    /// function has returned; an async call is dropped at its next await.
    #[doc(alias = "RemoveEventHandler")]
    pub fn remove(self) {}

    /// Removes the handler, and waits until its last call has returned and the handler has been
    /// dropped.
    ///
    /// If the handler itself, sync or async, calls this function during a call, the function does
    /// not wait, because the call would wait for itself. (client-go's `ShutDownEventHandler`
    /// deadlocks in this case.) This case is detected only in the handler's own task. A sync
    /// handler deadlocks if it blocks until another task or thread has removed it with this
    /// function. Two sync handlers that remove each other in this way at the same time deadlock,
    /// too.
    ///
    /// # Cancel safety
    /// If the future is dropped, the handler is removed, too; only the wait ends early.
    #[doc(alias = "ShutDownEventHandler")]
    pub async fn remove_and_wait(self) {
        let ended = self.listener().ended.clone();
        let is_calling = handler_task::is_called_by(self.listener());
        drop(self);
        if !is_calling {
            // The wait never fails: an aborted task sets `ended`, too.
            _ = ended.wait().await;
        }
    }

    /// Keeps the handler registered until the informer stops.
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
