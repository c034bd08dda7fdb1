//! Items for code that `#[derive(Informer)]` and [`group!`](crate::group) generate, for
//! informer-controller and for informer-monitor. These items are not part of the public interface
//! and can change in any release.

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

/// Returns the name of the resource that the informer watches, such as `deployments.apps`.
///
/// Exception: if an informer was created by [`SharedIndexInformer::new_in_namespaces`] with an
/// empty list of namespaces, returns the name of the object type until a namespace is added.
#[must_use]
pub fn resource_of<K>(informer: &SharedIndexInformer<K>) -> &str {
    informer.shared.source.resource()
}
