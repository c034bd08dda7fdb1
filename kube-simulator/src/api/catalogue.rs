//! [`Catalogue`]: the resources that the simulator serves, and the table with the stored objects of
//! each resource.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::autoscaling;
use crate::kinds::ResourceKind;
use crate::storage::{Object, Table};

/// A resource in one of its versions. The versions of a resource share their objects.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    /// The resource, with the version that this entry of the catalogue serves.
    pub(crate) kind: Arc<ResourceKind>,
    /// The storage that all API versions of the resource share. The stored objects have the API
    /// version of `table.kind`.
    pub(crate) table: Arc<Table>,
    /// Cancelled when this version is removed or replaced. The cancellation ends the watches.
    pub(crate) gone: CancellationToken,
}

impl Served {
    pub(crate) fn new(kind: ResourceKind, table: Arc<Table>, gone: CancellationToken) -> Self {
        Self { kind: Arc::new(kind), table, gone }
    }

    pub(crate) fn is_stored_version(&self) -> bool {
        self.kind.version == self.table.kind.version
    }

    /// Converts a stored object to the version that this entry serves.
    pub(crate) fn convert(&self, stored: Arc<Object>) -> Arc<Object> {
        if self.is_stored_version() {
            return stored;
        }
        let mut body = stored.decode();
        if autoscaling::is_converted(&self.kind) {
            autoscaling::to_v1(&mut body);
        }
        Object::encode(&self.kind, stored.key.clone(), body, stored.resource_version)
    }
}

/// The served resources, and the tables of all custom resources. A table remains until the
/// definition is deleted, even while no version is served.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// The served resources. The key is the URL path, such as `/apis/apps/v1/deployments`.
    served: DashMap<String, Arc<Served>>,
    /// The table of each custom resource that has a valid definition, and the spec with which the
    /// resource was last served. The key is the name of the definition.
    defined: DashMap<String, (Arc<Table>, Value)>,
    /// Locked while a thread adds or removes resources, or restores a backup. A thread that also
    /// locks tables must lock this first.
    pub(crate) serving: Mutex<()>,
}

impl Catalogue {
    /// Adds a resource unless its path is already served.
    pub(crate) fn add(&self, path: String, served: impl FnOnce() -> Served) {
        if let Entry::Vacant(vacant) = self.served.entry(path) {
            vacant.insert(Arc::new(served()));
        }
    }

    /// Adds a resource, or replaces the resource at its path and ends the watches of this path.
    pub(crate) fn replace(&self, served: Served) {
        if let Some(before) = self.served.insert(served.kind.collection_path(), Arc::new(served)) {
            before.gone.cancel();
        }
    }

    /// Stops serving the resource at a URL path, and ends the watches of this path.
    pub(crate) fn remove(&self, path: &str) {
        if let Some((_, served)) = self.served.remove(path) {
            served.gone.cancel();
        }
    }

    pub(crate) fn at(&self, path: &str) -> Option<Arc<Served>> {
        self.served.get(path).map(|served| served.clone())
    }

    /// Records the storage and the spec of the custom resource definition `name`. Returns whether a
    /// different spec was recorded before.
    pub(crate) fn define(&self, name: String, table: Arc<Table>, spec: &Value) -> bool {
        let before = self.defined.insert(name, (table, spec.clone()));
        before.is_some_and(|(_, before)| before != *spec)
    }

    pub(crate) fn undefine(&self, name: &str) {
        self.defined.remove(name);
    }

    pub(crate) fn defined(&self, name: &str) -> Option<Arc<Table>> {
        self.defined.get(name).map(|entry| Arc::clone(&entry.value().0))
    }

    pub(crate) fn of_type(&self, api_version: &str, kind: &str) -> Option<Arc<Served>> {
        let is_it = |served: &Served| served.kind.kind == kind && served.kind.api_version() == api_version;
        self.served.iter().find(|entry| is_it(entry.value())).map(|entry| entry.value().clone())
    }

    /// Returns all resources in all versions, in path order.
    pub(crate) fn all(&self) -> Vec<Arc<Served>> {
        let mut all: Vec<_> =
            self.served.iter().map(|entry| (entry.key().clone(), entry.value().clone())).collect();
        all.sort_by(|(left, _), (right, _)| left.cmp(right));
        all.into_iter().map(|(_, served)| served).collect()
    }

    /// Returns each served resource once, in one of its versions, in path order.
    pub(crate) fn resources(&self) -> Vec<Arc<Served>> {
        let mut resources: Vec<Arc<Served>> = Vec::new();
        for served in self.all() {
            if !resources.iter().any(|known| Arc::ptr_eq(&known.table, &served.table)) {
                resources.push(served);
            }
        }
        resources
    }

    /// Returns the tables of all resources, including custom resources without a served version. A
    /// caller that locks several tables must lock them in the returned order.
    pub(crate) fn tables(&self) -> Vec<Arc<Table>> {
        let served = self.resources().into_iter().map(|served| Arc::clone(&served.table));
        let mut tables: Vec<Arc<Table>> = served.collect();
        for entry in &self.defined {
            let (table, _) = entry.value();
            if !tables.iter().any(|known| Arc::ptr_eq(known, table)) {
                tables.push(Arc::clone(table));
            }
        }
        // The creation of an object reads the tables of namespaces and definitions while it has
        // locked another table. So these tables are last.
        tables.sort_by_cached_key(|table| {
            let kind = &table.kind;
            (kind.is_namespace() || kind.is_definition(), kind.collection_path())
        });
        tables
    }
}
