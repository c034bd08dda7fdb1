//! [`Registry`]: the informers of a factory, one per type and scope.
//!
//! Entries are independent of each other, which is what a concurrent map is good for.

use std::any::{Any, TypeId};

use dashmap::DashMap;
use futures::future::BoxFuture;
use kube::Resource;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{CacheSync, InformerTask, SharedIndexInformer};

/// What tells informers apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct InformerKey {
    pub(super) object: TypeId,
    pub(super) namespace: Option<String>,
}

type Run = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// An informer of any type.
pub(super) struct Entry {
    informer: Box<dyn Any + Send + Sync>,
    /// The work, until it is started.
    task: Mutex<Option<Run>>,
    pub(super) cache: Box<dyn CacheSync>,
}

impl Entry {
    pub(super) fn new<K>(informer: SharedIndexInformer<K>, task: InformerTask<K>) -> Self
    where
        K: Resource + Send + Sync + 'static,
    {
        Self {
            cache: Box::new(informer.clone()),
            informer: Box::new(informer),
            task: Mutex::new(Some(Box::new(|shutdown| Box::pin(task.run(shutdown))))),
        }
    }

    pub(super) fn informer<K: 'static>(&self) -> Option<SharedIndexInformer<K>> {
        self.informer.downcast_ref().cloned()
    }

    /// Takes the work, if nobody has taken it yet.
    pub(super) fn take_task(&self) -> Option<Run> {
        self.task.lock().take()
    }

    pub(super) fn is_started(&self) -> bool {
        self.task.lock().is_none()
    }
}

pub(super) type Registry = DashMap<InformerKey, Entry>;
