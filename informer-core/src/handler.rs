//! [`EventHandler`]: what a user does about events, as a trait, as closures, or behind a filter.
//!
//! client-go: `ResourceEventHandler`, `ResourceEventHandlerFuncs` and `FilteringResourceEventHandler` of
//! tools/cache/controller.go. Unlike client-go's, a filter here never sees a tombstone, only objects.

use std::fmt;

use crate::{Cached, Deleted, Event};

/// Hears of every change of the objects of an informer.
///
/// Calls come one at a time; for each object an add first, then updates, then a delete (I4). They run on the async
/// runtime, so they must be quick and must not block: put the key into a work queue and return. A handler that panics
/// is not called again for that event, but is for the next ones.
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
}

/// Gives one event to the method of the handler that is for it.
pub(crate) fn dispatch<K: 'static>(handler: &dyn EventHandler<K>, event: &Event<K>) {
    match event {
        Event::Added { object, is_in_initial_list } => handler.on_add(object, *is_in_initial_list),
        Event::Updated { old, new } => handler.on_update(old, new),
        Event::Resynced(object) => handler.on_update(object, object),
        Event::Deleted(deleted) => handler.on_delete(deleted),
    }
}

type OnAdd<K> = Box<dyn Fn(&Cached<K>, bool) + Send + Sync>;
type OnUpdate<K> = Box<dyn Fn(&Cached<K>, &Cached<K>) + Send + Sync>;
type OnDelete<K> = Box<dyn Fn(&Deleted<K>) + Send + Sync>;

/// An [`EventHandler`] made of closures; those that are left out do nothing.
///
/// ```
/// use informer_core::Handlers;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let handlers = Handlers::<Pod>::new()
///     .on_add(|pod, _is_in_initial_list| println!("+ {}", pod.key()))
///     .on_update(|_old, new| println!("~ {}", new.key()))
///     .on_delete(|pod| println!("- {}", pod.key()));
/// # let _ = handlers;
/// ```
#[doc(alias = "ResourceEventHandlerFuncs")]
#[doc(alias = "ResourceEventHandlerDetailedFuncs")]
pub struct Handlers<K> {
    add: Option<OnAdd<K>>,
    update: Option<OnUpdate<K>>,
    delete: Option<OnDelete<K>>,
}

impl<K> Handlers<K> {
    /// Returns a handler that does nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None }
    }

    /// Sets what is called when an object appears.
    #[must_use]
    pub fn on_add(mut self, f: impl Fn(&Cached<K>, bool) + Send + Sync + 'static) -> Self {
        self.add = Some(Box::new(f));
        self
    }

    /// Sets what is called when an object has a new version.
    #[must_use]
    pub fn on_update(mut self, f: impl Fn(&Cached<K>, &Cached<K>) + Send + Sync + 'static) -> Self {
        self.update = Some(Box::new(f));
        self
    }

    /// Sets what is called when an object is gone.
    #[must_use]
    pub fn on_delete(mut self, f: impl Fn(&Deleted<K>) + Send + Sync + 'static) -> Self {
        self.delete = Some(Box::new(f));
        self
    }
}

impl<K: 'static> EventHandler<K> for Handlers<K> {
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        if let Some(add) = &self.add {
            add(object, is_in_initial_list);
        }
    }

    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        if let Some(update) = &self.update {
            update(old, new);
        }
    }

    fn on_delete(&self, object: &Deleted<K>) {
        if let Some(delete) = &self.delete {
            delete(object);
        }
    }
}

impl<K> Default for Handlers<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for Handlers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers")
            .field("on_add", &self.add.is_some())
            .field("on_update", &self.update.is_some())
            .field("on_delete", &self.delete.is_some())
            .finish()
    }
}

/// An [`EventHandler`] that passes on only what concerns objects that a filter accepts.
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
        // What the handler was told last decides whether it knows of the object at all. Where that can't be said, the
        // news goes out.
        if object.previous().or(object.last_known()).is_none_or(|told| (self.filter)(told)) {
            self.handler.on_delete(object);
        }
    }
}

#[cfg(test)]
fn _is_object_safe(_: &dyn EventHandler<()>) {}
