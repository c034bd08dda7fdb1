//! Queries of informer-controller's `WriteTracker` about written objects.

use informer_core::{ListWatchError, ObjectKey, ResourceVersion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::watch;

use crate::SharedIndexInformer;
use crate::informer::Visibility;

/// Returns the events that the informer receives after a write.
#[must_use]
pub fn visibility_of<K>(informer: &SharedIndexInformer<K>, written: &ObjectMeta) -> Visibility {
    informer.shared.visibility_of(written)
}

/// Returns a function that returns whether the store lacks the object.
pub fn has_gone<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectMeta,
) -> impl Fn() -> bool + Send + Sync + use<K> {
    informer.shared.has_gone(object)
}

/// Returns the store's watermark for the object's namespace.
#[must_use]
pub fn watermark_for<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectMeta,
) -> watch::Receiver<ResourceVersion> {
    informer.shared.watermark_for(object)
}

/// Reads the object's metadata from the server, or the version of a state that lacks the object.
/// `None` if the informer's source cannot read single objects, or the namespace is not watched.
#[must_use]
pub fn read<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectKey,
) -> Option<impl Future<Output = Result<Result<ObjectMeta, ResourceVersion>, ListWatchError>> + Send + use<K>>
{
    informer.shared.read(object)
}
