//! [`InformerReport`]: the status of one of a factory's informers.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use informer_core::{HandlerStats, ResourceVersion};
use informer_reflector::Health;

use crate::SharedIndexInformer;
use crate::cache_sync::waiting_for;
use crate::status::{BatchCounts, InformerState, SourceStatus, StopCause};

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
    /// The number of informers that the process had created before this one.
    pub(super) number: u64,
    /// Whether the informer is idle, running or stopped.
    pub state: InformerState,
    /// Whether the initial list is in the store.
    pub has_synced: bool,
    /// The health of listing and watching.
    pub health: Health,
    /// The status of listing and watching, with the numbers of requests and events, and the
    /// [quarantined](SourceStatus::quarantined) objects.
    pub status: SourceStatus,
    /// The health of each namespace whose first list is not in the store; empty if the informer has
    /// one watch. `status` can have changed since.
    pub(super) unlisted: Vec<String>,
    /// The number of objects in the store.
    pub objects: usize,
    /// The number of bytes of the stored objects, if they are stored
    /// [encoded](informer_core::Storage::Encoded); `None` if no encoded object has been stored. The
    /// compression dictionaries, which similar objects share, are not included.
    pub encoded_bytes: Option<usize>,
    /// The resource version that the store has reached. If each namespace has its own watch, this
    /// is the lowest version of all namespaces.
    pub watermark: ResourceVersion,
    /// The time since [`watermark`](Self#structfield.watermark) was last set; `None` if it was
    /// never set.
    /// - If the informer has one watch, and the server's lists have resource versions, each list,
    ///   event and bookmark sets the watermark, even to the same version.
    /// - If each namespace has its own watch, the watermark is set only when the lowest version of
    ///   all namespaces changes.
    pub watermark_age: Option<Duration>,
    /// The number of objects with queued changes or resyncs. The store does not have these changes
    /// yet.
    pub queued: usize,
    /// The numbers of processed batches and of their changed or resynced objects.
    pub batches: BatchCounts,
    /// The names and statistics of the handlers and event streams. Several handlers or streams can
    /// have the same name.
    pub handlers: Vec<(String, HandlerStats)>,
    /// The statistics of removed handlers and event streams, as sums by name. `pending` is zero.
    ///
    /// A name without registered handlers or streams has no entry. For example, if one of two
    /// handlers named `audit` is removed, this map has its statistics. When the second handler is
    /// removed, too, the entry `audit` is removed.
    pub removed_handlers: BTreeMap<String, HandlerStats>,
}

impl InformerReport {
    /// Returns whether the informer's objects have the type `K`.
    #[must_use]
    pub fn is_of<K: 'static>(&self) -> bool {
        self.object_id == TypeId::of::<K>()
    }

    /// Returns whether this is the status of `informer`.
    #[doc(hidden)]
    #[must_use]
    pub fn is_for<K>(&self, informer: &SharedIndexInformer<K>) -> bool {
        self.number == informer.shared.number
    }

    /// Returns the reason why the informer or one of its namespaces is not synced or not live, such
    /// as `not started` or `backing off for 3.2s: …`; `None` if there is no such reason.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let reason = match self.state {
            InformerState::Idle => "not started",
            InformerState::Stopped(StopCause::Shutdown) => "stopped on request",
            InformerState::Stopped(StopCause::Dropped) => "stopped, because its task was dropped",
            InformerState::Stopped(StopCause::Panicked) => "stopped, because its task panicked",
            InformerState::Running => return self.problem_of_running(),
        };
        Some(reason.to_owned())
    }

    fn problem_of_running(&self) -> Option<String> {
        if !self.unlisted.is_empty() {
            return Some(self.unlisted.join(", "));
        }
        match (self.has_synced, self.health.is_live()) {
            (true, true) => None,
            (false, true) => Some("the initial list is being processed".to_owned()),
            (_, false) => Some(self.health.to_string()),
        }
    }
}

impl fmt::Display for InformerReport {
    /// Writes `pods (synced)`, or why the informer is not synced, such as `pods (not started)`. If
    /// each namespace has its own watch, a started informer's text names the unlisted namespaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_synced {
            let but_for = self.unlisted.iter().map(|namespace| format!(", except {namespace}"));
            write!(f, "{} (synced{})", self.description, but_for.collect::<String>())
        } else {
            f.write_str(&waiting_for(&self.status, self.state))
        }
    }
}
