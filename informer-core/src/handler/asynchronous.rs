//! [`AsyncEventHandler`]: a handler that may wait.
//!
//! client-go has no counterpart: there, a handler that waits blocks its goroutine.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Cached, Deleted, Event};

/// Hears of every change of the objects of an informer, as an [`EventHandler`](crate::EventHandler) does, and may wait
/// for something before it takes the next one.
///
/// Calls come one at a time; for each object an add first, then updates, then a delete or release (I4). What happens meanwhile
/// waits, beyond the handler's threshold as one event per key. A handler that panics, before its first await or after
/// any, is not called again for that event, but is for the next ones.
///
/// When the handler is removed or its informer stops, a call that is under way is dropped where it next waits, so that
/// nobody waits for what it waits for (I12). What must not be left half done belongs into a task of its own.
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
///         // Waits while the channel is full; meanwhile, events for this handler are coalesced.
///         _ = self.0.send(pod.key().clone()).await;
///     }
/// }
/// ```
#[doc(alias = "ResourceEventHandler")]
#[async_trait]
pub trait AsyncEventHandler<K: Send + Sync + 'static>: Send + Sync + 'static {
    /// Called when an object appears. `is_in_initial_list` tells objects that existed before the handler began to
    /// listen from those that came later.
    ///
    /// # Cancel safety
    /// The future is dropped at an await if the handler is removed or the informer stops.
    async fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        let _ = (object, is_in_initial_list);
    }

    /// Called when an object has a new version. Versions between may have been skipped, and at a resync both are the
    /// same.
    ///
    /// # Cancel safety
    /// The future is dropped at an await if the handler is removed or the informer stops.
    async fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        let _ = (old, new);
    }

    /// Called when an object is gone.
    ///
    /// # Cancel safety
    /// The future is dropped at an await if the handler is removed or the informer stops.
    async fn on_delete(&self, object: &Deleted<K>) {
        let _ = object;
    }

    /// Called when an object is no longer followed, because its namespace isn't; see
    /// [`EventHandler::on_release`](crate::EventHandler::on_release), also for why this does nothing by default.
    ///
    /// # Cancel safety
    /// The future is dropped at an await if the handler is removed or the informer stops.
    async fn on_release(&self, object: &Cached<K>) {
        let _ = object;
    }

    /// Returns whether the handler would go wrong if an update came with the new state in the place of the old one; then
    /// [`HandlerOptions::coalesce_drops_old`](crate::HandlerOptions::coalesce_drops_old) is ignored. Default: no. Asked
    /// once, when the handler is added.
    fn needs_old_states(&self) -> bool {
        false
    }
}

/// Returns one event to the method of the handler that is for it. Dropping the future gives the call up.
pub(crate) async fn dispatch_async<K: Send + Sync + 'static>(
    handler: &dyn AsyncEventHandler<K>,
    event: &Event<K>,
) {
    match event {
        Event::Added { object, is_in_initial_list } => handler.on_add(object, *is_in_initial_list).await,
        Event::Updated { old, new } => handler.on_update(old, new).await,
        Event::Resynced(object) => handler.on_update(object, object).await,
        Event::Deleted(deleted) => handler.on_delete(deleted).await,
        Event::Released(object) => handler.on_release(object).await,
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
