//! [`AsyncEventHandler`]: a handler with async methods. client-go has no counterpart.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Cached, Deleted};

/// Receives the changes of an informer's objects in async methods;
/// [`EventHandler`](crate::EventHandler) is the sync counterpart.
///
/// The informer makes one call at a time. For each object, the handler receives an add, then
/// updates, then a delete. If the object's namespace is no longer watched, the last call is
/// [`on_release`](Self::on_release) and not a delete. While a call runs, further events wait. Once
/// their number, including the event of the call, reaches the handler's
/// [threshold](crate::HandlerOptions::threshold), new events of the same object are merged into
/// one. If a call panics, the informer does not repeat it, and delivers the next event.
///
/// When the handler is removed or its informer stops, a running call is dropped at its next await,
/// so that no shutdown waits for it. Work that must complete belongs in a task of its own.
///
/// ```
/// use async_trait::async_trait;
/// use informer_core::{AsyncEventHandler, Cached, ObjectKey};
/// use k8s_openapi::api::core::v1::Pod;
///
/// struct Forward(tokio::sync::mpsc::Sender<ObjectKey>);
///
/// #[async_trait]
/// impl AsyncEventHandler<Pod> for Forward {
///     async fn on_add(&self, pod: &Cached<Pod>, _is_in_initial_list: bool) {
///         // Waits while the channel is full; meanwhile, further events for this handler wait.
///         _ = self.0.send(pod.key().clone()).await;
///     }
/// }
/// ```
#[doc(alias = "ResourceEventHandler")]
#[async_trait]
pub trait AsyncEventHandler<K: Send + Sync + 'static>: Send + Sync + 'static {
    /// Called when an object is added. `is_in_initial_list` is `true` for objects of the informer's
    /// initial list, and for objects that were in the store when the handler was added.
    ///
    /// # Cancel safety
    /// The future is dropped at an await if the handler is removed or the informer stops.
    async fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        let _ = (object, is_in_initial_list);
    }

    /// Called when an object has a new version. Versions between `old` and `new` can be skipped. At
    /// a resync, `old` and `new` are the same object.
    ///
    /// # Cancel safety
    /// The future is dropped at an await if the handler is removed or the informer stops.
    async fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        let _ = (old, new);
    }

    /// Called when an object has been deleted.
    ///
    /// # Cancel safety
    /// The future is dropped at an await if the handler is removed or the informer stops.
    async fn on_delete(&self, object: &Deleted<K>) {
        let _ = object;
    }

    /// Called when an object is released, because its namespace is no longer watched. The object
    /// can still exist: a handler can drop its own data about the object, but must not clean up
    /// after it. Default: does nothing; see
    /// [`EventHandler::on_release`](crate::EventHandler::on_release).
    ///
    /// # Cancel safety
    /// The future is dropped at an await if the handler is removed or the informer stops.
    async fn on_release(&self, object: &Cached<K>) {
        let _ = object;
    }

    /// Returns whether `on_update` needs the old object. If `true`, the informer ignores the option
    /// [`HandlerOptions::coalesce_drops_old`](crate::HandlerOptions::coalesce_drops_old), which can
    /// replace the old object with the new object. Called once, when the handler is added. Default:
    /// `false`.
    fn needs_old_states(&self) -> bool {
        false
    }
}

#[async_trait]
impl<K: Send + Sync + 'static, H: AsyncEventHandler<K> + ?Sized> AsyncEventHandler<K> for Arc<H> {
    async fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        (**self).on_add(object, is_in_initial_list).await;
    }

    async fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        (**self).on_update(old, new).await;
    }

    async fn on_delete(&self, object: &Deleted<K>) {
        (**self).on_delete(object).await;
    }

    async fn on_release(&self, object: &Cached<K>) {
        (**self).on_release(object).await;
    }

    fn needs_old_states(&self) -> bool {
        (**self).needs_old_states()
    }
}
