//! [`ListerWatcher`]: the source of a reflector's objects.
//!
//! `KubeListWatch` of informer-reflector implements it for API servers. client-go: `ListerWatcher`
//! of tools/cache/listwatch.go. Here, a list arrives in parts, so that it is never in memory twice.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{PartialObjectMeta, Status};

use crate::{AnyObject, ListWatchError, ObjectKey, OwnedObject, ResourceVersion, Storage};

/// Lists the objects of a resource, and watches their changes after a resource version.
///
/// Each instance is for one resource in one scope: its namespace, selectors and credentials are
/// fixed.
///
/// Objects are returned as [`OwnedObject`], which keeps them on the heap. `object.into()` creates
/// an `OwnedObject`.
#[async_trait]
pub trait ListerWatcher<K>: Send + Sync + 'static {
    /// Returns the resource and its scope, for log and error messages: `pods`, or `deployments.apps
    /// in namespace "shop"`.
    fn description(&self) -> &str;

    /// Returns the resource without its scope: `deployments.apps`. All sources of a resource must
    /// return the same string, because it identifies the reflectors of the resource. If one of
    /// these reflectors finds that streaming lists do not work, all of these reflectors that share
    /// its `SharedServer` use paged lists for some time. Default: the
    /// [description](Self::description).
    fn resource(&self) -> &str {
        self.description()
    }

    /// Returns whether to try streaming lists (KEP-3157): a [watch](Self::watch) that begins with
    /// the existing objects ([`send_initial_events`](WatchOptions::send_initial_events)). This
    /// method sends no request. Default: `false`; reflectors then use [`list`](Self::list).
    #[doc(alias = "IsWatchListSemanticsUnSupported")]
    fn can_stream_lists(&self) -> bool {
        false
    }

    /// Returns whether an object with this metadata is in the scope of this source; `true` if
    /// unknown. Default: `true`.
    fn covers(&self, object: &ObjectMeta) -> bool {
        let _ = object;
        true
    }

    /// Returns a source that lists only metadata of the same objects: at least name, namespace, UID
    /// and resource version. Listing only metadata costs much less than listing whole objects.
    /// Default: `None`; callers then list whole objects.
    fn metadata_only(&self) -> Option<Arc<dyn ListerWatcher<PartialObjectMeta>>> {
        None
    }

    /// Returns a source for a single object, which lists only the object's metadata. `object` is
    /// the key of this object. The object need not match the selectors of `self`. Returns `None` if
    /// this is not supported, or if `self` is limited to another namespace. Default: `None`.
    fn object_metadata(&self, object: &ObjectKey) -> Option<Arc<dyn ListerWatcher<PartialObjectMeta>>> {
        let _ = object;
        None
    }

    /// Returns a source of the same objects in the form `storage`, for example encoded. Returns
    /// `None` if the source can't encode objects; the reflector then encodes them. Default: `None`.
    fn with_storage(&self, storage: Storage) -> Option<Arc<dyn ListerWatcher<K>>> {
        let _ = storage;
        None
    }

    /// Returns a counter of the bytes that this source has received in the bodies of lists and
    /// watches, before decompression. The source increases the counter. The source that
    /// [`with_storage`](Self::with_storage) returns has the same counter. Default: `None`, which
    /// means that the source does not count bytes.
    fn received_bytes(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// Returns a function that creates the source of one namespace. With such a function, an
    /// informer lists and watches each namespace separately, and uses only the
    /// [description](Self::description) and the [resource](Self::resource) of this source itself.
    /// The user of the informer chooses the namespaces.
    ///
    /// Default: `None`, which means that the informer lists and watches this source as a whole.
    fn namespace_by_namespace(&self) -> Option<InNamespace<K>> {
        None
    }

    /// Starts a list and returns a stream of its parts as they arrive. The last part is
    /// [`ListPart::End`].
    ///
    /// # Errors
    /// The errors of the request. A later error is the last item of the stream.
    ///
    /// # Cancel safety
    /// Dropping the future or the stream cancels the list.
    async fn list(&self, options: ListOptions) -> Result<ListStream<K>, ListWatchError>;

    /// Starts a watch and returns a stream of its events as they arrive, in batches of events that
    /// arrived together.
    ///
    /// The stream ends without an error when the server closes the watch properly. If the response
    /// ends early, the last item is [`ListWatchError::Interrupted`].
    ///
    /// # Errors
    /// The errors of the request. A later error is the last item of the stream.
    ///
    /// # Cancel safety
    /// Dropping the future or the stream cancels the watch.
    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<K>, ListWatchError>;
}

