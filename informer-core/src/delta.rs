//! [`Delta`]: a queued change of an object, and [`Deleted`]: a deleted object.
//!
//! client-go: `Delta`, `Deltas` and `DeletedFinalStateUnknown` of `tools/cache/delta_fifo.go`.

use std::fmt;
use std::marker::PhantomData;

use ref_cast::{RefCastCustom, ref_cast_custom};
use smallvec::SmallVec;

use crate::{AnyObject, Cached, ObjectKey, Uid};

/// A change of one object, as a [`DeltaFifo`](crate::DeltaFifo) queues it.
#[derive(Debug)]
pub enum Delta<K> {
    /// The watch reported a new object.
    Added(Cached<K>),
    /// The watch reported a new version of an object.
    Updated(Cached<K>),
    /// A list contained a new object, or an object that is not the [same
    /// version](Cached::same_version) as the newest one of the queue or the consumer's store.
    Replaced(Cached<K>),
    /// A resync is due for the object with this key, which the consumer's store contains.
    Sync(ObjectKey),
    /// The object was deleted.
    Deleted(Deleted<K>),
    /// The object left the informer's scope, because its namespace is no longer watched. The object
    /// can still exist on the server. The field contains its newest known state.
    Released(Cached<K>),
}

impl<K> Delta<K> {
    /// Returns the key of the object that changed.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added(obj) | Self::Updated(obj) | Self::Replaced(obj) | Self::Released(obj) => obj.key(),
            Self::Sync(key) => key,
            Self::Deleted(deleted) => deleted.key(),
        }
    }

    /// Returns the object after the change. For [`Deleted`](Self::Deleted) and
    /// [`Released`](Self::Released), returns the last known state of the object. Returns `None` for
    /// [`Sync`](Self::Sync), and for a deleted object without a known state.
    #[must_use]
    pub fn object(&self) -> Option<&Cached<K>> {
        match self {
            Self::Added(obj) | Self::Updated(obj) | Self::Replaced(obj) | Self::Released(obj) => Some(obj),
            Self::Sync(_) => None,
            Self::Deleted(deleted) => deleted.last_known(),
        }
    }

    /// Returns whether the object has been deleted.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted(_))
    }

    /// Returns whether this change removes the object from a store: the object was deleted, or its
    /// namespace is no longer watched ([`Released`](Self::Released)).
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Deleted(_) | Self::Released(_))
    }
}

impl<K> Clone for Delta<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(obj) => Self::Added(obj.clone()),
            Self::Updated(obj) => Self::Updated(obj.clone()),
            Self::Replaced(obj) => Self::Replaced(obj.clone()),
            Self::Sync(key) => Self::Sync(key.clone()),
            Self::Deleted(deleted) => Self::Deleted(deleted.clone()),
            Self::Released(obj) => Self::Released(obj.clone()),
        }
    }
}

/// The pending changes of one key, oldest first; never empty.
pub type Deltas<K> = SmallVec<[Delta<K>; 1]>;

/// A deleted object.
///
/// If the watch reported the deletion with the object's last state, [`is_exact`](Self::is_exact) is
/// `true` and [`last_known`](Self::last_known) is that state. Otherwise the deletion is a
/// tombstone: usually it was inferred from a later list that lacks the object. The last known state
/// of a tombstone is the newest state that this process has, and can be older than the object's
/// last state.
#[doc(alias = "DeletedFinalStateUnknown")]
#[doc(alias = "DeletedObject")]
#[derive(RefCastCustom)]
#[repr(transparent)]
pub struct Deleted<K> {
    inner: Parts,
    _type: PhantomData<fn() -> K>,
}

#[derive(Debug, Clone)]
struct Parts {
    key: ObjectKey,
    last_known: Option<Cached<AnyObject>>,
    previous: Option<Cached<AnyObject>>,
    exact: bool,
}

impl<K> Deleted<K> {
    /// Returns a deletion that a watch reported together with the object's last state.
    #[must_use]
    pub fn exact(last: Cached<K>) -> Self {
        Self::new(last.key().clone(), Some(last), true)
    }

    /// Returns a tombstone, usually for an object that a later list lacks. `last_known` is the
    /// newest state of the object that this process has, if any.
    #[must_use]
    pub fn missed(key: ObjectKey, last_known: Option<Cached<K>>) -> Self {
        Self::new(key, last_known, false)
    }

