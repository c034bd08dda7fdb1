//! [`Backup`]: all that is stored, put aside.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::Object;

/// All objects of a simulator at one moment, as a backup of etcd holds them: without their history. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Backup {
    /// The resource version of that moment.
    pub(crate) revision: u64,
    /// The objects by collection path, then by storage key.
    pub(crate) tables: Arc<BTreeMap<String, BTreeMap<String, Arc<Object>>>>,
}

impl Backup {
    /// Returns the resource version of the moment at which it was made.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.revision
    }
}
