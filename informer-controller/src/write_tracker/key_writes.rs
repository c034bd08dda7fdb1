//! [`KeyWrites`]: the writes that a controller makes while it reconciles one key.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use informer_core::{Cached, ObjectKey};
use kube::Resource;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use super::pending::{Condition, Pending};
use super::settlement::Settlement;
use super::{WriteInFlight, WriteTracker};
use informer_factory::__private::{Visibility, writes};
use informer_factory::SharedIndexInformer;

/// A handle to the writes that a [`WriteTracker`] records for one key. [`WriteTracker::of`] returns
/// the handle. A clone is another handle to the same writes.
///
/// Send requests through [`track`](Self::track) and [`track_deletion`](Self::track_deletion), which
/// also report the outcome of the request. If these methods do not fit, call [`begin`](Self::begin)
/// before the request. Report the outcome to the returned [`WriteInFlight`] after the request.
///
/// The tracker's [deadline](WriteTracker::with_deadline) limits how long the key waits for each
/// write.
pub struct KeyWrites<T> {
    pub(super) tracker: WriteTracker<T>,
    pub(super) key: T,
}

impl<T: Hash + Eq + Clone> KeyWrites<T> {
    /// Returns the key whose writes this handle records.
    #[must_use]
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Sends a create, update, patch or apply of `object`, and records the outcome for the
    /// [key](Self::key) of this handle. While the key waits for the write, it is not
    /// [ready](Self::is_ready), and a [`ControllerRunner`](crate::ControllerRunner) does not
    /// reconcile it.
    ///
    /// `informer` is the informer whose cache the controller reads. The objects in this cache can
    /// have another type than `object`, such as a slim view, because only metadata is used. Of
    /// `object`, only the namespace and the name are used.
    ///
    /// - After a response with an object, the key waits until the informer has this version of the
    ///   object.
    /// - After an error, such as a lost connection, a timeout or a 5xx status, the outcome is
    ///   unknown. [`ready`](Self::ready), which a `ControllerRunner` calls for each waiting key,
    ///   reads the object's metadata from the server. The key then waits until the informer has the
    ///   metadata that was read. This is usually much earlier than the
    ///   [deadline](WriteTracker::with_deadline) of the write.
    /// - After a rejection, the object's metadata is read as after any other error, because the
    ///   outcome is unknown, too. By default, kube's client repeats a request after a 429, 503 or
    ///   504. If the first attempt was applied, the server can reject the repetition, for example
    ///   because it conflicts with the first attempt. A rejection is a 4xx status except 408, or an
    ///   `InternalError` of a webhook or an admission plugin, which runs before the write.
    /// - An object whose name the server generates cannot be read, because its name is not known.
    ///   If the server rejects its creation, the key does not wait. After any other error, the key
    ///   waits until the deadline. The same applies to all objects if the informer's source cannot
    ///   read single objects, and to objects in a namespace that the informer does not watch.
    /// - If `object` has a namespaced kind, set its `metadata.namespace`. Without the namespace, it
    ///   is often not possible to read the object. The key then waits as for an object without a
    ///   name.
    /// - After [`kube::Error::BuildRequest`], the key does not wait, because no request was sent.
    ///
    /// ```no_run
    /// # use informer_controller::KeyWrites;
    /// # use informer_factory::{ObjectKey, SharedIndexInformer};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::api::{Api, PostParams};
    /// # async fn create(
    /// #     writes: &KeyWrites<informer_factory::ObjectKey>,
    /// #     children: &SharedIndexInformer<ConfigMap>,
    /// #     server: &Api<ConfigMap>,
    /// #     child: &ConfigMap,
    /// # ) -> Result<(), kube::Error> {
    /// writes.track(children, child, server.create(&PostParams::default(), child)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of the request, unchanged.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll drops the request. The key then waits until the
    /// deadline of the write, because the server may have applied the write.
    pub async fn track<K, W>(
        &self,
        informer: &SharedIndexInformer<K>,
        object: &impl Resource,
        request: impl Future<Output = Result<W, kube::Error>>,
    ) -> Result<W, kube::Error>
    where
        K: Resource + Send + Sync + 'static,
        W: Resource,
    {
        let write = self.begin();
        let response = request.await;
        match &response {
            Ok(written) => write.wrote(informer, written),
            Err(error) => write.failed(error, || Settlement::of(informer, &ObjectKey::of(object).ok()?)),
        }
        response
    }

