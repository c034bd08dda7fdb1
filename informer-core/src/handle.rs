//! [`Handle`]: a pointer to an object of any type, with the object's key, resource version and UID.
//!
//! The handles of encoded objects are of two kinds. A store has closed handles, which can't be
//! dereferenced. For a reader, [`Handle::open`] creates an open handle, which points to the closed
//! handle. The first dereference of an open handle decodes the object, and the handle then keeps
//! the decoded object. So the store's handle does not keep the decoded object in memory.

use std::any::TypeId;
use std::sync::{Arc, OnceLock};

use crate::thin_arc::ThinArc;
use crate::{AnyObject, Encoded, ObjectKey, OwnedObject, ResourceVersion, Uid};

/// A reference-counted pointer to an object of any type. Unlike [`Cached`](crate::Cached), it has
/// no type parameter.
#[derive(Clone)]
pub(crate) struct Handle(ThinArc);

/// The kind of a [`Handle`]: whether its object is decoded or encoded, and whether it can be
/// dereferenced. Reading the kind is faster than a comparison of types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Decoded,
    /// The object is [`Encoded`], and the handle is closed: it can't be dereferenced.
    Closed,
    /// The object is encoded, and the handle is open: its first dereference decodes the object. The
    /// handle points to an [`Opened`].
    Open,
}

/// The data that identifies an object and its version.
// `repr(C)` keeps the key first, usually in the cache line of the reference count: a lookup reads
// both.
#[repr(C)]
pub(crate) struct Identity {
    pub(crate) key: ObjectKey,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) uid: Uid,
}

/// The content of an open handle: the closed handle, and the decoded object after the first
/// dereference.
pub(crate) struct Opened {
    encoded: Handle,
    decoded: OnceLock<Arc<OwnedObject<AnyObject>>>,
}

impl Handle {
    /// Creates a handle, and moves `object` to the heap. The handle is closed for an [`Encoded`],
    /// open for an [`Opened`], and decoded for any other type.
    pub(crate) fn new<O: Send + Sync + 'static>(
        key: ObjectKey,
        resource_version: ResourceVersion,
        uid: Uid,
        object: O,
    ) -> Self {
        // The compiler knows these types, so the comparisons cost nothing.
        let object_type = TypeId::of::<O>();
        let kind = if object_type == TypeId::of::<Encoded>() {
            Kind::Closed
        } else if object_type == TypeId::of::<Opened>() {
            Kind::Open
        } else {
            Kind::Decoded
        };
        Self(ThinArc::new(kind, Identity { key, resource_version, uid }, object))
    }

    #[inline]
    pub(crate) fn identity(&self) -> &Identity {
        &self.0
    }

    /// Sets the key, resource version and UID of the object. This must be the only handle to the
    /// object.
    pub(crate) fn identify(&mut self, key: ObjectKey, resource_version: ResourceVersion, uid: Uid) {
        let identity = self.0.identity_mut().expect("a fresh object has one handle");
        *identity = Identity { key, resource_version, uid };
    }

    /// Returns the object if it has type `T`. An [open](Self::open) handle decodes its object at
    /// the first call. Returns `None` for a closed handle.
    #[inline]
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        match self.as_opened() {
            Some(opened) => opened.decoded()?.downcast_ref(),
            None => self.0.object(),
        }
    }

    /// Returns mutable access to the object, if the object has type `T` and is not encoded, and
    /// this is the only handle to the object.
    pub(crate) fn get_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.0.object_mut()
    }

    pub(crate) fn as_encoded(&self) -> Option<&Encoded> {
        match self.0.kind() {
            Kind::Decoded => None,
            Kind::Closed | Kind::Open => self.closed().0.object(),
        }
    }

    fn as_opened(&self) -> Option<&Opened> {
        if self.0.kind() == Kind::Open { self.0.object() } else { None }
    }

    /// Returns a handle that can be dereferenced: a new handle if this one is
    /// [closed](Self::is_closed), and otherwise this one.
    #[inline]
    pub(crate) fn open(self) -> Self {
        if self.is_closed() { self.opened() } else { self }
    }

    #[cold]
    fn opened(self) -> Self {
        let Identity { key, resource_version, uid } = self.identity();
        let (key, resource_version, uid) = (key.clone(), resource_version.clone(), uid.clone());
        Self::new(key, resource_version, uid, Opened { encoded: self, decoded: OnceLock::new() })
    }

    /// Returns a new [open](Self::open) handle to this encoded object.
    pub(crate) fn reopened(&self) -> Self {
        self.closed().clone().open()
    }

    /// Returns whether the handle must be [opened](Self::open) before it is dereferenced.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.0.kind() == Kind::Closed
    }

    /// Returns whether this open handle has been dereferenced, or has clones. Always `false` if
    /// this handle is not [open](Self::open).
    pub(crate) fn is_in_use(&self) -> bool {
        // The clones first: if a clone decoded the object, it did so before it was dropped.
        self.as_opened().is_some_and(|opened| !self.0.is_unique() || opened.decoded.get().is_some())
    }

    /// Returns the closed handle of this open handle. Returns this handle itself if it is not open.
    /// A closed handle does not keep the decoded object in memory.
    pub(crate) fn close(self) -> Self {
        match self.as_opened() {
            Some(opened) => opened.encoded.clone(),
            None => self,
        }
    }

    /// Returns the closed handle of this open handle, by reference. Returns this handle itself if
    /// it is not open.
    pub(crate) fn closed(&self) -> &Self {
        self.as_opened().map_or(self, |opened| &opened.encoded)
    }

    /// Returns whether `self` and `other` are clones of one handle. An open handle is not a clone
    /// of its closed handle.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Opened {
    #[cold]
    fn decoded(&self) -> Option<&OwnedObject<AnyObject>> {
        let encoded = self.encoded.as_encoded()?;
        Some(self.decoded.get_or_init(|| encoded.decoded()))
    }
}
