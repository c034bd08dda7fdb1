//! Key functions, which return the keys to reconcile for a changed object.
//!
//! controller-runtime: `pkg/handler`.

use std::borrow::Borrow;
use std::hash::Hash;

use informer_core::{Cached, ObjectKey};
use informer_store::{Index, IndexValue};
use kube::Resource;

use informer_factory::InformerScope;

/// Returns the object's own key, for
/// [`ControllerRunner::watches`](crate::ControllerRunner::watches).
#[allow(clippy::unnecessary_wraps, reason = "`watches` takes functions that return any number of keys")]
#[must_use]
#[doc(alias = "EnqueueRequestForObject")]
pub fn own_key<K>(object: &Cached<K>) -> Option<ObjectKey> {
    Some(object.key().clone())
}

/// Returns the key of the object of type `O` that controls this object, for
/// [`ControllerRunner::watches`](crate::ControllerRunner::watches): for example,
/// `controller_key::<ReplicaSet, Pod>`.
///
/// The controller is the owner reference with `controller: true`. Returns `None` if that reference
/// does not have the kind and the group of `O`; the API version is ignored. A namespaced owner is
/// in the namespace of the object.
#[must_use]
#[doc(alias = "EnqueueRequestForOwner")]
#[doc(alias = "GetControllerOf")]
pub fn controller_key<O, K>(object: &Cached<K>) -> Option<ObjectKey>
where
    O: Resource<DynamicType = (), Scope: InformerScope>,
    K: Resource + 'static,
{
    let metadata = object.metadata();
    let owners = metadata.owner_references.as_ref()?;
    let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let is_of_kind = owner.kind == O::kind(&()) && group == O::group(&());
    is_of_kind.then(|| ObjectKey::new(O::Scope::namespace(object.namespace()), &owner.name))
}

/// Returns a function for [`ControllerRunner::watches`](crate::ControllerRunner::watches). For a
/// changed object, that function calls `values`, and returns the keys of all objects that have one
/// of these values in `index`.
///
/// For example, a change of a Secret queues the Pods that use it, if pods are indexed by their
/// secrets.
pub fn keys_in_index<K, R, V, Q, I>(
    index: &Index<R, V>,
    values: impl Fn(&Cached<K>) -> I + Send + Sync + 'static,
) -> impl Fn(&Cached<K>) -> Vec<ObjectKey> + Send + Sync + 'static
where
    K: 'static,
    R: Send + Sync + 'static,
    V: IndexValue + Borrow<Q>,
    Q: Hash + Eq,
    I: IntoIterator<Item = Q>,
{
    let index = index.clone();
    move |object| values(object).into_iter().flat_map(|value| index.keys(&value)).collect()
}
