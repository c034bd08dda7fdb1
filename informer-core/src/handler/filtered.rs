//! [`Filtered`]: a handler with a filter.
//!
//! client-go: `FilteringResourceEventHandler` of tools/cache/controller.go, whose filter can
//! receive a tombstone. Here, the filter receives only objects.

use async_trait::async_trait;

use crate::{AsyncEventHandler, Cached, Deleted, EventHandler};

/// A handler, sync or async, that receives only the events of objects that a filter accepts.
///
/// An update from a rejected to an accepted object becomes an add. An update from an accepted to a
/// rejected object becomes a delete. The filter must return the same result for the same object
/// each time.
#[doc(alias = "FilteringResourceEventHandler")]
#[derive(Debug)]
pub struct Filtered<F, H> {
    filter: F,
    handler: H,
}

impl<F, H> Filtered<F, H> {
    /// Returns a handler that calls `handler` for objects that `filter` accepts.
    #[must_use]
    pub fn new(filter: F, handler: H) -> Self {
        Self { filter, handler }
    }
}

impl<K, F, H> EventHandler<K> for Filtered<F, H>
where
    K: 'static,
    F: Fn(&K) -> bool + Send + Sync + 'static,
    H: EventHandler<K>,
{
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        if (self.filter)(object) {
            self.handler.on_add(object, is_in_initial_list);
        }
    }

    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        match ((self.filter)(old), (self.filter)(new)) {
            (true, true) => self.handler.on_update(old, new),
            (false, true) => self.handler.on_add(new, false),
            (true, false) => self.handler.on_delete(&deletion_by_update(old)),
            (false, false) => {}
        }
    }

    fn on_delete(&self, object: &Deleted<K>) {
        if matched_before_deletion(&self.filter, object) {
            self.handler.on_delete(object);
        }
    }

    fn on_release(&self, object: &Cached<K>) {
        if (self.filter)(object) {
            self.handler.on_release(object);
        }
    }

    /// Returns `true`, because the filter also checks the old object of an update.
    fn needs_old_states(&self) -> bool {
        true
    }
}

#[async_trait]
impl<K, F, H> AsyncEventHandler<K> for Filtered<F, H>
where
    K: Send + Sync + 'static,
    F: Fn(&K) -> bool + Send + Sync + 'static,
    H: AsyncEventHandler<K>,
{
    async fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        if (self.filter)(object) {
            self.handler.on_add(object, is_in_initial_list).await;
        }
    }

    async fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        match ((self.filter)(old), (self.filter)(new)) {
            (true, true) => self.handler.on_update(old, new).await,
            (false, true) => self.handler.on_add(new, false).await,
            (true, false) => self.handler.on_delete(&deletion_by_update(old)).await,
            (false, false) => {}
        }
    }

    async fn on_delete(&self, object: &Deleted<K>) {
        if matched_before_deletion(&self.filter, object) {
            self.handler.on_delete(object).await;
        }
    }

    async fn on_release(&self, object: &Cached<K>) {
        if (self.filter)(object) {
            self.handler.on_release(object).await;
        }
    }

    fn needs_old_states(&self) -> bool {
        true
    }
}

/// Returns the delete for an object whose update made the filter reject it. `old` is the object
/// before the update, which the filter accepts.
fn deletion_by_update<K>(old: &Cached<K>) -> Deleted<K> {
    Deleted::exact(old.clone()).after(old.clone())
}

/// Returns whether the filter accepts a deleted object, so that the inner handler receives the
/// delete.
/// - If [`Deleted::previous`] is known, the filter checks this version of the object.
/// - If only [`Deleted::last_known`] is known, the filter checks that version.
/// - If both versions are unknown, returns `true`.
fn matched_before_deletion<K: 'static>(filter: impl Fn(&K) -> bool, object: &Deleted<K>) -> bool {
    object.previous().or(object.last_known()).is_none_or(|last| filter(last))
}