    /// Sends a deletion or eviction of `object`, and records the outcome for the [key](Self::key)
    /// of this handle. While the key waits for the deletion, it is not [ready](Self::is_ready).
    ///
    /// - After success, the key waits until the object has left the informer's store, or has a
    ///   deletion timestamp there. The object is identified by its UID. The content of the response
    ///   does not matter; it can be an object or a `Status`.
    /// - "Not found" counts as success, because the object was deleted earlier.
    /// - After [`kube::Error::BuildRequest`], the key does not wait, because no request was sent.
    /// - After any other error, the outcome is unknown. [`ready`](Self::ready) reads the object's
    ///   metadata from the server. The key then waits until the informer has the state that was
    ///   read. If the object cannot be read, and the server has not rejected the deletion, the key
    ///   waits as after success.
    ///
    /// # Errors
    /// The errors of the request, unchanged.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll drops the request, whose outcome is then unknown.
    pub async fn track_deletion<K, R>(
        &self,
        informer: &SharedIndexInformer<K>,
        object: &Cached<K>,
        request: impl Future<Output = Result<R, kube::Error>>,
    ) -> Result<R, kube::Error>
    where
        K: Resource + Send + Sync + 'static,
    {
        let deletion = self.begin_deletion(informer, object);
        let response = request.await;
        match &response {
            Err(kube::Error::Api(status)) if status.code == 404 => drop(deletion),
            Err(error) => deletion.failed(error, || Settlement::of(informer, object.key())),
            Ok(_) => drop(deletion),
        }
        response
    }