/// A function that creates the source of the namespace with a given name.
pub type InNamespace<K> = Box<dyn Fn(&str) -> Arc<dyn ListerWatcher<K>> + Send + Sync>;

/// A stream of the parts of a list, as they arrive.
pub type ListStream<K> = BoxStream<'static, Result<ListPart<K>, ListWatchError>>;

/// A stream of batches of watch events, as they arrive. An empty batch shows that bytes have
/// arrived, but no complete event.
pub type WatchStream<K> = BoxStream<'static, Result<Vec<WatchEvent<K>>, ListWatchError>>;

/// A part of the response to a list: some of the items, or the data that follows all items.
#[derive(Debug)]
pub enum ListPart<K> {
    /// Some items of the list, in order. An item that can't be decoded is a [`RejectedObject`]. A
    /// part without items shows that bytes have arrived, but no complete item.
    Items(Vec<Result<OwnedObject<K>, RejectedObject>>),
    /// The resource version and the continue token of the list or page. Arrives after all items.
    End(ListEnd),
}

/// The metadata of a list, or of one page of a list: resource version, continue token and remaining
/// count. It arrives after all items of the list or page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListEnd {
    /// The resource version of the list as a whole.
    pub resource_version: ResourceVersion,
    /// The continue token with which to request the next page; `None` for the last page.
    pub continue_token: Option<String>,
    /// The number of items on the following pages, if the server returned it.
    pub remaining_item_count: Option<u64>,
}

/// An event of a watch.
#[derive(Debug)]
pub enum WatchEvent<K> {
    /// An object was created, or began to match the selectors. At the start of a watch, the event
    /// can also report an existing object.
    Added(OwnedObject<K>),
    /// An object has a new version.
    Modified(OwnedObject<K>),
    /// An object was deleted, or no longer matches the selectors. The field has the last state of
    /// the object that matched the selectors, with the resource version of this event.
    Deleted(OwnedObject<K>),
    /// The server has sent all changes up to a resource version.
    Bookmark(Bookmark),
    /// The watch failed with this status from the server. This is the last event of the watch.
    Error(Box<Status>),
    /// An event whose object can't be decoded.
    RejectedObject {
        /// What the event reports: a new version of the object, its deletion, or something unknown.
        kind: RejectedKind,
        /// The parts of the object that could be decoded, and the error.
        object: RejectedObject,
    },
}

/// A watch event with a resource version and without a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bookmark {
    /// The resource version up to which the server has sent all changes.
    pub resource_version: ResourceVersion,
    /// Whether this bookmark ends the initial events of a streaming list.
    pub initial_events_end: bool,
}

/// The kind of a watch event whose object couldn't be decoded: a change, a deletion, or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectedKind {
    /// The event reports an added or modified object, so the state in the store is out of date.
    Changed,
    /// The event reports the deletion of the object.
    Deleted,
    /// The event has an unknown type or is a bookmark, or the data is not a watch event.
    Unknown,
}

/// An object that could not be decoded or has no name, or for which a transform failed.
///
/// The error of a decoder can contain field names and positions, but never content of the object.
/// The error of a transform can contain the text with which the transform failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedObject {
    /// The key of the object; `None` if it has no name, or if its name or namespace could not be
    /// decoded.
    pub key: Option<ObjectKey>,
    /// The resource version of the object; empty if it could not be decoded.
    pub resource_version: ResourceVersion,
    /// The reason why the object was rejected.
    pub error: String,
}

/// The options of a list request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// The resource version of the request. `None` requests the newest state, from a quorum read;
    /// `0` requests any state, from the server's cache. For other versions, see
    /// `resource_version_match`.
    pub resource_version: Option<ResourceVersion>,
    /// The meaning of `resource_version`. `None` means the server's default.
    pub resource_version_match: Option<ResourceVersionMatch>,
    /// The maximum number of items on a page. `None` requests all items on one page.
    pub limit: Option<u32>,
    /// The continue token that the previous page returned in [`ListEnd::continue_token`]; `None`
    /// for the first page.
    pub continue_token: Option<String>,
}

