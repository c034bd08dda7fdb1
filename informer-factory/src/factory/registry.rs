//! [`Registry`]: the informers of a factory, one per resource, object type and scope.
//!
//! The registry is a concurrent map: its entries are independent of each other, so they need no
//! common lock.

use std::any::{TypeId, type_name};
use std::time::Duration;

use dashmap::DashMap;
use informer_core::AnyObject;
use kube::core::discovery::ApiResource;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::report::InformerReport;
use super::scope::Scope;
use crate::status::InformerState;
use crate::{CacheSync, InformerTask, SharedIndexInformer};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct InformerKey {
    pub(super) object: TypeId,
    /// The resource, for object types that do not determine it, such as `DynamicObject`.
    pub(super) resource: Option<ApiResource>,
    pub(super) scope: Scope,
}

pub(super) struct Entry {
    informer: SharedIndexInformer<AnyObject>,
    object: &'static str,
    object_id: TypeId,
    /// The informer's task, until it is started or dropped.
    task: Mutex<Option<InformerTask>>,
    /// The informer's task ends when this token is cancelled.
    shutdown: CancellationToken,
    /// The time at which the informer was first found unused; `None` while it is in use.
    idle_since: Mutex<Option<Instant>>,
}

impl Entry {
    pub(super) fn new<K: 'static>(
        informer: &SharedIndexInformer<K>,
        task: InformerTask,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            informer: informer.cast(),
            object: type_name::<K>(),
            object_id: TypeId::of::<K>(),
            task: Mutex::new(Some(task)),
            shutdown,
            idle_since: Mutex::new(None),
        }
    }

    /// Returns a handle to the informer, and marks the informer as in use. The factory calls this
    /// method when the program requests the informer.
    pub(super) fn requested_informer(&self) -> SharedIndexInformer<AnyObject> {
        *self.idle_since.lock() = None;
        self.informer.clone()
    }

    pub(super) fn is_for(&self, informer: &SharedIndexInformer<AnyObject>) -> bool {
        self.informer.shared.number == informer.shared.number
    }

    /// Returns a handle to the informer, and does not mark the informer as in use. The factory
    /// calls this method for its own work.
    pub(super) fn handle(&self) -> SharedIndexInformer<AnyObject> {
        self.informer.clone()
    }

    pub(super) fn cache(&self) -> &dyn CacheSync {
        &self.informer
    }

    pub(super) fn description(&self) -> &str {
        self.informer.status().description()
    }

    pub(super) fn is_of<K: 'static>(&self) -> bool {
        self.object_id == TypeId::of::<K>()
    }

    /// Returns a function that creates the status of the informer. Call it while no lock is held:
    /// it can drop objects (I8 in ARCHITECTURE.md).
    pub(super) fn reporter(&self) -> impl FnOnce() -> InformerReport + use<> {
        let (informer, is_started) = (self.handle(), self.is_started());
        let (object, object_id) = (self.object, self.object_id);
        move || {
            let store = informer.indexer().snapshot();
            let (handlers, removed_handlers) = informer.shared.processor.handlers_and_removed();
            let state = match informer.state() {
                // The task was taken from the entry, and was neither polled nor dropped yet.
                InformerState::Idle if is_started => InformerState::Running,
                state => state,
            };
            InformerReport {
                description: informer.status().description().to_owned(),
                object,
                object_id,
                number: informer.shared.number,
                state,
                has_synced: informer.has_synced(),
                health: informer.health(),
                status: informer.status().clone(),
                unlisted: informer.status().unlisted(),
                objects: store.len(),
                encoded_bytes: store.encoded_bytes(),
                watermark: store.watermark().clone(),
                watermark_age: informer.shared.progress.watermark_age(),
                queued: informer.queued(),
                batches: informer.shared.progress.batches(),
                handlers,
                removed_handlers,
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.informer.state(), InformerState::Stopped(_))
    }

    /// Marks the task as started, and returns its future, which ends at the factory's shutdown or
    /// after [`stop`](Self::stop). Returns `None` if the task was started or dropped before.
    pub(super) fn start(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let task = self.task.lock().take()?;
        Some(task.run(self.shutdown.clone()))
    }

    /// Cancels the informer's task, or prevents its start. Drop the result while no lock is held:
    /// it can contain a task with handlers.
    pub(super) fn stop(&self) -> Option<InformerTask> {
        // I8: the task can own handlers, so it is not dropped here: the caller can hold a lock.
        let unstarted = self.task.lock().take();
        self.shutdown.cancel();
        unstarted
    }

    pub(super) fn is_started(&self) -> bool {
        self.task.lock().is_none()
    }

    /// Records whether the informer is in [use](SharedIndexInformer::is_in_use) now. Returns
    /// whether it runs and has been unused for at least `period`.
    pub(super) fn observe_idleness(&self, period: Duration) -> bool {
        let mut since = self.idle_since.lock();
        if self.informer.is_in_use() || !self.is_started() || self.has_ended() {
            *since = None;
            return false;
        }
        since.get_or_insert_with(Instant::now).elapsed() >= period
    }
}

pub(super) type Registry = DashMap<InformerKey, Entry>;
