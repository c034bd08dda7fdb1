//! The objects of the hammer test, and the [`Census`] that counts live instances.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

/// The number of buckets of objects.
pub(crate) const BUCKETS: u8 = 8;

/// An object that its census counts while it is in memory.
#[derive(Clone)]
pub(crate) struct Item {
    metadata: ObjectMeta,
    /// The value by which items are indexed and filtered.
    pub(crate) bucket: u8,
    _life: Life,
}

impl Item {
    pub(crate) fn new(namespace: &str, name: &str, bucket: u8, census: &Arc<Census>) -> Self {
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        Self { metadata, bucket, _life: Life::new(census) }
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

/// Counts live instances.
#[derive(Default)]
pub(crate) struct Census {
    alive: AtomicUsize,
    born: AtomicUsize,
    most: AtomicUsize,
}

impl Census {
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// Returns how many instances were created, including clones.
    pub(crate) fn born(&self) -> usize {
        self.born.load(Ordering::SeqCst)
    }

    /// Returns the largest number of simultaneous instances.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// A token that its census counts.
pub(crate) struct Life(Arc<Census>);

impl Life {
    pub(crate) fn new(census: &Arc<Census>) -> Self {
        let alive = census.alive.fetch_add(1, Ordering::SeqCst) + 1;
        census.born.fetch_add(1, Ordering::SeqCst);
        census.most.fetch_max(alive, Ordering::SeqCst);
        Self(Arc::clone(census))
    }
}

impl Clone for Life {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}
