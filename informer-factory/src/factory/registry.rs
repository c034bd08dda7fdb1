//! [`Registry`]: the informers of a factory, one per resource, form and scope.
//!
//! Entries are independent of each other, which is what a concurrent map is good for.

use std::any::{Any, TypeId, type_name};
use std::time::Duration;

use dashmap::DashMap;
use futures::future::BoxFuture;
use informer_core::Completion;
use kube::Resource;
use kube::core::discovery::ApiResource;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::report::InformerReport;
use super::scope::Scope;
use crate::{CacheSync, InformerState, InformerTask, NamespaceError, SharedIndexInformer};

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
    informer: Box<dyn AnyInformer>,
    work: Mutex<Work>,
    /// The time since which the informer is unused.
    idle_since: Mutex<Option<Instant>>,
}

impl Entry {
    pub(super) fn new<K>(informer: SharedIndexInformer<K>, task: InformerTask<K>) -> Self
    where
        K: Resource + Send + Sync + 'static,
    {
        let run: Run = Box::new(|shutdown| Box::pin(task.run(shutdown)));
        Self {
            informer: Box::new(informer),
            work: Mutex::new(Work::Waiting(run)),
            idle_since: Mutex::new(None),
        }
    }

    /// Returns a handle to the informer, and marks it as used.
    pub(super) fn informer<K: 'static>(&self) -> Option<SharedIndexInformer<K>> {
        *self.idle_since.lock() = None;
        self.informer.as_any().downcast_ref().cloned()
    }

    pub(super) fn is<K: 'static>(&self, informer: &SharedIndexInformer<K>) -> bool {
        self.informer
            .as_any()
            .downcast_ref::<SharedIndexInformer<K>>()
            .is_some_and(|own| own.is_same(informer))
    }

    /// Another handle on the informer.
    pub(super) fn handle(&self) -> Box<dyn AnyInformer> {
        self.informer.handle()
    }

    pub(super) fn cache(&self) -> &dyn CacheSync {
        self.informer.as_ref()
    }

    pub(super) fn report(&self) -> InformerReport {
        let mut report = self.informer.report();
        if report.state == InformerState::Idle && self.is_started() {
            // Its task has not had its first turn yet.
            report.state = InformerState::Running;
        }
        report
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

/// The methods of an informer that do not depend on the object type.
pub(super) trait AnyInformer: CacheSync {
    fn as_any(&self) -> &dyn Any;
    fn is_in_use(&self) -> bool;
    fn state(&self) -> InformerState;
    fn report(&self) -> InformerReport;
    /// Another handle on it.
    fn handle(&self) -> Box<dyn AnyInformer>;
    fn namespaces(&self) -> Vec<String>;
    fn add_namespace(&self, name: &str) -> Result<Completion, NamespaceError>;
    fn remove_namespace(&self, name: &str) -> Result<Completion, NamespaceError>;
}

impl<K: Resource + Send + Sync + 'static> AnyInformer for SharedIndexInformer<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_in_use(&self) -> bool {
        SharedIndexInformer::is_in_use(self)
    }

    fn state(&self) -> InformerState {
        SharedIndexInformer::state(self)
    }

    fn report(&self) -> InformerReport {
        InformerReport {
            description: self.status().description().to_owned(),
            object: type_name::<K>(),
            object_id: TypeId::of::<K>(),
            state: self.state(),
            has_synced: self.has_synced(),
            health: self.health(),
            status: self.status().clone(),
        }
    }

    fn handle(&self) -> Box<dyn AnyInformer> {
        Box::new(self.clone())
    }

    fn namespaces(&self) -> Vec<String> {
        SharedIndexInformer::namespaces(self)
    }

    fn add_namespace(&self, name: &str) -> Result<Completion, NamespaceError> {
        SharedIndexInformer::add_namespace(self, name)
    }

    fn remove_namespace(&self, name: &str) -> Result<Completion, NamespaceError> {
        SharedIndexInformer::remove_namespace(self, name)
    }
}
