//! [`EventHandler`] and [`AsyncEventHandler`]: the user's code for events.
//!
//! client-go: `ResourceEventHandler` of tools/cache/controller.go.

mod any;
mod asynchronous;
mod closures;
mod filtered;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{Cached, Deleted};

pub(crate) use any::{AnyHandler, AsyncHandler, SyncHandler};
pub use asynchronous::AsyncEventHandler;
pub use closures::Handlers;
pub use filtered::Filtered;

/// Receives the changes of an informer's objects.
///
/// The informer makes one call at a time. For each object, the handler receives an add, then
/// updates, then a delete. If the object's namespace is no longer watched, the last call is
/// [`on_release`](Self::on_release) and not a delete. Calls run on the async runtime, so they must
/// be quick and must not block: add the key to a work queue and return, or use an
/// [`AsyncEventHandler`]. If a call panics, the informer does not repeat it, and delivers the next
/// event.
///
/// An `Arc` of a handler is a handler, too, so one handler can be added to several informers, or
/// twice to one. Each registration then has its own task.
#[doc(alias = "ResourceEventHandler")]
pub trait EventHandler<K>: Send + Sync + 'static {
    /// Called when an object is added. `is_in_initial_list` is `true` for objects of the informer's
    /// initial list, and for objects that were in the store when the handler was added.
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        let _ = (object, is_in_initial_list);
    }

    /// Called when an object has a new version. Versions between `old` and `new` can be skipped. At
    /// a resync, `old` and `new` are the same object.
    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        let _ = (old, new);
    }

    /// Called when an object has been deleted.
    fn on_delete(&self, object: &Deleted<K>) {
        let _ = object;
    }

    /// Called when an object is released ([`Event::Released`](crate::Event::Released)), because its
    /// namespace is no longer watched. `object` is the state that this handler received last, or
    /// with [`HandlerOptions::coalesce_drops_old`](crate::HandlerOptions::coalesce_drops_old)
    /// possibly a later one. The object can still exist, so a handler must not clean up after it; a
    /// handler that keeps data for each object drops that data here. If the namespace is watched
    /// again, the object is added again.
    ///
    /// Default: does nothing. It does not call [`on_delete`](Self::on_delete), because a mistaken
    /// cleanup can't be undone, while a retained entry can be removed later.
    fn on_release(&self, object: &Cached<K>) {
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

impl<K, H: EventHandler<K> + ?Sized> EventHandler<K> for Arc<H> {
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        (**self).on_add(object, is_in_initial_list);
    }

    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        (**self).on_update(old, new);
    }

    fn on_delete(&self, object: &Deleted<K>) {
        (**self).on_delete(object);
    }

    fn on_release(&self, object: &Cached<K>) {
        (**self).on_release(object);
    }

    fn needs_old_states(&self) -> bool {
        (**self).needs_old_states()
    }
}
