//! The objects of the hammer test, and the [`InstanceCounter`] of live objects and handlers.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

/// The number of different values of [`Item::bucket`].
pub(crate) const BUCKETS: u8 = 8;

/// An object that is counted while it is in memory.
#[derive(Clone)]
pub(crate) struct Item {
    metadata: ObjectMeta,
    /// The value by which items are indexed and filtered.
    pub(crate) bucket: u8,
    _counted: Counted,
}

impl Item {
    pub(crate) fn new(namespace: &str, name: &str, bucket: u8, counter: &Arc<InstanceCounter>) -> Self {
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        Self { metadata, bucket, _counted: Counted::new(counter) }
    }
}

impl Resource for Item {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Item".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "hammer.test".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "items".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Counts the instances of a type.
#[derive(Default)]
pub(crate) struct InstanceCounter {
    alive: AtomicUsize,
    created: AtomicUsize,
    max_alive: AtomicUsize,
}

impl InstanceCounter {
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// Returns the number of created instances, including clones.
    pub(crate) fn created(&self) -> usize {
        self.created.load(Ordering::SeqCst)
    }

    /// Returns the largest number of simultaneous instances.
    pub(crate) fn max_alive(&self) -> usize {
        self.max_alive.load(Ordering::SeqCst)
    }
}

/// A field that counts the instances of the struct that contains it.
pub(crate) struct Counted(Arc<InstanceCounter>);

impl Counted {
    pub(crate) fn new(counter: &Arc<InstanceCounter>) -> Self {
        let alive = counter.alive.fetch_add(1, Ordering::SeqCst) + 1;
        counter.created.fetch_add(1, Ordering::SeqCst);
        counter.max_alive.fetch_max(alive, Ordering::SeqCst);
        Self(Arc::clone(counter))
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}
