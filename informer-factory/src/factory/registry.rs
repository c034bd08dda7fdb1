//! [`Registry`]: the informers of a factory, one per resource, form and scope.
//!
//! Entries are independent of each other, which is what a concurrent map is good for.

use std::any::{TypeId, type_name};
use std::time::Duration;

use dashmap::DashMap;
use futures::future::BoxFuture;
use informer_core::AnyObject;
use kube::core::discovery::ApiResource;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::report::InformerReport;
use super::scope::Scope;
use crate::{CacheSync, InformerState, InformerTask, SharedIndexInformer};

/// The identity of an informer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct InformerKey {
    /// The form: a type of its own, dynamic objects, or metadata of either.
    pub(super) object: TypeId,
    /// Of which resource, where the type doesn't say.
    pub(super) resource: Option<ApiResource>,
    pub(super) scope: Scope,
}

type Run = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// The state of an informer's work.
enum Work {
    /// It has not been started.
    Waiting(Run),
    /// It was started; cancelling this token ends it.
    Started(CancellationToken),
    /// It will never be done.
    Dropped,
}

/// An informer of any type.
pub(super) struct Entry {
    informer: SharedIndexInformer<AnyObject>,
    object: &'static str,
    object_id: TypeId,
    work: Mutex<Work>,
    /// The time since which the informer is unused.
    idle_since: Mutex<Option<Instant>>,
}

impl Entry {
    pub(super) fn new<K: 'static>(informer: &SharedIndexInformer<K>, task: InformerTask) -> Self {
        Self::of(informer.cast(), task, type_name::<K>(), TypeId::of::<K>())
    }

    fn of(
        informer: SharedIndexInformer<AnyObject>,
        task: InformerTask,
        object: &'static str,
        object_id: TypeId,
    ) -> Self {
        let run: Run = Box::new(|shutdown| Box::pin(task.run(shutdown)));
        Self {
            informer,
            object,
            object_id,
            work: Mutex::new(Work::Waiting(run)),
            idle_since: Mutex::new(None),
        }
    }

    /// Returns a handle to the informer, and marks it as used.
    pub(super) fn informer(&self) -> SharedIndexInformer<AnyObject> {
        *self.idle_since.lock() = None;
        self.informer.clone()
    }

    pub(super) fn is(&self, informer: &SharedIndexInformer<AnyObject>) -> bool {
        self.informer.is_same(informer)
    }

    /// Another handle on the informer.
    pub(super) fn handle(&self) -> SharedIndexInformer<AnyObject> {
        self.informer.clone()
    }

    pub(super) fn cache(&self) -> &dyn CacheSync {
        &self.informer
    }

    pub(super) fn report(&self) -> InformerReport {
        let informer = &self.informer;
        let state = match informer.state() {
            // Its task has not had its first turn yet.
            InformerState::Idle if self.is_started() => InformerState::Running,
            state => state,
        };
        InformerReport {
            description: informer.status().description().to_owned(),
            object: self.object,
            object_id: self.object_id,
            state,
            has_synced: informer.has_synced(),
            health: informer.health(),
            status: informer.status().clone(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.informer.state(), InformerState::Stopped(_))
    }

    /// Returns the work until `shutdown`, if it has not been started.
    pub(super) fn start(&self, shutdown: &CancellationToken) -> Option<BoxFuture<'static, ()>> {
        let mut work = self.work.lock();
        if !matches!(*work, Work::Waiting(_)) {
            return None;
        }
        let token = shutdown.child_token();
        match std::mem::replace(&mut *work, Work::Started(token.clone())) {
            Work::Waiting(run) => Some(run(token)),
            Work::Started(_) | Work::Dropped => None,
        }
    }

    /// Ends the work, or sees to it that it never begins; what is returned is to be dropped with no
    /// lock held (I8).
    pub(super) fn stop(&self) -> impl Send + use<> {
        let mut work = self.work.lock();
        match std::mem::replace(&mut *work, Work::Dropped) {
            Work::Waiting(run) => Some(run),
            Work::Started(token) => {
                token.cancel();
                *work = Work::Started(token);
                None
            }
            Work::Dropped => None,
        }
    }

    pub(super) fn is_started(&self) -> bool {
        !matches!(*self.work.lock(), Work::Waiting(_))
    }

    /// Returns whether the informer has been unused for this time. Call it periodically, because it
    /// samples the use.
    pub(super) fn is_idle_for(&self, period: Duration) -> bool {
        let mut since = self.idle_since.lock();
        if self.informer.is_in_use() || !matches!(*self.work.lock(), Work::Started(_)) {
            *since = None;
            return false;
        }
        since.get_or_insert_with(Instant::now).elapsed() >= period
    }
}

pub(super) type Registry = DashMap<InformerKey, Entry>;
