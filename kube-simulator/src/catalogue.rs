//! What the simulator serves: each resource in each of its versions, by the path of its collection.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio_util::sync::CancellationToken;

use crate::resource::ResourceKind;
use crate::storage::Table;

/// A resource in one version. The versions of a resource share their objects.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    /// How clients of this version see the resource. The table has a description of its own: that of the version in
    /// which objects are stored.
    pub(crate) kind: Arc<ResourceKind>,
    pub(crate) table: Arc<Table>,
    /// Cancelled when the resource is not served any more; then its watches end.
    pub(crate) gone: CancellationToken,
}

impl Served {
    pub(crate) fn new(kind: ResourceKind, table: Arc<Table>, gone: CancellationToken) -> Self {
        Self { kind: Arc::new(kind), table, gone }
    }

    /// Returns whether objects are stored in this version, so that they can be sent as they are.
    pub(crate) fn is_stored_version(&self) -> bool {
        self.kind.version == self.table.kind.version
    }
}

/// All that is served. The entries are independent of one another.
#[derive(Debug, Default)]
pub(crate) struct Catalogue(DashMap<String, Arc<Served>>);

impl Catalogue {
    /// Serves a resource unless there is one at its path already.
    pub(crate) fn add(&self, path: String, served: impl FnOnce() -> Served) {
        if let Entry::Vacant(vacant) = self.0.entry(path) {
            vacant.insert(Arc::new(served()));
        }
    }

    /// Serves a resource in the place of what was at its path.
    pub(crate) fn put(&self, served: Served) {
        self.0.insert(served.kind.collection_path(), Arc::new(served));
    }

    /// Stops serving what is at a path, and ends its watches.
    pub(crate) fn remove(&self, path: &str) {
        if let Some((_, served)) = self.0.remove(path) {
            served.gone.cancel();
        }
    }

    pub(crate) fn at(&self, path: &str) -> Option<Arc<Served>> {
        self.0.get(path).map(|served| served.clone())
    }

    /// Finds a resource by what its objects say of themselves.
    pub(crate) fn of_type(&self, api_version: &str, kind: &str) -> Option<Arc<Served>> {
        let is_it = |served: &Served| served.kind.kind == kind && served.kind.api_version() == api_version;
        self.0.iter().find(|entry| is_it(entry.value())).map(|entry| entry.value().clone())
    }

    /// Returns everything, in the order of the paths.
    pub(crate) fn all(&self) -> Vec<Arc<Served>> {
        let mut all: Vec<_> =
            self.0.iter().map(|entry| (entry.key().clone(), entry.value().clone())).collect();
        all.sort_by(|(left, _), (right, _)| left.cmp(right));
        all.into_iter().map(|(_, served)| served).collect()
    }

    /// Returns each resource once, in one of its versions, in the order of the paths.
    pub(crate) fn resources(&self) -> Vec<Arc<Served>> {
        let mut resources: Vec<Arc<Served>> = Vec::new();
        for served in self.all() {
            if !resources.iter().any(|known| Arc::ptr_eq(&known.table, &served.table)) {
                resources.push(served);
            }
        }
        resources
    }
}
