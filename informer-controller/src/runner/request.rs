//! [`ReconcileRequest`] and [`Reconciled`]: what a controller's function is called with, and what it answers.

use std::time::Duration;

use informer_core::ObjectKey;

use super::readiness::View;
use crate::KeyWrites;

/// A key that is to be looked at.
#[derive(Debug)]
#[doc(alias = "Request")]
pub struct ReconcileRequest<T = ObjectKey> {
    pub(super) key: T,
    pub(super) failures: u32,
    pub(super) writes: KeyWrites<T>,
    pub(super) view: View,
}

impl<T> ReconcileRequest<T> {
    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Returns how often it has failed since it was last done.
    #[must_use]
    #[doc(alias = "NumRequeues")]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns whether the controller's caches follow the key's namespace, and have done so since the call began.
    ///
    /// `false` means that an object which a cache does not have may exist: its namespace was
    /// [removed](informer_factory::SharedIndexInformer::remove_namespace), and the object was released, not deleted. Ask after each
    /// lookup that found nothing and before a cleanup, because a namespace can be removed while the call is under way. A
    /// cache that has never followed the namespace makes no difference.
    ///
    /// ```no_run
    /// # use informer_controller::{ReconcileRequest, Reconciled};
    /// # use informer_factory::SharedIndexInformer;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn clean_up(_: &ReconcileRequest) {}
    /// # async fn reconcile(request: ReconcileRequest, maps: SharedIndexInformer<ConfigMap>) -> Reconciled {
    /// if maps.get(request.key()).is_none() && request.is_followed() {
    ///     clean_up(&request).await; // The object has been deleted.
    /// }
    /// # Reconciled::Done
    /// # }
    /// ```
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.view.is_followed()
    }

    /// Returns where to record what is written for the key: it is not looked at again before the caches have that.
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

/// What came of looking at a key. The earlier failures of the key are forgotten with either.
// Complete: what has failed is an error, and comes again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(alias = "Result")]
pub enum Reconciled {
    /// All is as it should be, until something changes.
    #[default]
    Done,
    /// So it is for now; the key is to be looked at again after this time, or before, if something changes.
    #[doc(alias = "Requeue")]
    RequeueAfter(Duration),
}
