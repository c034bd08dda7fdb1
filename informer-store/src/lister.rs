//! [`Lister`]: a store seen as Kubernetes sees it, by namespace, name and label selector.
//!
//! client-go: `GenericLister` and the generated listers of client-go/listers.

use std::collections::BTreeMap;
use std::fmt;

use informer_core::{Cached, ObjectKey};
use kube_core::{Resource, Selector, SelectorExt};

use crate::Indexer;
use crate::objects::Objects;

/// Lists and gets Kubernetes objects from a store.
///
/// ```
/// use informer_store::{Lister, store};
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_core::{Expression, Selector};
///
/// let (_writer, pods) = store::<Pod>();
/// let pods = Lister::new(pods);
/// let frontends = Selector::from(Expression::Equal("tier".into(), "frontend".into()));
/// for pod in pods.namespace("shop").list(&frontends) {
///     println!("{}", pod.key());
/// }
/// ```
#[doc(alias = "GenericLister")]
pub struct Lister<K> {
    indexer: Indexer<K>,
}

impl<K: Resource> Lister<K> {
    /// Returns a lister for a store.
    #[must_use]
    pub fn new(indexer: Indexer<K>) -> Self {
        Self { indexer }
    }

    /// Returns the objects whose labels match.
    #[must_use]
    #[doc(alias = "ListAll")]
    pub fn list(&self, selector: &Selector) -> Vec<Cached<K>> {
        matching(&self.indexer.list(), selector)
    }

    /// Returns the cluster-scoped object of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cached<K>> {
        self.indexer.get_by_key(name)
    }

    /// Returns a lister for one namespace.
    #[must_use]
    pub fn namespace<'a>(&'a self, namespace: &'a str) -> NamespaceLister<'a, K> {
        NamespaceLister { indexer: &self.indexer, namespace }
    }
}

/// Lists and gets the objects of one namespace.
pub struct NamespaceLister<'a, K> {
    indexer: &'a Indexer<K>,
    namespace: &'a str,
}

impl<K: Resource> NamespaceLister<'_, K> {
    /// Returns the objects of the namespace whose labels match.
    #[must_use]
    #[doc(alias = "ListAllByNamespace")]
    pub fn list(&self, selector: &Selector) -> Vec<Cached<K>> {
        matching(&self.indexer.in_namespace(self.namespace), selector)
    }

    /// Returns the object of this name in the namespace.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cached<K>> {
        self.indexer.get(&ObjectKey::namespaced(self.namespace, name))
    }
}

fn matching<K: Resource>(objects: &Objects<K>, selector: &Selector) -> Vec<Cached<K>> {
    if selector.selects_all() {
        return objects.to_vec();
    }
    let no_labels = BTreeMap::new();
    let matches = |object: &&Cached<K>| selector.matches(object.meta().labels.as_ref().unwrap_or(&no_labels));
    objects.iter().filter(matches).cloned().collect()
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { indexer: self.indexer.clone() }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("indexer", &self.indexer).finish()
    }
}

impl<K> fmt::Debug for NamespaceLister<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceLister").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