/// The meaning of the resource version of a list request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceVersionMatch {
    /// Requests a state that is at least as new as the resource version.
    NotOlderThan,
    /// Requests the state at exactly the resource version.
    Exact,
}

/// The options of a watch request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// The resource version after which the server sends events. If it is empty, the server first
    /// sends an event for each existing object.
    pub resource_version: ResourceVersion,
    /// The time after which the server ends the watch. The request contains it in whole seconds.
    pub timeout: Duration,
    /// Whether the server may send bookmarks.
    pub allow_bookmarks: bool,
    /// Whether to request a streaming list: the server first sends an event for each existing
    /// object, then a bookmark with the annotation `k8s.io/initial-events-end`, then changes.
    /// Servers before 1.34 can also send changes before this bookmark.
    pub send_initial_events: bool,
}

impl<K> ListPart<K> {
    /// Changes only the static type of the objects.
    fn cast<T>(self) -> ListPart<T> {
        match self {
            Self::Items(items) => {
                ListPart::Items(items.into_iter().map(|item| item.map(OwnedObject::cast)).collect())
            }
            Self::End(end) => ListPart::End(end),
        }
    }
}

impl<K> WatchEvent<K> {
    fn cast<T>(self) -> WatchEvent<T> {
        match self {
            Self::Added(object) => WatchEvent::Added(object.cast()),
            Self::Modified(object) => WatchEvent::Modified(object.cast()),
            Self::Deleted(object) => WatchEvent::Deleted(object.cast()),
            Self::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
            Self::Error(status) => WatchEvent::Error(status),
            Self::RejectedObject { kind, object } => WatchEvent::RejectedObject { kind, object },
        }
    }
}

/// A source that returns the objects of another source as [`AnyObject`]s.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "sources need not implement `Debug`")]
pub struct AnySource<K>(pub Arc<dyn ListerWatcher<K>>);

#[async_trait]
impl<K: 'static> ListerWatcher<AnyObject> for AnySource<K> {
    fn description(&self) -> &str {
        self.0.description()
    }

    fn resource(&self) -> &str {
        self.0.resource()
    }

    fn can_stream_lists(&self) -> bool {
        self.0.can_stream_lists()
    }

    fn covers(&self, object: &ObjectMeta) -> bool {
        self.0.covers(object)
    }

    fn metadata_only(&self) -> Option<Arc<dyn ListerWatcher<PartialObjectMeta>>> {
        self.0.metadata_only()
    }

    fn object_metadata(&self, object: &ObjectKey) -> Option<Arc<dyn ListerWatcher<PartialObjectMeta>>> {
        self.0.object_metadata(object)
    }

    fn received_bytes(&self) -> Option<Arc<AtomicU64>> {
        self.0.received_bytes()
    }

    fn with_storage(&self, storage: Storage) -> Option<Arc<dyn ListerWatcher<AnyObject>>> {
        Some(Arc::new(AnySource(self.0.with_storage(storage)?)))
    }

    fn namespace_by_namespace(&self) -> Option<InNamespace<AnyObject>> {
        self.0.namespace_by_namespace().map(any_in_namespace)
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<AnyObject>, ListWatchError> {
        let parts = self.0.list(options).await?;
        Ok(parts.map(|part| part.map(ListPart::cast)).boxed())
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<AnyObject>, ListWatchError> {
        let events = self.0.watch(options).await?;
        Ok(events.map(|events| Ok(events?.into_iter().map(WatchEvent::cast).collect())).boxed())
    }
}

/// Returns a function that calls `make` with the name of a namespace, and changes the object type
/// of the returned source to [`AnyObject`].
#[doc(hidden)]
#[must_use]
pub fn any_in_namespace<K: 'static>(make: InNamespace<K>) -> InNamespace<AnyObject> {
    Box::new(move |namespace| Arc::new(AnySource(make(namespace))))
}

#[cfg(test)]
fn _is_object_safe(_: &dyn ListerWatcher<()>) {}