    /// Records a write that the server has applied. `written` is the object in the response. The
    /// key is not [ready](Self::is_ready) until `informer` has this version of the object, or has
    /// removed the object because it no longer matches the selector of `informer`.
    ///
    /// Nothing is recorded in two cases:
    ///
    /// - `informer` never receives the object, and the key does not wait for an earlier write in
    ///   the same cache.
    /// - The object's version is not a number, as after a dry run of a create. Such a version
    ///   cannot be compared with others.
    ///
    /// Some requests return a `Status` and not the object. Do not record a `Status`, because it has
    /// no version.
    #[doc(alias = "WroteAt")]
    pub fn wrote<K: Send + Sync + 'static>(
        &self,
        informer: &SharedIndexInformer<K>,
        written: &impl Resource,
    ) {
        if let Some(condition) = Condition::write(informer, written.meta()) {
            self.tracker.add_known(&self.key, condition);
        }
    }

    /// Records a request before it is sent. The key is not [ready](Self::is_ready) until you report
    /// the outcome to the returned guard, or until the [deadline](WriteTracker::with_deadline) is
    /// over.
    pub fn begin(&self) -> WriteInFlight<T> {
        let outcome_known = CancellationToken::new();
        let condition = self.tracker.add(&self.key, Condition::InFlight(outcome_known.clone()));
        WriteInFlight { writes: self.clone(), condition: Some(condition), outcome_known }
    }

    /// Records a deletion of `object` before it is sent. The object is identified by its UID,
    /// because after the request the informer can already have another object with this name.
    pub fn begin_deletion<K: Resource + Send + Sync + 'static>(
        &self,
        informer: &SharedIndexInformer<K>,
        object: &Cached<K>,
    ) -> WriteInFlight<T> {
        let is_over = CancellationToken::new();
        let is_visible = !matches!(writes::visibility_of(informer, object.meta()), Visibility::Nothing);
        let condition = is_visible.then(|| {
            let (indexer, object) = (informer.indexer().clone(), object.clone());
            let (watermark, version) =
                (writes::watermark_for(informer, object.meta()), object.resource_version().clone());
            let is_over = is_over.clone();
            let shows_deletion = Arc::new(move || {
                let cached = indexer.get(object.key()).filter(|cached| cached.uid() == object.uid());
                cached.is_none_or(|cached| cached.meta().deletion_timestamp.is_some())
            });
            let condition = Condition::Deletion { watermark, version, shows_deletion, is_over };
            self.tracker.add(&self.key, condition)
        });
        WriteInFlight { writes: self.clone(), condition, outcome_known: is_over }
    }

    /// Returns `true` if the caches have all writes for the key, except writes whose
    /// [deadline](WriteTracker::with_deadline) is over.
    #[must_use]
    #[doc(alias = "EnsureReady")]
    pub fn is_ready(&self) -> bool {
        self.tracker.unmet(&self.key).0.is_empty()
    }

    /// Waits until the caches have all writes for the key, including writes that are recorded
    /// during the wait. The wait for each write ends at its [deadline](WriteTracker::with_deadline)
    /// at the latest. Returns `false` if a wait ended at the deadline; a cache can then still lack
    /// the write. Otherwise returns `true`.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    pub async fn ready(&self) -> bool {
        let mut awaited: Vec<Arc<Pending>> = Vec::new();
        let mut is_in_time = true;
        loop {
            let (unmet, has_late) = self.tracker.unmet(&self.key);
            // Another call can have removed an awaited write at its deadline.
            let is_late = |write: &Arc<Pending>| write.is_expired() && !write.condition.is_met();
            is_in_time &= !has_late && !awaited.iter().any(is_late);
            let Some(next) = unmet.last() else { return is_in_time };
            self.wait_for(next).await;
            awaited = unmet;
        }
    }

    async fn wait_for(&self, pending: &Pending) {
        // Timeouts are ignored, because the next iteration of `ready` checks the condition and the
        // deadline.
        match &pending.condition {
            Condition::OutcomeUnknown(settlement) => {
                if let Ok(condition) = timeout_at(pending.until, settlement.settle()).await {
                    self.tracker.settle(&self.key, pending.id, condition);
                }
            }
            condition => _ = timeout_at(pending.until, condition.wait_until_met()).await,
        }
    }

    /// Returns the reason why the key has to wait, as a text for the log. Returns `None` if the key
    /// does not have to wait.
    pub(crate) fn wait_reason(&self) -> Option<&'static str> {
        self.tracker.unmet(&self.key).0.last().map(|pending| pending.condition.reason())
    }

    /// Forgets all recorded writes for the key, so that the key is [ready](Self::is_ready). Call
    /// this method when the key will not be reconciled any more. Before the call, wait until all
    /// tracked requests for the key have ended: a request that ends later is recorded again. A
    /// running call of [`ready`](Self::ready) still waits for one of the writes, and can record
    /// this write again if its outcome was unknown.
    #[doc(alias = "Clear")]
    pub fn clear(&self) {
        let garbage = self.tracker.shared.keys.lock().pending.remove(&self.key);
        drop(garbage);
    }

    pub(super) fn replace_condition(&self, id: u64, condition: Condition) {
        self.tracker.replace_condition(&self.key, id, condition);
    }

    pub(super) fn forget(&self, id: u64) {
        drop(self.tracker.remove(&self.key, id));
    }
}

/// Returns whether the server has rejected the last attempt of the request. An earlier attempt was
/// possibly applied.
pub(super) fn is_rejection(error: &kube::Error) -> bool {
    // By default, kube's client repeats a request after a 429, 503 or 504. If the first attempt was
    // applied, the repetition can be rejected because of it, or because of a change on the server.
    // Examples: 401 after the token expired, 403 after the use of a quota, 404 after the removal of
    // the last finalizer, 409 after a creation, 429 while the server is overloaded.
    match error {
        // After a 5xx or 408, the server can still apply the write. An exception is a 500 with the
        // reason `InternalError`, which comes from a step before the write, such as a webhook that
        // can't be called. An etcd error is a 500 without a reason.
        kube::Error::Api(status) if status.code == 500 => status.reason == "InternalError",
        kube::Error::Api(status) => (400..500).contains(&status.code) && status.code != 408,
        _ => false,
    }
}

impl<T: Clone> Clone for KeyWrites<T> {
    fn clone(&self) -> Self {
        Self { tracker: self.tracker.clone(), key: self.key.clone() }
    }
}

impl<T: fmt::Debug> fmt::Debug for KeyWrites<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyWrites").field("key", &self.key).finish_non_exhaustive()
    }
}
