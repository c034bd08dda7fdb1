//! [`AnyHandler`]: a handler without the type of its objects. The processor stores and calls
//! handlers in this form.

use std::marker::PhantomData;

use futures::future::BoxFuture;

use crate::{AnyObject, AsyncEventHandler, Event, EventHandler};

pub(crate) trait AnyHandler: Send + Sync {
    /// Calls the handler's method for an event. Returns a future only for an async handler.
    fn call<'a>(&'a self, event: &'a Event<AnyObject>) -> Option<BoxFuture<'a, ()>>;
}

/// Wraps an [`EventHandler`] for objects of type `K` as an [`AnyHandler`].
pub(crate) struct SyncHandler<K, H>(pub(crate) H, pub(crate) PhantomData<fn(K)>);

impl<K: 'static, H: EventHandler<K>> AnyHandler for SyncHandler<K, H> {
    fn call<'a>(&'a self, event: &'a Event<AnyObject>) -> Option<BoxFuture<'a, ()>> {
        let Self(handler, _) = self;
        match event {
            Event::Added { object, is_in_initial_list } => {
                handler.on_add(object.cast_ref(), *is_in_initial_list);
            }
            Event::Updated { old, new } => handler.on_update(old.cast_ref(), new.cast_ref()),
            Event::Resynced(object) => handler.on_update(object.cast_ref(), object.cast_ref()),
            Event::Deleted(deleted) => handler.on_delete(deleted.cast_ref()),
            Event::Released(object) => handler.on_release(object.cast_ref()),
        }
        None
    }
}

/// Wraps an [`AsyncEventHandler`] for objects of type `K` as an [`AnyHandler`].
pub(crate) struct AsyncHandler<K, H>(pub(crate) H, pub(crate) PhantomData<fn(K)>);

impl<K: Send + Sync + 'static, H: AsyncEventHandler<K>> AnyHandler for AsyncHandler<K, H> {
    fn call<'a>(&'a self, event: &'a Event<AnyObject>) -> Option<BoxFuture<'a, ()>> {
        let Self(handler, _) = self;
        Some(match event {
            Event::Added { object, is_in_initial_list } => {
                handler.on_add(object.cast_ref(), *is_in_initial_list)
            }
            Event::Updated { old, new } => handler.on_update(old.cast_ref(), new.cast_ref()),
            Event::Resynced(object) => handler.on_update(object.cast_ref(), object.cast_ref()),
            Event::Deleted(deleted) => handler.on_delete(deleted.cast_ref()),
            Event::Released(object) => handler.on_release(object.cast_ref()),
        })
    }
}
