//! Feeds informer events to programs that use kube-runtime, so that they can migrate to informers
//! step by step. Requires the Cargo feature `kube-runtime`.
//!
//! - [`watcher_events`] returns a stream like that of `kube_runtime::watcher`. kube-runtime's
//!   `reflector` and `WatchStreamExt` accept both streams, and turn them into the input of
//!   `Controller::for_stream`.
//! - [`StoreReader`] reads an informer's store with the methods of
//!   `kube_runtime::reflector::Store`, without a copy of the store.
//! - [`object_ref`] converts an object's key to the reference that `Controller::reconcile_on`
//!   takes, so that an event of one kind can trigger the reconciliation of another kind.
//!
//! ```no_run
//! use std::sync::Arc;
//! use futures::StreamExt;
//! use informer_factory::SharedInformerFactory;
//! use informer_factory::kube_runtime::watcher_events;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_runtime::controller::Action;
//! use kube_runtime::{Controller, WatchStreamExt, reflector};
//!
//! # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = SharedInformerFactory::new(client);
//! let config_maps = factory.core().v1().config_maps();
//! factory.start();
//!
//! // `watcher_events(&config_maps)` replaces `watcher(api, config)`.
//! let (reader, writer) = reflector::store();
//! let objects = watcher_events(&config_maps).reflect(writer).touched_objects();
//! let reconcile = async |config_map: Arc<ConfigMap>, _: Arc<()>| {
//!     println!("{:?}", config_map.metadata.name);
//!     Ok::<_, std::convert::Infallible>(Action::await_change())
//! };
//! Controller::for_stream(objects, reader)
//!     .run(reconcile, |_, error, _| match *error {}, Arc::new(()))
//!     .for_each(async |_| {})
//!     .await;
//! # Ok(())
//! # }
//! ```
//!
//! kube-runtime's `Controller` has its own store of the objects that it reconciles. So these objects
//! are in memory twice: in that store and in the informer. Objects of kinds that the controller only
//! owns or watches are in memory once.

mod reader;
mod watcher;

use informer_core::ObjectKey;
use kube::Resource;

use ::kube_runtime::reflector::ObjectRef;

pub use reader::StoreReader;
pub use watcher::{WatcherEvents, watcher_events};

/// Converts an object's key to kube-runtime's [`ObjectRef`].
///
/// ```
/// use informer_factory::ObjectKey;
/// use informer_factory::kube_runtime::object_ref;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let web = object_ref::<Pod>(&ObjectKey::namespaced("shop", "web"));
/// assert_eq!(web.namespace.as_deref(), Some("shop"));
/// ```
#[must_use]
pub fn object_ref<K: Resource<DynamicType = ()>>(key: &ObjectKey) -> ObjectRef<K> {
    let named = ObjectRef::new(key.name());
    match key.namespace() {
        Some(namespace) => named.within(namespace),
        None => named,
    }
}
