//! The common types of Kubernetes informers, and their in-memory event pipeline.
//!
//! An informer keeps a local copy of some Kubernetes objects and calls handlers for changes.
//! This crate contains the parts that need neither network nor store. The table lists them in the
//! order in which an event passes them:
//!
//! | part | what it does |
//! |---|---|
//! | [`ListerWatcher`] | lists and watches objects |
//! | [`OwnedObject`] | a newly decoded object with one owner |
//! | [`Cached`], [`ObjectKey`], [`ResourceVersion`] | the shared object, its key and its version |
//! | [`Encoded`] | the encoded form of a shared object, which needs less memory |
//! | [`DeltaFifo`] | queues changes per key; its consumer can take the whole backlog at once |
//! | [`EventBatch`], [`Event`], [`Deleted`] | the events of one transaction of the store |
//! | [`SharedProcessor`], [`EventHandler`], [`AsyncEventHandler`], [`EventStream`] | delivers events to each handler at its own pace |
//!
//! The reflector that fills the queue is in `informer-reflector`, and the store in
//! `informer-store`. Most users want `informer-factory`, which connects all parts.
//!
//! The pipeline also works for objects that are not Kubernetes objects: [`Cached::keyed`] wraps any
//! object and gives it any key. Without the default feature `kubernetes`, the crate does not depend
//! on k8s-openapi and kube; it then lacks [`ListerWatcher`] with its types, [`parse_selector`],
//! `ObjectKey::of`, `Cached::new`, `Cached::metadata` and `DecodeBytes::metadata`.

mod cached;
mod completion;
mod compression;
mod delta;
mod delta_fifo;
mod encoded;
mod error;
mod event;
mod handle;
mod handler;
mod key;
mod key_function;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod owned_object;
mod panics;
mod processor;
mod reflector_store;
mod resource_version;
mod sync;
#[expect(unsafe_code, reason = "a handle of one word makes lookups faster")]
mod thin_arc;
mod uid;
mod watermarks;

pub use cached::{AnyObject, Cached};
pub use completion::{Completion, NeverSynced};
pub use delta::{Deleted, Delta, Deltas};
pub use delta_fifo::{Batch, DeltaFifo, NamespaceFeed, Pending};
pub use encoded::{Codec, DecodeBytes, Encoded, Storage};
pub use error::KeyError;
pub use event::{Event, EventBatch};
pub use handler::{AsyncEventHandler, EventHandler, Filtered, Handlers};
pub use key::ObjectKey;
pub use key_function::{NotUnique, unique_value_as_key};
#[cfg(feature = "kubernetes")]
#[doc(hidden)]
pub use kubernetes::{AnySource, any_in_namespace};
#[cfg(feature = "kubernetes")]
pub use kubernetes::{
    Bookmark, ContinueTokens, InNamespace, ListEnd, ListOptions, ListPart, ListStream, ListWatchError,
    ListerWatcher, RejectedKind, RejectedObject, ResourceVersionMatch, SelectorError, WatchEvent,
    WatchOptions, WatchStream, parse_selector,
};
pub use owned_object::OwnedObject;
#[doc(hidden)]
pub use panics::panic_message;
pub use processor::{
    EventStream, HandlerOptions, HandlerRegistration, HandlerStats, PublishGuard, Resync, SharedProcessor,
};
pub use reflector_store::{KnownObjects, ReflectorStore, Replacement};
pub use resource_version::ResourceVersion;
pub use uid::Uid;
pub use watermarks::{FeedId, NamespaceProgress, Watermarks};
