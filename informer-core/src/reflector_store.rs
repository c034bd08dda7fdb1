//! [`ReflectorStore`]: the destination of a reflector's objects.
//!
//! Usually this is a [`DeltaFifo`](crate::DeltaFifo); it can also be a store. client-go:
//! `ReflectorStore` of tools/cache/reflector.go, with one call per object. Here, one call carries
//! all changes that arrived together, and the resource version after these changes.

use std::any::Any;

use futures::future::BoxFuture;

use crate::{Cached, Delta, ObjectKey, ResourceVersion};

/// Receives a reflector's changes and lists in the server's order, from one task.
pub trait ReflectorStore<K>: Send + Sync + 'static {
    /// Applies changes of a watch. With this call, the store has received all changes up to
    /// `resource_version`, which is empty if it is unknown.
    ///
    /// If `changes` is empty, the call reports a bookmark.
    #[doc(alias = "Bookmark")]
    fn apply(&self, changes: Vec<Delta<K>>, resource_version: &ResourceVersion);

    /// Receives a part of a list that is still arriving, and returns the handles that
    /// [`replace`](Self::replace) will get for these objects.
    ///
    /// For an unchanged object, this can return the known handle; then the copy is freed now and
    /// not at the end of the list. During the initial list, a store can add the other objects at
    /// once. Later lists must not change anything before `replace`, because a list can fail. After
    /// a failure, `replace` is not called, and the next list starts from its beginning; objects of
    /// an initial list that were added stay known.
    ///
    /// Default: returns `objects`, which is always correct.
    fn list_part(&self, objects: Vec<Cached<K>>) -> Vec<Cached<K>> {
        objects
    }

    /// Applies a complete list.
    ///
    /// The reflector has passed the listed objects through [`list_part`](Self::list_part) before.
    fn replace(&self, replacement: Replacement<K>);

    /// Returns a future to await before the next [`apply`](Self::apply) or
    /// [`list_part`](Self::list_part), if too many changes are unprocessed. Default: `None`.
    ///
    /// While the reflector waits, it reads nothing from the server, so memory stays bounded.
    fn wait_for_room(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// The complete state of a resource at one resource version.
#[derive(Debug)]
pub struct Replacement<K> {
    /// The listed objects, without quarantined ones.
    pub objects: Vec<Cached<K>>,
    /// Keys of quarantined objects. They exist, so they must not be deleted.
    pub quarantined: Vec<ObjectKey>,
    /// Whether `objects` and `quarantined` together contain all existing objects. `false` if a
    /// quarantined object has no readable key; then no object must be deleted.
    pub complete: bool,
    /// The resource version of the list.
    pub resource_version: ResourceVersion,
}

/// The queue's read access to the store of its consumer.
///
/// The queue calls [`known`](Self::known) under its lock, so an implementation must not wait for
/// the queue. client-go: `KnownObjects` (`KeyListerGetter`) of `tools/cache/delta_fifo.go`.
#[doc(alias = "KeyListerGetter")]
pub trait KnownObjects<K>: Send + Sync + 'static {
    /// Returns the object with this key.
    fn known(&self, key: &ObjectKey) -> Option<Cached<K>>;

    /// Calls `visit` for every known object of one consistent state. An implementation that reads a
    /// snapshot returns the snapshot. The caller drops it while no lock is held, because that can
    /// drop objects.
    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<K>)) -> Option<Box<dyn Any + Send>>;

    /// As [`for_each_known`](Self::for_each_known), for the objects of one namespace. Default:
    /// filters all objects.
    fn for_each_known_in(
        &self,
        namespace: &str,
        visit: &mut dyn FnMut(&Cached<K>),
    ) -> Option<Box<dyn Any + Send>> {
        self.for_each_known(&mut |object| {
            if object.namespace() == Some(namespace) {
                visit(object);
            }
        })
    }
}

#[cfg(test)]
fn _are_object_safe(_: &dyn ReflectorStore<()>, _: &dyn KnownObjects<()>) {}
