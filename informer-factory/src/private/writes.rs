//! Functions with which the `WriteTracker` of informer-controller queries an informer about written
//! objects.

use informer_core::{ListWatchError, ObjectKey, ResourceVersion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::watch;

use crate::SharedIndexInformer;
use crate::informer::Visibility;

/// Returns which event, if any, the informer receives because of a write. `written` is the object's
/// metadata after the write, or before a deletion.
#[must_use]
pub fn visibility_of<K>(informer: &SharedIndexInformer<K>, written: &ObjectMeta) -> Visibility {
    informer.shared.visibility_of(written)
}

/// Returns a function that returns whether this object is missing from the informer's store. An
/// object with the same name and another UID counts as another object.
pub fn absence_check<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectMeta,
) -> impl Fn() -> bool + Send + Sync + use<K> {
    informer.shared.absence_check(object)
}

/// Returns a receiver of the watermark (the resource version that the store has reached) of the
/// object's namespace, or of the whole store if the informer has one watch for all its objects.
#[must_use]
pub fn watermark_for<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectMeta,
) -> watch::Receiver<ResourceVersion> {
    informer.shared.watermark_for(object)
}

/// Reads the metadata of an object from the server. The outer `Err` is a failed request. The inner
/// `Err` means that the object does not exist, and contains the resource version of the response.
/// Returns `None` if the informer's source cannot read single objects, or the object's namespace is
/// not watched.
#[must_use]
pub fn read<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectKey,
) -> Option<impl Future<Output = Result<Result<ObjectMeta, ResourceVersion>, ListWatchError>> + Send + use<K>>
{
    informer.shared.read(object)
}
