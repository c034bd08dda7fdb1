//! [`Cached`]: the handle to an object that all parts of an informer use.
//!
//! client-go passes pointers, and each part of an informer computes the key of the object again. A
//! handler that writes through such a pointer corrupts the cache, so client-go has a mutation
//! detector. A [`Cached`] is immutable, so it needs no detector.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Resource;
use ref_cast::{RefCastCustom, ref_cast_custom};

use crate::{Encoded, KeyError, ObjectKey, OwnedObject, ResourceVersion, Uid};

/// A shared, immutable object that is cheap to clone.
///
/// It dereferences to the object. Key, resource version and UID are computed once and stored in the
/// same allocation as the object.
///
/// ```
/// use informer_core::Cached;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let mut pod = Pod::default();
/// pod.metadata.namespace = Some("default".into());
/// pod.metadata.name = Some("nginx".into());
/// pod.metadata.resource_version = Some("42".into());
///
/// let cached = Cached::new(pod)?;
/// assert_eq!(cached.key().as_str(), "default/nginx");
/// assert_eq!(cached.metadata.name.as_deref(), Some("nginx"));
/// # Ok::<(), informer_core::KeyError>(())
/// ```
///
/// An informer can store objects [encoded](crate::Storage::Encoded). Dereferencing a handle to an
/// encoded object decodes the object, and the handle keeps the decoded object until the handle is
/// dropped. [`read`](Self::read) does not keep the decoded object in the handle.
#[derive(RefCastCustom)]
#[repr(transparent)]
pub struct Cached<K> {
    handle: Handle,
    _type: PhantomData<fn() -> K>,
}

/// A placeholder for the type of the objects, in code that does not depend on this type.
///
/// An informer works with `Cached<AnyObject>`, so that a program contains the informer's code once
/// and not once per type. Only the functions that users call have the real type; they convert
/// handles with [`Cached::cast`].
#[doc(hidden)]
#[derive(Debug)]
pub enum AnyObject {}

// `repr(C)` keeps the fields in this order, so the key is next to the reference count of the `Arc`.
// A lookup reads only these two; the rest of a large object is on other pages.
#[repr(C)]
pub(crate) struct Inner<O: ?Sized> {
    key: ObjectKey,
    resource_version: ResourceVersion,
    uid: Uid,
    pub(crate) object: O,
}

impl<O> Inner<O> {
    pub(crate) fn new(key: ObjectKey, resource_version: ResourceVersion, uid: Uid, object: O) -> Self {
        Self { key, resource_version, uid, object }
    }
}

/// The identity of an object, and the decoded object or its [`Encoded`] form.
pub(crate) type AnyInner = Inner<dyn Any + Send + Sync>;

impl AnyInner {
    /// Sets the identity of the object: its key, resource version and UID.
    pub(crate) fn identify(&mut self, key: ObjectKey, resource_version: ResourceVersion, uid: Uid) {
        (self.key, self.resource_version, self.uid) = (key, resource_version, uid);
    }
}

/// A reference-counted pointer to an object of any type. Unlike [`Cached`], it has no type
/// parameter.
pub(crate) struct Handle {
    pub(crate) inner: Arc<AnyInner>,
    /// The decoded form of an encoded object, once this handle has been dereferenced.
    decoded: OnceLock<Arc<OwnedObject<AnyObject>>>,
}

impl Handle {
    pub(crate) fn new(inner: Arc<AnyInner>) -> Self {
        Self { inner, decoded: OnceLock::new() }
    }

    /// Returns the object if it has type `T`; decodes it first if necessary.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        match self.inner.object.downcast_ref() {
            None => self.decoded()?.handle.get(),
            object => object,
        }
    }

    /// Returns the encoded form, if the object has one.
    pub(crate) fn encoded(&self) -> Option<&Encoded> {
        self.inner.object.downcast_ref()
    }

    #[cold]
    fn decoded(&self) -> Option<&OwnedObject<AnyObject>> {
        let encoded = self.encoded()?;
        Some(self.decoded.get_or_init(|| encoded.decoded()))
    }
}

/// A clone refers to the same object, but does not keep the decoded form of an encoded object in
/// memory.
impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.inner))
    }
}

impl<K: Resource + Send + Sync + 'static> Cached<K> {
    /// Wraps a Kubernetes object. The key is `namespace/name`, or `name` for a cluster-scoped
    /// object.
    ///
    /// # Errors
    /// [`KeyError::MissingName`] if the object has no name.
    pub fn new(object: K) -> Result<Self, KeyError> {
        let key = ObjectKey::of(&object)?;
        let meta = object.meta();
        let resource_version = meta.resource_version.as_deref().into();
        let uid = meta.uid.as_deref().into();
        Ok(Self::from_parts(key, resource_version, uid, object))
    }
}

