//! [`Handle`]: a pointer to an object of any type, with the object's identity.

use std::any::{Any, TypeId};
use std::sync::{Arc, OnceLock};

use crate::{AnyObject, Encoded, ObjectKey, OwnedObject, ResourceVersion, Uid};

/// A reference-counted pointer to an object of any type. Unlike [`Cached`](crate::Cached), it has
/// no type parameter.
///
/// The handles of encoded objects are of two kinds. A store or queue has closed handles, which
/// can't be dereferenced. A reader gets an [open](Self::open) handle, which keeps the decoded
/// object, so that the object is freed with the reader's handle and not with the store's.
#[derive(Clone)]
pub(crate) struct Handle(Arc<AnyInner>);

/// An object, [`Encoded`] or [`Opened`], with the object's identity: its key, resource version and UID.
// `repr(C)` keeps the fields in this order, so the key is next to the reference count of the `Arc`.
// A lookup reads only these two; the rest of a large object is on other pages.
#[repr(C)]
pub(crate) struct Inner<O: ?Sized> {
    pub(crate) key: ObjectKey,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) uid: Uid,
    object: O,
}

type AnyInner = Inner<dyn Any + Send + Sync>;

/// An encoded object, and the decoded object once it has been read.
pub(crate) struct Opened {
    encoded: Handle,
    decoded: OnceLock<Arc<OwnedObject<AnyObject>>>,
}

impl Handle {
    /// Returns the first handle to an object, which can be [`Encoded`].
    pub(crate) fn new<O: Any + Send + Sync>(
        key: ObjectKey,
        resource_version: ResourceVersion,
        uid: Uid,
        object: O,
    ) -> Self {
        Self(Arc::new(Inner { key, resource_version, uid, object }))
    }

    /// Returns the identity of the object.
    pub(crate) fn identity(&self) -> &AnyInner {
        &self.0
    }

    /// Sets the identity of the object. This must be the only handle to the object.
    pub(crate) fn identify(&mut self, key: ObjectKey, resource_version: ResourceVersion, uid: Uid) {
        let inner = Arc::get_mut(&mut self.0).expect("a fresh object has one handle");
        (inner.key, inner.resource_version, inner.uid) = (key, resource_version, uid);
    }

    /// Returns the object if it has type `T`; decodes it first if necessary. Returns `None` for a
    /// closed handle.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        match self.0.object.downcast_ref() {
            None => self.as_opened()?.decoded()?.downcast_ref(),
            object => object,
        }
    }

    /// The same as [`get`](Self::get), but mutable, and only for the only handle to a decoded
    /// object.
    pub(crate) fn get_mut<T: 'static>(&mut self) -> Option<&mut T> {
        Arc::get_mut(&mut self.0)?.object.downcast_mut()
    }

    /// Returns the encoded form, if the object has one.
    pub(crate) fn as_encoded(&self) -> Option<&Encoded> {
        // `type_id` is a virtual call. For a decoded object, it is the only one.
        match self.0.object.type_id() {
            closed if closed == TypeId::of::<Encoded>() => self.0.object.downcast_ref(),
            open if open == TypeId::of::<Opened>() => self.closed().0.object.downcast_ref(),
            _ => None,
        }
    }

    fn as_opened(&self) -> Option<&Opened> {
        self.0.object.downcast_ref()
    }

    /// Returns a handle that can be dereferenced.
    pub(crate) fn open(self) -> Self {
        if self.is_closed() { self.opened() } else { self }
    }

    #[cold]
    fn opened(self) -> Self {
        let Inner { key, resource_version, uid, .. } = self.identity();
        let (key, resource_version, uid) = (key.clone(), resource_version.clone(), uid.clone());
        Self::new(key, resource_version, uid, Opened { encoded: self, decoded: OnceLock::new() })
    }

    /// Returns a new open handle to this encoded object, which has not decoded the object yet.
    pub(crate) fn reopened(&self) -> Self {
        self.closed().clone().open()
    }

    /// Returns whether the handle must be [opened](Self::open) before it is dereferenced.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.object.is::<Encoded>()
    }

    /// The opposite of [`open`](Self::open): returns the handle to store or queue.
    pub(crate) fn close(self) -> Self {
        match self.as_opened() {
            Some(opened) => opened.encoded.clone(),
            None => self,
        }
    }

    /// The same as [`close`](Self::close), for a reference.
    pub(crate) fn closed(&self) -> &Self {
        self.as_opened().map_or(self, |opened| &opened.encoded)
    }

    /// Returns whether both are clones of the same handle.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Opened {
    #[cold]
    fn decoded(&self) -> Option<&OwnedObject<AnyObject>> {
        let encoded = self.encoded.as_encoded()?;
        Some(self.decoded.get_or_init(|| encoded.decoded()))
    }
}
