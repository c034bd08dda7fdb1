//! Functions with which the `WriteTracker` of informer-controller queries an informer about written
//! objects.

use informer_core::{ListWatchError, ObjectKey, ResourceVersion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::watch;

use crate::SharedIndexInformer;
use crate::informer::Visibility;

/// Returns which event the informer receives because of a write.
#[must_use]
pub fn visibility_of<K>(informer: &SharedIndexInformer<K>, written: &ObjectMeta) -> Visibility {
    informer.shared.visibility_of(written)
}

/// Returns a function that checks whether the store lacks the object.
pub fn absence_check<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectMeta,
) -> impl Fn() -> bool + Send + Sync + use<K> {
    informer.shared.absence_check(object)
}

/// Returns a receiver of the watermark (the resource version that the store has reached) of the
/// object's namespace, or of the whole store if namespaces are not watched separately.
#[must_use]
pub fn watermark_for<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectMeta,
) -> watch::Receiver<ResourceVersion> {
    informer.shared.watermark_for(object)
}

/// Reads the object from the server. The inner result is the object's metadata, or, if the object
/// does not exist, the resource version at which it was missing. `None` if the informer's source
/// cannot read single objects, or the namespace is not watched.
#[must_use]
pub fn read<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectKey,
) -> Option<impl Future<Output = Result<Result<ObjectMeta, ResourceVersion>, ListWatchError>> + Send + use<K>>
{
    informer.shared.read(object)
}
