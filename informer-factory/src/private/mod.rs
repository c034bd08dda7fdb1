//! Items for code that `#[derive(Informer)]` generates, for informer-controller and for
//! informer-monitor. These items are not part of the public interface and can change in any release.

mod at;
mod derived;
pub mod writes;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
pub use kube::Resource;

use crate::SharedIndexInformer;
pub use crate::informer::Visibility;
pub use at::{AsSingleValue, HoldsEntries, IndexValues, NeverFails, Returned, ValueAt, call};
pub use derived::{Derived, index, new_informer, new_informer_from, shared_informer};

/// Returns the resource of the informer's objects without its scope, such as `deployments.apps`. An
/// informer that was created without namespaces can return the name of the object type until its
/// first namespace is added.
#[must_use]
pub fn resource_of<K>(informer: &SharedIndexInformer<K>) -> &str {
    informer.shared.resource()
}
