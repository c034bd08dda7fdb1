//! [`Lister`]: reads a store by namespace, name and label selector.
//!
//! client-go: tools/cache/listers.go and the generated listers of client-go/listers. Unlike in
//! client-go, a missing object is `None` and not an error, and a label index makes selection by
//! labels faster.

use std::collections::BTreeMap;
use std::fmt;

use informer_core::{AnyObject, Cached, ObjectKey};
use kube_core::{Expression, Resource, Selector, SelectorExt};

use crate::Indexer;
use crate::label_index::LabelCandidates;
use crate::objects::Objects;
use crate::shared::State;

/// Lists and gets Kubernetes objects of a store, by namespace, name and label selector.
///
/// ```
/// use informer_store::{Lister, parse_selector, store};
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_core::{Expression, Selector};
///
/// let (_writer, pods) = store::<Pod>();
/// let pods = Lister::new(pods);
/// let frontends = Selector::from(Expression::Equal("tier".into(), "frontend".into()));
/// for pod in pods.namespace("shop").list(&frontends) {
///     println!("{}", pod.key());
/// }
/// let stable = pods.list(&parse_selector("tier=frontend,!canary")?);
/// # Ok::<(), informer_store::SelectorError>(())
/// ```
///
/// Without a label index ([`Indexer::add_label_index`]), the lister compares a selector that is not
/// empty with the labels of every object of the store, or of the namespace. All objects of a result
/// come from one state of the store.
#[doc(alias = "GenericLister")]
pub struct Lister<K> {
    indexer: Indexer<K>,
}

impl<K: Resource + 'static> Lister<K> {
    /// Returns a lister for the objects of a store.
    #[must_use]
    pub fn new(indexer: Indexer<K>) -> Self {
        Self { indexer }
    }

    /// Returns the objects whose labels match the selector, in no particular order. An empty
    /// selector matches all objects.
    #[must_use]
    #[doc(alias = "ListAll")]
    pub fn list(&self, selector: &Selector) -> Vec<Cached<K>> {
        select(&self.indexer, None, selector)
    }

    /// Returns the cluster-scoped object with this name, if the store has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cached<K>> {
        self.indexer.get_by_key(name).filter(|object| object.namespace().is_none())
    }

    /// Returns a lister for one namespace. If `namespace` is empty, the lister lists all objects.
    #[must_use]
    pub fn namespace<'a>(&'a self, namespace: &'a str) -> NamespaceLister<'a, K> {
        NamespaceLister { indexer: &self.indexer, namespace }
    }
}

/// Lists and gets the objects of one namespace. [`Lister::namespace`] creates it.
#[doc(alias = "GenericNamespaceLister")]
pub struct NamespaceLister<'a, K> {
    indexer: &'a Indexer<K>,
    namespace: &'a str,
}

impl<K: Resource + 'static> NamespaceLister<'_, K> {
    /// Returns the objects of the namespace whose labels match the selector, in no particular
    /// order.
    #[must_use]
    #[doc(alias = "ListAllByNamespace")]
    pub fn list(&self, selector: &Selector) -> Vec<Cached<K>> {
        let namespace = Some(self.namespace).filter(|namespace| !namespace.is_empty());
        select(self.indexer, namespace, selector)
    }

    /// Returns the object with this name in the namespace. If the namespace is an empty string,
    /// returns the cluster-scoped object with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cached<K>> {
        self.indexer.get(&ObjectKey::new(Some(self.namespace), name))
    }
}

fn select<K: Resource + 'static>(
    indexer: &Indexer<K>,
    namespace: Option<&str>,
    selector: &Selector,
) -> Vec<Cached<K>> {
    let selected = select_any(indexer.cast_ref(), namespace, selector, matches::<K>);
    selected.into_iter().map(Cached::cast).collect()
}

fn matches<K: Resource + 'static>(object: &Cached<AnyObject>, requirements: &[Expression]) -> bool {
    if requirements.is_empty() {
        return true;
    }
    let (metadata, no_labels) = (object.cast_ref::<K>().metadata(), BTreeMap::new());
    let labels = metadata.labels.as_ref().unwrap_or(&no_labels);
    requirements.iter().all(|requirement| requirement.matches(labels))
}

fn select_any(
    indexer: &Indexer<AnyObject>,
    namespace: Option<&str>,
    selector: &Selector,
    matches: fn(&Cached<AnyObject>, &[Expression]) -> bool,
) -> Vec<Cached<AnyObject>> {
    let snapshot = indexer.snapshot();
    let scope = |state: &State| match namespace {
        Some(namespace) => state.in_namespace(namespace),
        None => Objects::all(state),
    };
    if selector.selects_all() {
        return scope(&snapshot.state).to_vec();
    }
    let requirements = selector.clone().into_iter().collect();
    // The snapshot is dropped before labels are compared, because while it exists, the writer must
    // copy the parts that it changes.
    match LabelCandidates::look_up(&snapshot.state, namespace, requirements) {
        Ok(candidates) => {
            drop(snapshot);
            candidates.objects(matches)
        }
        Err(requirements) => {
            let objects = scope(&snapshot.state);
            drop(snapshot);
            objects.stored().filter(|object| matches(object, &requirements)).cloned().collect()
        }
    }
}

impl<K: 'static> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { indexer: self.indexer.clone() }
    }
}

impl<K: 'static> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("indexer", &self.indexer).finish()
    }
}

impl<K> fmt::Debug for NamespaceLister<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceLister").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
