//! [`WriteInFlight`]: a write whose answer is not known yet.

use std::fmt;
use std::hash::Hash;

use kube::Resource;
use tokio_util::sync::CancellationToken;

use super::KeyWrites;
use super::pending::Awaited;
use super::settlement::Settlement;
use informer_factory::SharedIndexInformer;

/// A write that is under way. Say what came of it; a guard that is dropped says that nobody knows.
///
/// Then the write may have happened, or may yet: the key is held up until the deadline, counted from now. So drop it for an
/// error that is no answer of the server's, and for a deletion that has succeeded, whose object the informer has to let
/// go of.
#[must_use = "a write that is dropped counts as one that may have happened"]
pub struct WriteInFlight<T: Hash + Eq + Clone> {
    writes: KeyWrites<T>,
    /// By what it is known, and what is waited for. Not there if the informer never hears of it, or once what came of it has
    /// been said.
    awaited: Option<(u64, Awaited)>,
    answered: CancellationToken,
}

impl<T: Hash + Eq + Clone> WriteInFlight<T> {
    pub(super) fn new(
        writes: KeyWrites<T>,
        awaited: Option<(u64, Awaited)>,
        answered: CancellationToken,
    ) -> Self {
        Self { writes, awaited, answered }
    }

    /// Says that it has happened, and the server returned this object; see [`KeyWrites::wrote`].
    pub fn wrote<K: Send + Sync + 'static>(
        mut self,
        informer: &SharedIndexInformer<K>,
        written: &impl Resource,
    ) {
        // First this, so that the key is never let go in between.
        self.writes.wrote(informer, written);
        self.end();
    }

    /// Says that the server has refused it, and nothing was written.
    pub fn refused(mut self) {
        self.end();
    }

    /// Records that the request has failed with an unknown outcome. `settlement` finds it out; without one, the key is held
    /// up until the deadline.
    pub(super) fn unknown(mut self, settlement: Option<Settlement>) {
        let Some(settlement) = settlement else { return };
        if let Some((id, _)) = self.awaited.take() {
            self.writes.prolong(id, Awaited::Outcome(settlement));
            self.answered.cancel();
        }
    }

    fn end(&mut self) {
        if let Some((id, _)) = self.awaited.take() {
            self.writes.forget(id);
            self.answered.cancel();
        }
    }
}

impl<T: Hash + Eq + Clone> Drop for WriteInFlight<T> {
    fn drop(&mut self) {
        if let Some((id, awaited)) = self.awaited.take() {
            self.writes.prolong(id, awaited);
        }
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug> fmt::Debug for WriteInFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteInFlight").field("key", self.writes.key()).finish_non_exhaustive()
    }
}
