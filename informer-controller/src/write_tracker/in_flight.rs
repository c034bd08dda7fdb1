//! [`WriteInFlight`]: a write whose outcome is not known yet.
//!
//! The key is the controller's key for which the write was recorded. While the key waits for the
//! write, the controller does not reconcile the key.

use std::fmt;
use std::hash::Hash;

use kube::Resource;
use tokio_util::sync::CancellationToken;

use super::KeyWrites;
use super::key_writes::is_rejection;
use super::pending::Condition;
use super::settlement::Settlement;
use informer_factory::SharedIndexInformer;

/// A guard for a write whose request has no response yet. After the request, do one of the
/// following:
///
/// - The server returned the written object: call [`wrote`](Self::wrote).
/// - The server rejected the write, and the client has sent the request only once: call
///   [`refused`](Self::refused). The documentation of [`KeyWrites::track`] describes rejections.
/// - The server accepted a deletion: drop the guard.
/// - The server has possibly applied the write, for example after a timeout, or before it rejected
///   a repetition of the request: drop the guard.
///
/// After a drop, the key for which the write was recorded is not [ready](KeyWrites::is_ready) until
/// the tracker's [deadline](crate::WriteTracker::with_deadline), which counts from the drop.
///
/// If the dropped guard is from [`begin_deletion`](KeyWrites::begin_deletion), the key is ready
/// before the deadline when the store no longer has the object, or has it with a deletion
/// timestamp.
#[must_use = "a dropped write counts as possibly applied; report its outcome"]
pub struct WriteInFlight<T: Hash + Eq + Clone> {
    pub(super) writes: KeyWrites<T>,
    /// The write's ID in the tracker, and the condition that ends the key's wait for this write.
    /// `None` if the key does not wait for this write.
    pub(super) condition: Option<(u64, Condition)>,
    pub(super) outcome_known: CancellationToken,
}

impl<T: Hash + Eq + Clone> WriteInFlight<T> {
    /// Reports that the write was applied and the server returned this object; see
    /// [`KeyWrites::wrote`].
    pub fn wrote<K: Send + Sync + 'static>(
        mut self,
        informer: &SharedIndexInformer<K>,
        written: &impl Resource,
    ) {
        // The result is recorded before the write in flight is removed, so that the key waits
        // without a gap.
        self.writes.wrote(informer, written);
        self.end();
    }

    /// Reports that the server rejected the write, so nothing was written.
    pub fn refused(mut self) {
        self.end();
    }

    /// Reports that the request failed. If the outcome is unknown, the tracker uses the result of
    /// `settlement` to read the written object from the server.
    pub(super) fn failed(mut self, error: &kube::Error, settlement: impl FnOnce() -> Option<Settlement>) {
        // The request was not sent.
        if matches!(error, kube::Error::BuildRequest(_)) {
            return self.end();
        }
        let Some(mut settlement) = settlement() else {
            // The object can't be read. After a rejection, usually nothing was written.
            if is_rejection(error) {
                self.end();
            }
            return;
        };
        settlement.is_probably_rejected = is_rejection(error);
        if let Some((id, _)) = self.condition.take() {
            self.writes.replace_condition(id, Condition::OutcomeUnknown(settlement));
            self.outcome_known.cancel();
        }
    }

    fn end(&mut self) {
        if let Some((id, _)) = self.condition.take() {
            self.writes.forget(id);
            self.outcome_known.cancel();
        }
    }
}

impl<T: Hash + Eq + Clone> Drop for WriteInFlight<T> {
    fn drop(&mut self) {
        if let Some((id, condition)) = self.condition.take() {
            self.writes.replace_condition(id, condition);
        }
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug> fmt::Debug for WriteInFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteInFlight").field("key", self.writes.key()).finish_non_exhaustive()
    }
}
