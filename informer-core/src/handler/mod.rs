//! [`EventHandler`] and [`AsyncEventHandler`]: what a user does about events.
//!
//! client-go: `ResourceEventHandler` of tools/cache/controller.go. Closures that make a handler are in `closures.rs`, a
//! handler behind a filter in `filtered.rs`.

mod asynchronous;
mod closures;
mod filtered;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{Cached, Deleted, Event};

pub use asynchronous::AsyncEventHandler;
pub(crate) use asynchronous::dispatch_async;
pub use closures::Handlers;
pub use filtered::Filtered;

/// Hears of every change of the objects of an informer.
///
/// Calls come one at a time; for each object an add first, then updates, then a delete or release (I4). They run on the async
/// runtime, so they must be quick and must not block: put the key into a work queue and return. A handler that panics
/// is not called again for that event, but is for the next ones. A handler that has to wait for something is an
/// [`AsyncEventHandler`].
///
/// An `Arc` of a handler is a handler too, so that one can be added to several informers, or twice to one. Each
/// registration then calls it in its own time.
#[doc(alias = "ResourceEventHandler")]
pub trait EventHandler<K>: Send + Sync + 'static {
    /// Called when an object appears. `is_in_initial_list` tells objects that existed before the handler began to
    /// listen from those that came later.
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        let _ = (object, is_in_initial_list);
    }

    /// Called when an object has a new version. Versions between may have been skipped, and at a resync both are the
    /// same.
    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        let _ = (old, new);
    }

    /// Called when an object is gone.
    fn on_delete(&self, object: &Deleted<K>) {
        let _ = object;
    }

    /// Called when an object is no longer followed, because its namespace isn't
    /// ([`Event::Released`](crate::Event::Released)), with the state in which this handler was last told of it. It goes on
    /// to exist, so that what a deletion would have cleaned up must stay; but nothing more is heard of it, so a handler
    /// that keeps something for each object drops that here. Should its namespace be followed again, it is added again.
    ///
    /// Default: nothing. It does not call [`on_delete`](Self::on_delete): a cleanup that runs by mistake can't be undone,
    /// and an entry that is kept too long can.
    fn on_release(&self, object: &Cached<K>) {
        let _ = object;
    }

    /// Returns whether the handler would go wrong if an update came with the new state in the place of the old one; then
    /// [`HandlerOptions::coalesce_drops_old`](crate::HandlerOptions::coalesce_drops_old) is ignored. Default: no. Asked
    /// once, when the handler is added.
    fn needs_old_states(&self) -> bool {
        false
    }
}

/// Returns one event to the method of the handler that is for it.
pub(crate) fn dispatch<K: 'static>(handler: &dyn EventHandler<K>, event: &Event<K>) {
    match event {
        Event::Added { object, is_in_initial_list } => handler.on_add(object, *is_in_initial_list),
        Event::Updated { old, new } => handler.on_update(old, new),
        Event::Resynced(object) => handler.on_update(object, object),
        Event::Deleted(deleted) => handler.on_delete(deleted),
        Event::Released(object) => handler.on_release(object),
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