    fn new(key: ObjectKey, last_known: Option<Cached<K>>, exact: bool) -> Self {
        let parts = Parts { key, last_known: last_known.map(Cached::retype), previous: None, exact };
        Self { inner: parts, _type: PhantomData }
    }

    /// Changes the type of [`last_known`](Self::last_known) and [`previous`](Self::previous), to or
    /// from [`AnyObject`].
    #[doc(hidden)]
    #[must_use]
    pub fn cast<T: 'static>(self) -> Deleted<T>
    where
        K: 'static,
    {
        self.map(Cached::cast)
    }

    pub(crate) fn map<T>(self, change: impl Fn(Cached<K>) -> Cached<T>) -> Deleted<T> {
        let change = |object: Cached<AnyObject>| change(object.retype()).retype();
        let Parts { key, last_known, previous, exact } = self.inner;
        let inner = Parts { key, last_known: last_known.map(change), previous: previous.map(change), exact };
        Deleted { inner, _type: PhantomData }
    }

    /// Returns whether `test` returns `true` for [`last_known`](Self::last_known) or
    /// [`previous`](Self::previous), if they are present.
    pub(crate) fn any(&self, test: impl Fn(&Cached<AnyObject>) -> bool) -> bool {
        self.inner.last_known.iter().chain(&self.inner.previous).any(test)
    }

    /// Changes only the static type of [`last_known`](Self::last_known) and
    /// [`previous`](Self::previous), without a check; see [`Cached::cast_ref`].
    #[doc(hidden)]
    #[must_use]
    pub fn cast_ref<T>(&self) -> &Deleted<T> {
        Deleted::from_parts(&self.inner)
    }

    #[ref_cast_custom]
    fn from_parts(inner: &Parts) -> &Self;

    /// Returns the key of the deleted object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.inner.key
    }

    /// Returns the name of the deleted object.
    #[must_use]
    pub fn name(&self) -> &str {
        self.inner.key.name()
    }

    /// Returns the namespace of the deleted object, or `None` for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.inner.key.namespace()
    }

    /// Returns the UID of the deleted object, if the last known state has one.
    #[must_use]
    pub fn uid(&self) -> Option<&Uid> {
        self.last_known().map(Cached::uid).filter(|uid| !uid.is_missing())
    }

    /// Returns the newest known state of the deleted object; `None` if no state is known.
    ///
    /// In an event that a handler of an informer receives, the state is always known.
    #[must_use]
    pub fn last_known(&self) -> Option<&Cached<K>> {
        self.inner.last_known.as_ref().map(Cached::cast_ref)
    }

    /// Returns the version of the object that the handler received last before this deletion;
    /// `None` if that version is unknown.
    ///
    /// [`last_known`](Self::last_known) can be a newer version, for one of two reasons:
    /// - The watch reported the newer version only together with the deletion.
    /// - The handler is slow, so it received the deletion without the updates before it.
    ///
    /// Exception: if a slow handler has the option
    /// [`coalesce_drops_old`](crate::HandlerOptions::coalesce_drops_old), `previous` can be a newer
    /// version that the handler did not receive.
    #[must_use]
    pub fn previous(&self) -> Option<&Cached<K>> {
        self.inner.previous.as_ref().map(Cached::cast_ref)
    }

    /// Returns whether [`last_known`](Self::last_known) is the last state of the object, as the
    /// watch reported it. Returns `false` for a tombstone, whose last known state can be outdated.
    ///
    /// A handler with a [filter](crate::Filtered) also receives a deletion when an update changes
    /// an object so that the filter rejects it. For this deletion, `is_exact` returns `true`, and
    /// `last_known` is the state of the object before this update.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.inner.exact
    }

    /// Returns this deletion with `previous` as its [`previous`](Self::previous) version. If the
    /// deletion has no last known state, `previous` also becomes [`last_known`](Self::last_known).
    #[must_use]
    pub fn after(mut self, previous: Cached<K>) -> Self {
        let previous: Cached<AnyObject> = previous.retype();
        self.inner.last_known.get_or_insert_with(|| previous.clone());
        self.inner.previous = Some(previous);
        self
    }
}

impl<K> Clone for Deleted<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), _type: PhantomData }
    }
}

impl<K> fmt::Debug for Deleted<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deleted").field(&self.inner).finish()
    }
}
