//! [`OwnedObject`]: a newly received object with a single owner. The object is decoded or
//! [encoded](Encoded).
//!
//! Objects are large: even an empty `Pod` takes 2.4 KB. So the decoder puts each object on the heap
//! at once, and later code moves only the handle.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use crate::handle::Handle;
use crate::{AnyObject, Cached, Encoded, ObjectKey, ResourceVersion, Uid};

/// An object on the heap, with a single owner. The owner can change the object until it becomes a
/// [`Cached`], which uses the same allocation.
///
/// A [`ListerWatcher`](crate::ListerWatcher) returns objects in this form. `object.into()` creates
/// an `OwnedObject`, which dereferences to the object.
///
/// ```
/// use informer_core::{OwnedObject, WatchEvent};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let mut pod = OwnedObject::new(Pod::default());
/// pod.metadata.name = Some("nginx".into());
/// let event = WatchEvent::Added(pod);
/// // Or from an existing object:
/// let event = WatchEvent::Added(Pod::default().into());
/// ```
pub struct OwnedObject<K> {
    /// The only handle to the object.
    handle: Handle,
    /// The decoded form of an encoded object, after the first dereference. Other handles can share
    /// it.
    decoded: OnceLock<Arc<OwnedObject<AnyObject>>>,
    _type: PhantomData<fn() -> K>,
}

impl<K: Send + Sync + 'static> OwnedObject<K> {
    /// Moves an object to the heap.
    #[must_use]
    pub fn new(object: K) -> Self {
        Self::of(Handle::new(ObjectKey::placeholder(), ResourceVersion::empty(), Uid::default(), object))
    }
}

impl<K> OwnedObject<K> {
    fn of(handle: Handle) -> Self {
        Self { handle, decoded: OnceLock::new(), _type: PhantomData }
    }

    /// Returns an encoded object with the given key, resource version and UID.
    #[doc(hidden)]
    #[must_use]
    pub fn encoded(key: ObjectKey, resource_version: ResourceVersion, uid: Uid, object: Encoded) -> Self {
        Self::of(Handle::new(key, resource_version, uid, object))
    }

    /// Changes the type of the handle, to or from [`AnyObject`].
    #[doc(hidden)]
    #[must_use]
    pub fn cast<T>(self) -> OwnedObject<T> {
        OwnedObject::of(self.handle)
    }

    /// Returns the object if it has type `T`; the type parameter `K` does not matter.
    #[doc(hidden)]
    #[must_use]
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.handle.get().or_else(|| {
            let encoded = self.handle.as_encoded()?;
            self.decoded.get_or_init(|| encoded.decoded()).downcast_ref()
        })
    }

    /// Returns mutable access to the object if it has type `T`; the type parameter `K` does not
    /// matter. An encoded object is first replaced by its decoded form.
    #[doc(hidden)]
    #[must_use]
    pub fn downcast_mut<T: 'static>(&mut self) -> Option<&mut T> {
        if let Some(encoded) = self.handle.as_encoded() {
            *self = encoded.decode().cast();
        }
        self.handle.get_mut()
    }

    /// Turns this handle into a [`Cached`] with the given key, resource version and UID, without
    /// moving the object.
    #[must_use]
    pub fn into_cached(mut self, key: ObjectKey, resource_version: ResourceVersion, uid: Uid) -> Cached<K>
    where
        K: 'static,
    {
        self.handle.identify(key, resource_version, uid);
        Cached::<AnyObject>::from_handle(self.handle).cast()
    }

    /// Returns whether the object is [encoded](Encoded).
    #[doc(hidden)]
    #[must_use]
    pub fn is_encoded(&self) -> bool {
        self.handle.is_closed()
    }

    /// Turns this handle into a [`Cached`], if the object is encoded.
    ///
    /// # Errors
    /// Returns this handle unchanged if the object is decoded, because the handle then does not
    /// contain the key, resource version and UID.
    #[doc(hidden)]
    pub fn into_cached_if_encoded(self) -> Result<Cached<AnyObject>, Self> {
        if self.is_encoded() { Ok(Cached::from_handle(self.handle)) } else { Err(self) }
    }
}

impl<K: Send + Sync + 'static> From<K> for OwnedObject<K> {
    fn from(object: K) -> Self {
        Self::new(object)
    }
}

impl<K: 'static> Deref for OwnedObject<K> {
    type Target = K;

    fn deref(&self) -> &K {
        self.downcast_ref().expect("the object has the type of its handle")
    }
}

impl<K: 'static> DerefMut for OwnedObject<K> {
    fn deref_mut(&mut self) -> &mut K {
        self.downcast_mut().expect("the object has the type of its handle")
    }
}

/// Never shows the content of the object: the object can be a Secret.
impl<K> fmt::Debug for OwnedObject<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedObject").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_object_is_changed_and_cached_in_place() {
        let mut fresh = OwnedObject::new([0_u8; 64]);
        let place = &raw const *fresh;
        fresh[7] = 7;
        let cached = fresh.into_cached(ObjectKey::cluster_scoped("a"), "5".into(), "u".into());
        assert_eq!((&raw const *cached, cached[7]), (place, 7));
        assert_eq!((cached.key().as_str(), cached.resource_version()), ("a", &"5".into()));
        assert_eq!(cached.uid(), &"u".into());
    }
}
