//! [`WriteInFlight`]: a write whose outcome is not known yet.

use std::fmt;
use std::hash::Hash;

use kube::Resource;
use tokio_util::sync::CancellationToken;

use super::KeyWrites;
use super::pending::Condition;
use super::settlement::Settlement;
use informer_factory::SharedIndexInformer;

/// A guard for a write whose request has no response yet. Report the outcome when the response
/// arrives. If the guard is dropped without a report, the outcome is unknown.
///
/// The server has possibly applied a write with an unknown outcome, or can still apply it. So the
/// key waits until the deadline, which counts from the drop of the guard. Drop the guard after an
/// error without a response.
///
/// Also drop a guard from [`begin_deletion`](KeyWrites::begin_deletion) after a successful
/// deletion: the key then waits until the store no longer has the object, or has it with a deletion
/// timestamp, or until the deadline.
#[must_use = "a dropped write counts as possibly applied; report its outcome"]
pub struct WriteInFlight<T: Hash + Eq + Clone> {
    writes: KeyWrites<T>,
    /// The id of the write, and the [`Condition`] that ends the wait of the key for this write.
    /// `None` if the informer will never receive the write, or after the outcome of the request was
    /// reported.
    condition: Option<(u64, Condition)>,
    outcome_known: CancellationToken,
}

impl<T: Hash + Eq + Clone> WriteInFlight<T> {
    pub(super) fn new(
        writes: KeyWrites<T>,
        condition: Option<(u64, Condition)>,
        outcome_known: CancellationToken,
    ) -> Self {
        Self { writes, condition, outcome_known }
    }

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

    /// Reports that the request failed with an unknown outcome. If there is a [`Settlement`],
    /// [`KeyWrites::ready`] uses it to read the object from the server, and the key waits until the
    /// cache has the state that was read. If there is none, the key waits until the deadline.
    pub(super) fn unknown(mut self, settlement: Option<Settlement>) {
        let Some(settlement) = settlement else { return };
        if let Some((id, _)) = self.condition.take() {
            self.writes.replace_condition(id, Condition::Outcome(settlement));
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
