//! [`InformerReport`]: the status of one of a factory's informers.

use std::any::TypeId;
use std::fmt;

use informer_core::{HandlerStats, ResourceVersion};
use informer_reflector::Health;

use crate::cache_sync::waiting_for;
use crate::{InformerState, SourceStatus};

/// The status of one of a factory's informers;
/// [`SharedInformerFactory::informers`](crate::SharedInformerFactory::informers) returns one for
/// each.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerReport {
    /// The resource and scope: `deployments.apps in namespace "shop"`.
    pub description: String,
    /// The name of the object type, for messages.
    pub object: &'static str,
    pub(super) object_id: TypeId,
    /// Whether the informer is idle, running or stopped.
    pub state: InformerState,
    /// Whether the initial list is in the store.
    pub has_synced: bool,
    /// The health of listing and watching.
    pub health: Health,
    /// The status of listing and watching, with the quarantined objects and the numbers of requests
    /// and events.
    pub status: SourceStatus,
    /// The number of objects in the store.
    pub objects: usize,
    /// The resource version that the store has reached.
    pub watermark: ResourceVersion,
    /// The number of objects with queued changes.
    pub queued: usize,
    /// The handlers and event streams, by name, with their statistics. Several can have the same
    /// name.
    pub handlers: Vec<(String, HandlerStats)>,
}

impl InformerReport {
    /// Returns whether the informer's objects have the type `K`.
    #[must_use]
    pub fn is_of<K: 'static>(&self) -> bool {
        self.object_id == TypeId::of::<K>()
    }
}

impl fmt::Display for InformerReport {
    /// Writes `pods (synced)`, or the reason why the informer is not synced, such as
    /// `pods (not started)`. After the start, the text also names separately watched namespaces
    /// that have not been listed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_synced {
            let but_for = self.status.unlisted().into_iter().map(|namespace| format!(", except {namespace}"));
            write!(f, "{} (synced{})", self.description, but_for.collect::<String>())
        } else {
            f.write_str(&waiting_for(&self.status, self.state))
        }
    }
}
