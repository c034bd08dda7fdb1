//! [`Backup`]: a copy of all stored objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::object::Object;

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
    /// Returns the newest resource version when the backup was made.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.revision
    }
}
