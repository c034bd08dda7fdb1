//! Functions with which the `WriteTracker` of informer-controller queries an informer about written
//! objects.

use informer_core::{ListWatchError, ObjectKey, ResourceVersion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::watch;

use crate::SharedIndexInformer;
use crate::informer::Visibility;

/// Predicts which event the informer receives because of a write. `written` is the object's
/// metadata after the write or, for a deletion, before it.
///
/// The prediction compares `written` with the informer's namespaces and selectors, and looks up the
/// object in the store.
#[must_use]
pub fn visibility_of<K>(informer: &SharedIndexInformer<K>, written: &ObjectMeta) -> Visibility {
    informer.shared.visibility_of(written)
}

/// Returns a function that checks, at each call, whether the informer's store lacks `object`.
/// - If the store has an object with the same name but another UID, `object` counts as missing.
/// - If `object` has no UID, only name and namespace are compared.
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

/// Requests the current metadata of one object from the server.
///
/// - `None`: the informer's source cannot read single objects, or the informer does not watch the
///   object's namespace.
/// - `Ok(Ok(metadata))`: the object exists.
/// - `Ok(Err(version))`: the object does not exist. `version` is the resource version of the
///   server's response.
/// - `Err(error)`: the request failed, or `object` has no namespace and several namespaces have an
///   object with its name.
#[must_use]
pub fn read<K>(
    informer: &SharedIndexInformer<K>,
    object: &ObjectKey,
) -> Option<impl Future<Output = Result<Result<ObjectMeta, ResourceVersion>, ListWatchError>> + Send + use<K>>
{
    informer.shared.read(object)
}
