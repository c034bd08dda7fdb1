//! Items for code that `#[derive(Informer)]` generates and for informer-controller. These items are
//! not part of the public interface and can change in any release.

mod at;
mod derived;
pub mod writes;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
pub use kube::Resource;

pub use crate::informer::Visibility;
pub use at::{AsSingleValue, HoldsEntries, IndexValues, NeverFails, Returned, ValueAt, call};
pub use derived::{Derived, index, new_informer, new_informer_from, shared_informer};
