//! [`Cached`]: the handle to an object that all parts of an informer use.
//!
//! In client-go, a handler that writes through a pointer corrupts the cache, so client-go has a
//! mutation detector. A [`Cached`] is immutable.
//!
//! The handles of encoded objects are of two kinds. A store has closed handles, which cannot be
//! dereferenced. A handler or reader gets an open handle, which decodes the object at the first
//! dereference and then keeps the decoded object.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use ref_cast::{RefCastCustom, ref_cast_custom};

use crate::handle::Handle;
use crate::{Encoded, KeyError, ObjectKey, ResourceVersion, Uid};

/// A shared, immutable object that is cheap to clone.
///
/// It dereferences to the object. Key, resource version and UID are computed once and stored with
/// the object.
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
/// encoded object decodes the object if necessary. The decoded object then stays in memory at least
/// until this handle and its clones are dropped. A [`read`](Self::read) does not make the handle
/// keep the decoded object.
#[derive(RefCastCustom)]
#[repr(transparent)]
pub struct Cached<K> {
    pub(crate) handle: Handle,
    _type: PhantomData<fn() -> K>,
}

/// A placeholder for the type of the objects, in code that does not depend on this type.
///
/// An informer works with `Cached<AnyObject>`, so that a program contains the informer's code once
/// and not once per type. The functions that users call have the real type; they convert handles,
/// for example with [`Cached::cast`].
#[doc(hidden)]
#[derive(Debug)]
pub enum AnyObject {}

impl Cached<AnyObject> {
    /// Returns a new open handle if this handle is closed, and otherwise this handle. Use
    /// [`cast_ref`](Self::cast_ref) with the type of the object before you dereference the result.
    pub(crate) fn opened(self) -> Self {
        Self::from_handle(self.handle.open())
    }

    /// Returns whether this is an open handle that has decoded its object, or that has clones.
    pub(crate) fn is_in_use(&self) -> bool {
        self.handle.is_in_use()
    }

    /// Calls a function with the handle as a `Cached<T>` that can be dereferenced. `T` must be the
    /// type of the object.
    #[doc(hidden)]
    pub fn with_type<T: 'static, R>(&self, function: impl FnOnce(&Cached<T>) -> R) -> R {
        if self.is_closed() { function(&self.clone().cast()) } else { function(self.cast_ref()) }
    }

    /// Returns whether this is a closed handle to an encoded object. A closed handle cannot be
    /// dereferenced. To read the object, convert the handle with [`cast`](Self::cast) to the type
    /// of the object; the result is an open handle.
    #[doc(hidden)]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.handle.is_closed()
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
        Self::from_handle(Handle::new(key, resource_version, uid, object))
    }
}

impl<K: 'static> Cached<K> {
    /// Converts the handle to or from [`AnyObject`], without a check of the type. If `T` and `K`
    /// are the same type, returns the handle unchanged. Otherwise:
    ///
    /// - If `T` is the type of the object, the result can be dereferenced. A closed handle becomes
    ///   an open handle.
    /// - If `T` is [`AnyObject`], the result cannot be dereferenced. An open handle becomes a
    ///   closed handle.
    #[doc(hidden)]
    #[must_use]
    pub fn cast<T: 'static>(self) -> Cached<T> {
        // The compiler knows these types, so the conditions cost nothing.
        let (from, to) = (TypeId::of::<K>(), TypeId::of::<T>());
        Cached::from_handle(if from == to {
            self.handle
        } else if to == TypeId::of::<AnyObject>() {
            self.handle.close()
        } else {
            self.handle.open()
        })
    }
}

impl<K> Cached<K> {
    pub(crate) fn from_handle(handle: Handle) -> Self {
        Self { handle, _type: PhantomData }
    }

    /// Changes only the static type of the handle, without a check. If this handle is
    /// [closed](Cached::is_closed), the result must not be dereferenced.
    pub(crate) fn retype<T>(self) -> Cached<T> {
        Cached::from_handle(self.handle)
    }

    /// Changes only the static type of the handle, without a check. A [closed](Cached::is_closed)
    /// handle stays closed, and its dereference panics. To open a closed handle, use
    /// [`cast`](Self::cast).
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
        &self.handle.identity().key
    }

    /// Returns the object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.handle.identity().key.name()
    }

    /// Returns the object's namespace, or `None` for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.handle.identity().key.namespace()
    }

    /// Returns the object's resource version, which is empty if the object has none.
    #[must_use]
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.handle.identity().resource_version
    }

    /// Returns the object's UID, which is empty if the object has none.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.handle.identity().uid
    }

    /// Returns whether the object is stored [encoded](crate::Encoded).
    #[must_use]
    pub fn is_encoded(&self) -> bool {
        self.handle.as_encoded().is_some()
    }

    /// Returns the number of bytes of the [encoded](crate::Storage::Encoded) object, without the
    /// dictionary of a compressed object; `None` if the object is not encoded.
    #[doc(hidden)]
    #[must_use]
    pub fn encoded_len(&self) -> Option<usize> {
        self.handle.as_encoded().map(Encoded::byte_len)
    }

    /// Returns whether `self` and `other` are handles to the same object in memory. Handles to
    /// the same encoded object count as the same, even if each of them has decoded the object.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.handle.is_same(&other.handle)
            || (self.resource_version() == other.resource_version()
                && self.handle.closed().is_same(other.handle.closed()))
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
    /// Calls a function with the object, and decodes an encoded object first if necessary. Unlike a
    /// dereference, this call does not make the handle keep the decoded object.
    pub fn read<R>(&self, function: impl FnOnce(&K) -> R) -> R {
        if self.is_encoded() { function(&Self::from_handle(self.handle.reopened())) } else { function(self) }
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self::from_handle(self.handle.clone())
    }
}

impl<K: 'static> Deref for Cached<K> {
    type Target = K;

    /// Returns the object, and decodes it first if necessary.
    ///
    /// # Panics
    /// Panics in two cases, which only a wrong use of [`cast`](Cached::cast) or
    /// [`cast_ref`](Cached::cast_ref) causes:
    /// - `K` is not the type of the object.
    /// - The handle is [closed](Cached::is_closed).
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
    fn unnamed_object_is_rejected_and_error_has_its_namespace() {
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
