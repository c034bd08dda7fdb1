//! [`ReflectorStore`]: the destination of a reflector's objects.
//!
//! Usually the destination is a [`DeltaFifo`](crate::DeltaFifo); it can also be a store. client-go:
//! `ReflectorStore` of tools/cache/reflector.go, which has one call per object.

use std::any::Any;

use futures::future::BoxFuture;

use crate::{Cached, Delta, ObjectKey, ResourceVersion};

/// Receives the changes and lists of a reflector, in the server's order and from one task.
pub trait ReflectorStore<K>: Send + Sync + 'static {
    /// Applies changes that a watch has reported. With this call, the store has received all
    /// changes up to `resource_version`, except those of quarantined objects; an empty version
    /// means that the version is unknown.
    ///
    /// A call without changes only reports the version, usually that of a bookmark.
    #[doc(alias = "Bookmark")]
    fn apply(&self, changes: Vec<Delta<K>>, resource_version: &ResourceVersion);

    /// Receives a part of a list that is still arriving. After the last part, the reflector passes
    /// the returned handles to [`replace`](Self::replace).
    ///
    /// For an object that has not changed, an implementation can return the stored handle instead
    /// of the new handle. The new copy of the object is then freed before the list ends. Each part
    /// of the initial list can be added to the store as soon as it arrives. Parts of later lists
    /// must not change the store before `replace`, because a list can fail. After a failure,
    /// `replace` is not called, and the next list starts from the beginning; objects that a failed
    /// initial list has added stay in the store.
    ///
    /// Default: returns `objects`, which is always correct.
    fn list_part(&self, objects: Vec<Cached<K>>) -> Vec<Cached<K>> {
        objects
    }

    /// Applies the result of a list: adds or updates the listed objects, and deletes stored objects
    /// that the server did not list.
    ///
    /// - Objects whose keys are in [`Replacement::quarantined`] must stay in the store.
    /// - All stored objects must stay if [`Replacement::complete`] is `false`.
    ///
    /// For each listed object, [`Replacement::objects`] contains the [`Cached`] that
    /// [`list_part`](Self::list_part) has returned. If the object has not changed, this can be the
    /// stored one.
    fn replace(&self, replacement: Replacement<K>);

    /// Returns a future to await between two reads from the server, if too many changes are
    /// unprocessed. Default: `None`.
    ///
    /// While the reflector waits, it reads nothing from the server, so memory stays bounded.
    fn wait_for_room(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// The result of a whole list: the state of a resource at one resource version.
#[derive(Debug)]
pub struct Replacement<K> {
    /// The listed objects that could be decoded and transformed.
    pub objects: Vec<Cached<K>>,
    /// The keys of quarantined objects: listed objects that could not be decoded or transformed.
    /// These objects exist, so the store must not delete them.
    pub quarantined: Vec<ObjectKey>,
    /// Whether `objects` and `quarantined` together contain all existing objects. `false` if the
    /// key of a listed object is unknown, usually because the object could not be decoded. The
    /// store must then not delete any object.
    pub complete: bool,
    /// The resource version of the list.
    pub resource_version: ResourceVersion,
}

/// The read access of a [`DeltaFifo`](crate::DeltaFifo) to the store of its consumer.
///
/// The queue calls [`known`](Self::known) while it holds its own lock, so implementations must not
/// use the queue. client-go: `KnownObjects` (`KeyListerGetter`) of `tools/cache/delta_fifo.go`.
#[doc(alias = "KeyListerGetter")]
pub trait KnownObjects<K>: Send + Sync + 'static {
    /// Returns the stored object with this key, or `None` if there is no such object.
    fn known(&self, key: &ObjectKey) -> Option<Cached<K>>;

    /// Calls `visit` for every stored object, in one consistent state. If the objects come from a
    /// snapshot, returns the snapshot; otherwise returns `None`.
    ///
    /// The caller drops the snapshot after it has released its locks: this can drop objects, whose
    /// destructors are user code.
    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<K>)) -> Option<Box<dyn Any + Send>>;

    /// Calls `visit` for every stored object of one namespace, in one consistent state. If the
    /// objects come from a snapshot, returns the snapshot, which the caller drops after it has
    /// released its locks. If they do not, returns `None`.
    ///
    /// Default: calls `for_each_known`, and skips the objects of other namespaces.
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
