//! [`ListerWatcher`]: the seam between the reflector and whatever lists and watches objects for it.
//!
//! Over the network that is `KubeListWatch` of informer-reflector; in tests it can be anything. client-go:
//! `ListerWatcher` of tools/cache/listwatch.go. Where client-go hands over a whole decoded list, a list here arrives in
//! parts, so that nobody has to hold it twice.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{PartialObjectMeta, Status};

use crate::{ListWatchError, ObjectKey, OwnedObject, ResourceVersion};

/// Lists objects, and watches them from a resource version on.
///
/// One value stands for one resource in one scope: namespace, selectors and credentials are its own affair.
///
/// Objects are handed over as [`OwnedObject`] ones, in the memory in which they will stay: `object.into()` makes one.
#[async_trait]
pub trait ListerWatcher<K>: Send + Sync + 'static {
    /// Says what is listed, for messages: `pods`, or `deployments.apps in namespace "shop"`.
    fn description(&self) -> &str;

    /// Names the resource alone, whatever the scope: `deployments.apps`. What is learnt about how a server serves it
    /// holds for all that name it so. Default: the [description](Self::description).
    fn resource(&self) -> &str {
        self.description()
    }

    /// Returns whether a [watch](Self::watch) can begin with the objects that exist
    /// ([`send_initial_events`](WatchOptions::send_initial_events)), as far as that is known without asking: a streaming
    /// list (KEP-3157). Default: it can't, so that lists are used instead.
    #[doc(alias = "IsWatchListSemanticsUnSupported")]
    fn can_stream_lists(&self) -> bool {
        false
    }

    /// Returns whether an object with this metadata is among those that are listed and watched; `true` where that can't be
    /// told. Default: `true`.
    fn covers(&self, object: &ObjectMeta) -> bool {
        let _ = object;
        true
    }

    /// Returns what lists and watches the same objects with nothing of them but their metadata, at a fraction of the
    /// cost. Default: `None`, and whoever wants metadata takes whole objects.
    fn metadata_only(&self) -> Option<Arc<dyn ListerWatcher<PartialObjectMeta>>> {
        None
    }

    /// Returns what lists nothing but the metadata of the object with this key, whether or not selectors match the object:
    /// for reading the current state of one object. Default: `None`, which means unsupported.
    fn only(&self, object: &ObjectKey) -> Option<Arc<dyn ListerWatcher<PartialObjectMeta>>> {
        let _ = object;
        None
    }

    /// Returns what makes the like of this for single namespaces, if each is to be listed and watched on its own, and
    /// whoever runs this says which. Default: `None`, this is listed and watched as a whole.
    fn namespace_by_namespace(&self) -> Option<InNamespace<K>> {
        None
    }

    /// Starts a list and returns its parts as they arrive. The last part is [`ListPart::End`].
    ///
    /// # Errors
    /// Those of the request. Once parts flow, errors come in the stream, and end it.
    ///
    /// # Cancel safety
    /// Dropping the future or the stream gives the list up.
    async fn list(&self, options: ListOptions) -> Result<ListStream<K>, ListWatchError>;

    /// Starts a watch and returns its events as they arrive, in batches as large as what came in one piece.
    ///
    /// The stream ends where the server closes the watch in good order, and yields [`ListWatchError::Interrupted`]
    /// where it breaks off.
    ///
    /// # Errors
    /// Those of the request. Once events flow, errors come in the stream, and end it.
    ///
    /// # Cancel safety
    /// Dropping the future or the stream gives the watch up.
    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<K>, ListWatchError>;
}

/// Makes what lists and watches a namespace.
pub type InNamespace<K> = Box<dyn Fn(&str) -> Arc<dyn ListerWatcher<K>> + Send + Sync>;

/// The parts of a list as they arrive.
pub type ListStream<K> = BoxStream<'static, Result<ListPart<K>, ListWatchError>>;

/// Batches of watch events as they arrive; never an empty batch.
pub type WatchStream<K> = BoxStream<'static, Result<Vec<WatchEvent<K>>, ListWatchError>>;

/// A part of a list.
#[derive(Debug)]
pub enum ListPart<K> {
    /// Some of its items, in order. An item that can't be decoded is in its place as [`RejectedObject`].
    Items(Vec<Result<OwnedObject<K>, RejectedObject>>),
    /// Its end.
    End(ListEnd),
}

/// What is known at the end of a list, or of a page of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListEnd {
    /// The resource version of the list as a whole.
    pub resource_version: ResourceVersion,
    /// Where the next page starts, if this is not the last.
    pub continue_token: Option<String>,
    /// How many items the following pages hold, if the server said so.
    pub remaining_item_count: Option<u64>,
}

/// What a watch reports.
#[derive(Debug)]
pub enum WatchEvent<K> {
    /// A new object, or one that now matches the selectors.
    Added(OwnedObject<K>),
    /// A new version of an object.
    Modified(OwnedObject<K>),
    /// An object that is gone, or no longer matches the selectors; its last state with the resource version of the
    /// deletion.
    Deleted(OwnedObject<K>),
    /// No change, but the server has come this far.
    Bookmark(Bookmark),
    /// The watch failed; it ends with this.
    Error(Box<Status>),
    /// An event whose object can't be decoded.
    RejectedObject {
        /// What happened to the object.
        kind: RejectedKind,
        /// What is known of it.
        object: RejectedObject,
    },
}

/// A mark in a watch stream without a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bookmark {
    /// How far the server has come.
    pub resource_version: ResourceVersion,
    /// Whether all objects that existed at the start of a streaming list have now been sent.
    pub initial_events_end: bool,
}

/// What a watch reported of an object that couldn't be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectedKind {
    /// It was added or modified: the state that is held of it is out of date from here on.
    Changed,
    /// It was deleted.
    Deleted,
    /// The event itself is of an unknown type, or isn't an event.
    Unknown,
}

/// An object that can't be decoded, or that a transform refused; what is known of it.
///
/// The error names fields and positions, never the object's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedObject {
    /// Its key, if its metadata could be read.
    pub key: Option<ObjectKey>,
    /// Its resource version, empty if its metadata couldn't be read.
    pub resource_version: ResourceVersion,
    /// What is wrong with it.
    pub error: String,
}

/// What to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// `None`: the newest state, asked of a quorum. `0`: whatever the server has at hand. Another: see
    /// `resource_version_match`.
    pub resource_version: Option<ResourceVersion>,
    /// How `resource_version` is meant; `None` leaves it to the server's rules.
    pub resource_version_match: Option<ResourceVersionMatch>,
    /// How many items a page has at most; `None` for all in one.
    pub limit: Option<u32>,
    /// Where to go on, from [`ListEnd::continue_token`].
    pub continue_token: Option<String>,
}

/// How the resource version of a list is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceVersionMatch {
    /// A state at least as new.
    NotOlderThan,
    /// The state at exactly this version.
    Exact,
}

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// Events after this version are sent; empty: synthetic events for what exists come first.
    pub resource_version: ResourceVersion,
    /// After how long the server ends the watch; sent in whole seconds.
    pub timeout: Duration,
    /// Whether the server may send bookmarks.
    pub allow_bookmarks: bool,
    /// Whether to start with an event for each object that exists, ended by an annotated bookmark: a streaming list.
    pub send_initial_events: bool,
}

#[cfg(test)]
fn _is_object_safe(_: &dyn ListerWatcher<()>) {}
