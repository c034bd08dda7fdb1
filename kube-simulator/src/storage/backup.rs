//! [`Backup`]: a copy of all stored objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::object::Object;
use super::revision::Revision;
use super::table::Table;

/// All objects of a simulator at one moment, without history, like an etcd snapshot. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Backup {
    /// The newest resource version when the backup was made.
    pub(crate) revision: u64,
    /// The objects by collection path, then by storage key.
    pub(crate) tables: Arc<BTreeMap<String, BTreeMap<String, Arc<Object>>>>,
}

impl Backup {
    /// Copies the objects of these tables. During the copy, all tables are locked, so that the
    /// backup contains exactly the writes up to its revision.
    pub(crate) fn of(tables: &[Arc<Table>], revision: &Revision) -> Self {
        let locked: Vec<_> =
            tables.iter().map(|table| (table.kind.collection_path(), table.lock())).collect();
        let copies = locked.iter().map(|(path, state)| (path.clone(), state.objects.clone()));
        Self { revision: revision.current(), tables: Arc::new(copies.collect()) }
    }

    /// Returns the newest resource version when the backup was made.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.revision
    }
}
