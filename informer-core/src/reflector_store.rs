//! [`ReflectorStore`]: what a reflector needs of whatever it keeps up to date.
//!
//! Mostly that is a [`DeltaFifo`](crate::DeltaFifo) with a store behind it; it can be a store itself. client-go:
//! `ReflectorStore` of tools/cache/reflector.go, with one call per object; here one call carries all that arrived in
//! one piece, and says which state of the server it leads to.

use std::any::Any;

use futures::future::BoxFuture;

use crate::{Cached, Delta, ObjectKey, ResourceVersion};

/// Receives what a reflector learns, in the server's order, from one task.
pub trait ReflectorStore<K>: Send + Sync + 'static {
    /// Takes changes that a watch reported. With them, everything up to `resource_version` has been reported.
    ///
    /// Without changes this is a bookmark. `resource_version` is empty if nothing can be said of it.
    #[doc(alias = "Bookmark")]
    fn apply(&self, changes: Vec<Delta<K>>, resource_version: &ResourceVersion);

    /// Takes a part of a list that is still arriving, and returns the handles by which [`replace`](Self::replace) will
    /// name these objects.
    ///
    /// An object that is known in the same version is returned as the known handle, so that its copy is freed here and
    /// not only when the list has ended. A store that has never had a complete list may take in the rest at once: nobody
    /// takes it for complete, and what the list says in the end is told by [`replace`](Self::replace). Later lists may
    /// break off and must then have changed nothing. If one does, `replace` is not called for it; the next list begins
    /// from its start, and in the meantime what was taken in of a first list counts as known.
    ///
    /// Default: returns what it was given, which is always right.
    fn list_part(&self, objects: Vec<Cached<K>>) -> Vec<Cached<K>> {
        objects
    }

    /// Takes the complete state at one resource version, as a list reported it.
    ///
    /// Its objects have been through [`list_part`](Self::list_part), if they come from a reflector.
    fn replace(&self, replacement: Replacement<K>);

    /// Returns what to wait for before the next [`apply`](Self::apply) or [`list_part`](Self::list_part), if so much
    /// waits to be processed that there is no room for more. Default: there always is.
    ///
    /// While a reflector waits it reads nothing, so that the server waits too, and memory stays bounded.
    fn wait_for_room(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// The complete state of a resource at one resource version.
#[derive(Debug)]
pub struct Replacement<K> {
    /// Every object that could be taken in.
    pub objects: Vec<Cached<K>>,
    /// Keys of objects that exist but couldn't be decoded: they are not to be taken as deleted.
    pub quarantined: Vec<ObjectKey>,
    /// Whether every object that exists is in one of these; if not, because one could not even be named, nothing is to
    /// be taken as deleted.
    pub complete: bool,
    /// The resource version of the state as a whole.
    pub resource_version: ResourceVersion,
}

/// What a [`DeltaFifo`](crate::DeltaFifo) asks of the store behind it: what is known already.
///
/// The queue calls [`known`](Self::known) while it is locked, so that must not wait for the queue. client-go:
/// `KnownObjects` (`KeyListerGetter`) of `tools/cache/delta_fifo.go`.
#[doc(alias = "KeyListerGetter")]
pub trait KnownObjects<K>: Send + Sync + 'static {
    /// Returns the object that is known under `key`.
    fn known(&self, key: &ObjectKey) -> Option<Cached<K>>;

    /// Calls `visit` for every known object, in one consistent state. Returns what holds that state, if that is more
    /// than a lock, to be dropped when no lock is held: objects that have changed meanwhile go with it.
    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<K>)) -> Option<Box<dyn Any + Send>>;

    /// As [`for_each_known`](Self::for_each_known), for the objects of one namespace. Default: looks at all.
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
