//! [`Filtered`]: a handler behind a filter.
//!
//! client-go: `FilteringResourceEventHandler` of tools/cache/controller.go. Unlike there, the filter never sees a
//! tombstone, only objects.

use async_trait::async_trait;

use crate::{AsyncEventHandler, Cached, Deleted, EventHandler};

/// A handler, sync or async, that hears only of what concerns objects that a filter accepts.
///
/// An update by which an object comes to match is passed on as an add, one by which it ceases to match as a delete. The
/// filter has to answer the same for the same object each time.
#[doc(alias = "FilteringResourceEventHandler")]
#[derive(Debug)]
pub struct Filtered<F, H> {
    filter: F,
    handler: H,
}

impl<F, H> Filtered<F, H> {
    /// Puts `filter` before `handler`.
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
            (true, false) => self.handler.on_delete(&Deleted::exact(old.clone())),
            (false, false) => {}
        }
    }

    fn on_delete(&self, object: &Deleted<K>) {
        if knew(&self.filter, object) {
            self.handler.on_delete(object);
        }
    }

    fn on_release(&self, object: &Cached<K>) {
        if (self.filter)(object) {
            self.handler.on_release(object);
        }
    }

    /// Without the old state nobody could tell which updates cross the filter.
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
            (true, false) => self.handler.on_delete(&Deleted::exact(old.clone())).await,
            (false, false) => {}
        }
    }

    async fn on_delete(&self, object: &Deleted<K>) {
        if knew(&self.filter, object) {
            self.handler.on_delete(object).await;
        }
    }

    async fn on_release(&self, object: &Cached<K>) {
        if (self.filter)(object) {
            self.handler.on_release(object).await;
        }
    }

    /// Without the old state nobody could tell which updates cross the filter.
    fn needs_old_states(&self) -> bool {
        true
    }
}

/// Returns whether a handler behind the filter was told of an object that is gone. What it was told last decides; where
/// that can't be said, the news goes out.
fn knew<K>(filter: impl Fn(&K) -> bool, object: &Deleted<K>) -> bool {
    object.previous().or(object.last_known()).is_none_or(|told| filter(told))
}
