//! [`ReconcileRequest`] and [`Reconciled`]: the argument and the result of a reconcile function.

use std::time::Duration;

use informer_core::ObjectKey;

use super::readiness::NamespaceView;
use crate::KeyWrites;

/// The argument of a reconcile function: the key to reconcile, the number of its failures, and a
/// handle for its writes.
#[derive(Debug)]
#[doc(alias = "Request")]
pub struct ReconcileRequest<T = ObjectKey> {
    pub(super) key: T,
    pub(super) failures: u32,
    pub(super) writes: KeyWrites<T>,
    pub(super) view: NamespaceView,
}

impl<T> ReconcileRequest<T> {
    /// Returns the key to reconcile.
    #[must_use]
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Returns how many reconcile calls of the key have failed since the last success, or since the
    /// key was last dropped without a call; 0 if the queue's rate limiter does not count failures
    /// per key.
    #[must_use]
    #[doc(alias = "NumRequeues")]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns `true` unless the key's namespace was
    /// [removed](informer_factory::SharedIndexInformer::remove_namespace) from one of the
    /// controller's caches. A removal does not count if the namespace was added again before this
    /// reconcile call began.
    ///
    /// If the result is `false`, an object that a cache lacks possibly still exists on the server,
    /// because all objects of a removed namespace leave the cache. So call this method before a
    /// cleanup. Call it after each lookup without a result, because a namespace can be removed at
    /// any time.
    ///
    /// ```no_run
    /// # use informer_controller::{ReconcileRequest, Reconciled};
    /// # use informer_factory::SharedIndexInformer;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn clean_up(_: &ReconcileRequest) {}
    /// # async fn reconcile(request: ReconcileRequest, maps: SharedIndexInformer<ConfigMap>) -> Reconciled {
    /// if maps.get(request.key()).is_none() && request.is_namespace_watched() {
    ///     clean_up(&request).await; // The object has been deleted.
    /// }
    /// # Reconciled::Done
    /// # }
    /// ```
    #[must_use]
    pub fn is_namespace_watched(&self) -> bool {
        self.view.is_namespace_watched()
    }

    /// Returns a handle that records writes for the key. The key is reconciled again only after the
    /// caches have the recorded writes, or the deadline of the writes is over.
    ///
    /// ```no_run
    /// # use informer_controller::{ReconcileRequest, Reconciled};
    /// # use informer_factory::SharedIndexInformer;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::api::{Api, PostParams};
    /// # async fn reconcile(
    /// #     request: ReconcileRequest,
    /// #     children: SharedIndexInformer<ConfigMap>,
    /// #     server: Api<ConfigMap>,
    /// #     child: ConfigMap,
    /// # ) -> Result<Reconciled, kube::Error> {
    /// request.writes().track(&children, &child, server.create(&PostParams::default(), &child)).await?;
    /// # Ok(Reconciled::Done)
    /// # }
    /// ```
    #[must_use]
    pub fn writes(&self) -> &KeyWrites<T> {
        &self.writes
    }
}

/// The result of a successful reconcile call. A success resets the
/// [failures](ReconcileRequest::failures) of the key.
// A failed call returns an error instead, and the key is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(alias = "Result")]
pub enum Reconciled {
    /// The key is not reconciled again until it is queued again, for example by a change.
    #[default]
    Done,
    /// The key is queued again after this time, even if a change leads to an earlier call. If an
    /// earlier call has requested an earlier time that is not over, only that time applies.
    #[doc(alias = "Requeue")]
    RequeueAfter(Duration),
}