impl<K: Send + Sync + 'static> Cached<K> {
    /// Wraps any object with the key that the function `key` returns for the object. Use this for
    /// objects that are not Kubernetes objects. The result has neither resource version nor UID, so
    /// each new copy of an object counts as a change.
    ///
    /// # Errors
    /// [`KeyError::Function`] if the function fails.
    #[doc(alias = "KeyFunc")]
    pub fn keyed<E: fmt::Display>(
        object: K,
        key: impl FnOnce(&K) -> Result<ObjectKey, E>,
    ) -> Result<Self, KeyError> {
        let key = key(&object).map_err(KeyError::function::<K>)?;
        Ok(Self::from_parts(key, ResourceVersion::empty(), Uid::default(), object))
    }

    /// Wraps any object with the given key, resource version and UID.
    #[must_use]
    pub fn from_parts(key: ObjectKey, resource_version: ResourceVersion, uid: Uid, object: K) -> Self {
        Self::from_handle(Handle::new(Arc::new(Inner::new(key, resource_version, uid, object))))
    }
}

impl<K> Cached<K> {
    pub(crate) fn from_handle(handle: Handle) -> Self {
        Self { handle, _type: PhantomData }
    }

    /// Changes the type of the handle, to or from [`AnyObject`]. Dereferencing a handle panics if
    /// the type of the handle is not the type of the object.
    #[doc(hidden)]
    #[must_use]
    pub fn cast<T>(self) -> Cached<T> {
        Cached::from_handle(self.handle)
    }

    /// The same as [`cast`](Self::cast), for a reference.
    #[doc(hidden)]
    #[must_use]
    pub fn cast_ref<T>(&self) -> &Cached<T> {
        Cached::from_handle_ref(&self.handle)
    }

    #[ref_cast_custom]
    fn from_handle_ref(handle: &Handle) -> &Self;

    /// Returns the object's key.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.handle.inner.key
    }

    /// Returns the object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.handle.inner.key.name()
    }

    /// Returns the object's namespace, or `None` for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.handle.inner.key.namespace()
    }

    /// Returns the object's resource version.
    #[must_use]
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.handle.inner.resource_version
    }

    /// Returns the object's UID.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.handle.inner.uid
    }

    /// Returns whether the object is stored [encoded](crate::Encoded).
    #[must_use]
    pub fn is_encoded(&self) -> bool {
        self.handle.encoded().is_some()
    }

    /// Returns whether `self` and `other` are handles to the same object in memory.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle.inner, &other.handle.inner)
    }

    /// Returns whether `self` and `other` are the same version of the same object: their UIDs and
    /// resource versions are equal, and the resource version is not empty.
    #[must_use]
    pub fn same_version(&self, other: &Self) -> bool {
        !self.resource_version().is_empty()
            && self.resource_version() == other.resource_version()
            && self.uid() == other.uid()
    }
}

impl<K: 'static> Cached<K> {
    /// Calls a function with the object. An encoded object is decoded for this call, and this
    /// handle does not keep the decoded object.
    pub fn read<R>(&self, function: impl FnOnce(&K) -> R) -> R {
        if self.is_encoded() { function(&self.clone()) } else { function(self) }
    }
}

impl<K: Resource + 'static> Cached<K> {
    /// Returns the object's metadata. Of an encoded object, only the metadata is decoded.
    #[must_use]
    pub fn metadata(&self) -> Cow<'_, ObjectMeta> {
        match self.handle.encoded() {
            Some(encoded) => Cow::Owned(encoded.metadata()),
            None => Cow::Borrowed(self.meta()),
        }
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self::from_handle(self.handle.clone())
    }
}

impl<K: 'static> Deref for Cached<K> {
    type Target = K;

    /// Panics only if the handle was [cast](Cached::cast) to a type other than the type of the
    /// object.
    fn deref(&self) -> &K {
        self.handle.get().expect("a handle has the type of its object")
    }
}

impl<K: 'static> AsRef<K> for Cached<K> {
    fn as_ref(&self) -> &K {
        self
    }
}

/// Shows the key and the resource version of the object, never its content: the object can be a
/// Secret.
impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cached({}@{})", self.key(), self.resource_version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{Node, Secret};

    #[test]
    fn an_object_without_a_name_is_refused_and_its_namespace_named() {
        let mut secret = Secret::default();
        secret.metadata.namespace = Some("vault".into());
        let error = Cached::new(secret).expect_err("no name");
        assert!(error.to_string().contains("vault"), "{error}");
    }

    #[test]
    fn debug_output_never_shows_object_content() {
        let mut secret = Secret::default();
        secret.metadata.name = Some("token".into());
        secret.string_data = Some([("password".to_owned(), "hunter2".to_owned())].into());
        let shown = format!("{:?}", Cached::new(secret).expect("a name"));
        assert_eq!(shown, "Cached(token@)");
    }

    #[test]
    fn the_same_version_needs_equal_uid_and_a_resource_version() {
        let node = |uid: &str, version: &str| {
            let mut node = Node::default();
            node.metadata.name = Some("n".into());
            node.metadata.uid = Some(uid.into());
            node.metadata.resource_version = Some(version.into());
            Cached::new(node).expect("a name")
        };
        assert!(node("a", "1").same_version(&node("a", "1")));
        assert!(!node("a", "1").same_version(&node("b", "1")));
        assert!(!node("a", "1").same_version(&node("a", "2")));
        assert!(!node("a", "").same_version(&node("a", "")));
    }
}
