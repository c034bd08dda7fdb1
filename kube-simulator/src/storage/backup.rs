//! [`Backup`]: a copy of all stored objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::object::Object;
use super::revision::Revision;
use super::table::Table;
use crate::kinds::ResourceKind;

/// All objects of a simulator at one moment, like an etcd snapshot but without history. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Backup {
    pub(crate) revision: u64,
    tables: Arc<Vec<TableCopy>>,
}

#[derive(Debug)]
struct TableCopy {
    /// The resource, with the API version of the stored objects.
    kind: ResourceKind,
    /// The objects by storage key: `namespace/name`, or the name of a cluster-scoped object.
    objects: BTreeMap<String, Arc<Object>>,
}

impl Backup {
    /// Copies the objects of all `tables`. The tables are locked during the copy, so that the
    /// backup contains exactly the writes up to its revision.
    pub(crate) fn of(tables: &[Arc<Table>], revision: &Revision) -> Self {
        let locked: Vec<_> = tables.iter().map(|table| (&table.kind, table.lock())).collect();
        let copies = locked
            .iter()
            .map(|(kind, state)| TableCopy { kind: (*kind).clone(), objects: state.objects.clone() });
        Self { revision: revision.current(), tables: Arc::new(copies.collect()) }
    }

    /// Replaces the objects of all `tables`, and sets `revision` to the result of `version`. The
    /// argument of `version` is the newest revision in the storage.
    pub(crate) fn restore(
        &self,
        tables: &[Arc<Table>],
        revision: &Revision,
        version: impl FnOnce(u64) -> u64,
    ) {
        // Locks all tables first: no request may see the new revision together with old objects.
        let locked: Vec<_> = tables.iter().map(|table| (table, table.lock_for_writing())).collect();
        let version = version(revision.stored());
        revision.reset(version);
        for (table, mut state) in locked {
            state.restore(self.objects_of(&table.kind), version);
            drop(state);
            table.notify();
        }
    }

    /// Returns the newest resource version when the backup was made.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.revision
    }

    /// Returns the copied objects of the resource `kind`, by storage key. Objects in another API
    /// version are converted to the version of `kind`.
    pub(crate) fn objects_of(&self, kind: &ResourceKind) -> BTreeMap<String, Arc<Object>> {
        let is_resource =
            |copy: &&TableCopy| copy.kind.group == kind.group && copy.kind.plural == kind.plural;
        let same_version =
            self.tables.iter().filter(is_resource).find(|copy| copy.kind.version == kind.version);
        // The table of a custom resource keeps the storage version with which it was created. The
        // definition can therefore have another storage version than the copy.
        match same_version.or_else(|| self.tables.iter().find(is_resource)) {
            None => BTreeMap::new(),
            Some(copy) if copy.kind == *kind => copy.objects.clone(),
            Some(copy) => copy.encode_as(kind),
        }
    }
}

impl TableCopy {
    fn encode_as(&self, kind: &ResourceKind) -> BTreeMap<String, Arc<Object>> {
        let encode = |(key, object): (&String, &Arc<Object>)| {
            (key.clone(), Object::encode(kind, key.clone(), object.decode(), object.resource_version))
        };
        self.objects.iter().map(encode).collect()
    }
}
