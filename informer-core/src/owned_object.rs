//! [`OwnedObject`]: an object that has just come from its source and is still one hand's own.
//!
//! Objects are large: a pod is 2.4 KB with all of its fields empty. So they are put where they stay as soon as they are
//! decoded, and from there on only the handle is moved. client-go's sources make pointers for the same reason.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::cached::Inner;
use crate::{Cached, ObjectKey, ResourceVersion, Uid};

/// An object in the memory in which it will be [`Cached`], but with one owner, who may still change it.
///
/// That is what a [`ListerWatcher`](crate::ListerWatcher) hands over. It is made of the object with `into()`, best where
/// the object is made, and dereferences to it.
///
/// ```
/// use informer_core::{OwnedObject, WatchEvent};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let mut pod = OwnedObject::new(Pod::default());
/// pod.metadata.name = Some("nginx".into());
/// let event = WatchEvent::Added(pod);
/// // Or, where the object is there already:
/// let event = WatchEvent::Added(Pod::default().into());
/// ```
pub struct OwnedObject<K> {
    /// The only handle: it is given away with the whole of this, and there are no weak ones.
    inner: Arc<Inner<K>>,
}

impl<K> OwnedObject<K> {
    /// Puts an object where it will stay.
    #[must_use]
    pub fn new(object: K) -> Self {
        let key = ObjectKey::placeholder();
        Self { inner: Arc::new(Inner::new(key, ResourceVersion::empty(), Uid::default(), object)) }
    }

    /// Makes it an object that is shared from here on, with all that tells it from others given by the caller. The
    /// object stays where it is.
    #[must_use]
    pub fn into_cached(mut self, key: ObjectKey, resource_version: ResourceVersion, uid: Uid) -> Cached<K> {
        self.inner_mut().identify(key, resource_version, uid);
        Cached::from_inner(self.inner)
    }

    /// Takes the object out again.
    #[must_use]
    pub fn into_inner(self) -> K {
        the_only(Arc::into_inner(self.inner)).into_object()
    }

    fn inner_mut(&mut self) -> &mut Inner<K> {
        the_only(Arc::get_mut(&mut self.inner))
    }
}

/// What only the owner of the only handle gets, which a fresh object always is.
fn the_only<T>(inner: Option<T>) -> T {
    inner.expect("a fresh object has one handle")
}

impl<K> From<K> for OwnedObject<K> {
    fn from(object: K) -> Self {
        Self::new(object)
    }
}

impl<K> Deref for OwnedObject<K> {
    type Target = K;

    fn deref(&self) -> &K {
        self.inner.object()
    }
}

impl<K> DerefMut for OwnedObject<K> {
    fn deref_mut(&mut self) -> &mut K {
        self.inner_mut().object_mut().expect("a fresh object is held as itself")
    }
}

/// Shows the object, as a `Box` would.
impl<K: fmt::Debug> fmt::Debug for OwnedObject<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        K::fmt(self, f)
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

    #[test]
    fn what_is_taken_out_is_what_was_put_in() {
        let mut fresh = OwnedObject::from("a".to_owned());
        fresh.push('b');
        assert_eq!(fresh.into_inner(), "ab");
    }
}
