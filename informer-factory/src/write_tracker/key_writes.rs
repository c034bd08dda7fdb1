//! [`KeyWrites`]: what was written for one key: recorded, and waited for.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use informer_core::{Cached, ResourceVersion};
use kube::Resource;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use super::pending::{Awaited, Pending};
use super::{WriteInFlight, WriteTracker};
use crate::SharedIndexInformer;
use crate::informer::Hears;

/// What was written for one key of a [`WriteTracker`], and what is going to be. Cloning gives another handle on the same.
///
/// Send requests through [`track`](Self::track) and [`track_deletion`](Self::track_deletion), which do all that is needed.
/// Where that doesn't fit, [`begin`](Self::begin) before the request and say afterwards what came of it.
pub struct KeyWrites<T> {
    tracker: WriteTracker<T>,
    key: T,
}

impl<T: Hash + Eq + Clone> KeyWrites<T> {
    pub(super) fn new(tracker: WriteTracker<T>, key: T) -> Self {
        Self { tracker, key }
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Sends a create, update, patch or apply, and records what came of it: `informer` is the one through which the object
    /// is read. Its type may be another, such as a slim view; only metadata counts.
    ///
    /// An answer with an object holds the key up until the informer has that version. A refusal, of the 4xx kind, has
    /// written nothing. Any other error, and a future that is dropped, may have: the key is held up until the deadline.
    ///
    /// # Errors
    /// Those of the request, unchanged.
    ///
    /// # Cancel safety
    /// The request is given up if the future is dropped after its first poll, and counts as one that may have happened.
    pub async fn track<K, W>(
        &self,
        informer: &SharedIndexInformer<K>,
        request: impl Future<Output = Result<W, kube::Error>>,
    ) -> Result<W, kube::Error>
    where
        K: Send + Sync + 'static,
        W: Resource,
    {
        let write = self.begin();
        let answer = request.await;
        match &answer {
            Ok(written) => write.wrote(informer, written),
            Err(error) if is_refusal(error) => write.refused(),
            Err(_) => drop(write),
        }
        answer
    }

    /// Sends a deletion or eviction of `object`, and holds the key up until the informer has let go of the object with
    /// this UID, or knows that it is being deleted.
    ///
    /// What the answer contains doesn't matter: it may be an object, or a mere `Status`. "Not found" means that the object
    /// is gone, which the informer may have to learn yet. Any other refusal has deleted nothing.
    ///
    /// # Errors
    /// Those of the request, unchanged.
    ///
    /// # Cancel safety
    /// The request is given up if the future is dropped after its first poll, and counts as one that may have happened.
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
        let answer = request.await;
        match &answer {
            Err(error) if is_refusal(error) && !is_not_found(error) => deletion.refused(),
            Ok(_) | Err(_) => drop(deletion),
        }
        answer
    }

    /// Records a write that has happened: the key is held up until `informer` has the object in the version that the
    /// server returned, or has let go of it, where that is outside the selector. Nothing is recorded if it will never hear
    /// of it, or if the version has no order, as that of a dry run.
    ///
    /// The answer to some requests is a `Status`, and not the object; it has no version, and must not be recorded.
    #[doc(alias = "WroteAt")]
    pub fn wrote<K: Send + Sync + 'static>(
        &self,
        informer: &SharedIndexInformer<K>,
        written: &impl Resource,
    ) {
        let version = ResourceVersion::from(written.meta().resource_version.as_deref());
        if !version.is_comparable() {
            return;
        }
        let watermarks = informer.watermark_for(written.meta());
        match informer.hears_of(written.meta()) {
            Hears::Nothing => {}
            Hears::TheWrite => self.tracker.add_version(&self.key, watermarks, version),
            Hears::ItsLeaving => {
                let has_gone = Arc::new(informer.has_gone(written.meta()));
                self.tracker.add(&self.key, Awaited::Leaving { watermarks, version, has_gone });
            }
        }
    }

    /// Says that a request is about to be sent. The key is held up from now on, until the deadline or until what came of
    /// the request is said.
    pub fn begin(&self) -> WriteInFlight<T> {
        let answered = CancellationToken::new();
        let awaited = self.tracker.add(&self.key, Awaited::Answer(answered.clone()));
        WriteInFlight::new(self.clone(), Some(awaited), answered)
    }

    /// Says that a request is about to be sent that deletes `object`. It is known by its UID, so it must be recorded
    /// before: afterwards the informer may have heard of the deletion, or of another object of that name.
    pub fn begin_deletion<K: Resource + Send + Sync + 'static>(
        &self,
        informer: &SharedIndexInformer<K>,
        object: &Cached<K>,
    ) -> WriteInFlight<T> {
        let is_heard_of = !matches!(informer.hears_of(object.meta()), Hears::Nothing);
        let awaited = is_heard_of.then(|| {
            let (indexer, object) = (informer.indexer().clone(), object.clone());
            let (watermarks, version) =
                (informer.watermark_for(object.meta()), object.resource_version().clone());
            let is_known = Arc::new(move || {
                let cached = indexer.get(object.key()).filter(|cached| cached.uid() == object.uid());
                cached.is_none_or(|cached| cached.meta().deletion_timestamp.is_some())
            });
            self.tracker.add(&self.key, Awaited::Deletion { watermarks, version, is_known })
        });
        WriteInFlight::new(self.clone(), awaited, CancellationToken::new())
    }

    /// Says whether the caches have all that was written for the key, or need not be waited for any longer.
    #[must_use]
    #[doc(alias = "EnsureReady")]
    pub fn is_ready(&self) -> bool {
        self.tracker.look(&self.key).0.is_none()
    }

    /// Waits until the caches have all that was written for the key, also meanwhile. Returns `false` if that was cut
    /// short by a deadline: then a cache may be older than what was written.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn ready(&self) -> bool {
        let mut timed_out = 0;
        loop {
            let (pending, late) = self.tracker.look(&self.key);
            timed_out += late;
            let Some(pending) = pending else { break };
            self.wait_for(&pending).await;
        }
        self.tracker.shared.timed_out.fetch_add(timed_out, std::sync::atomic::Ordering::Relaxed);
        timed_out == 0
    }

    async fn wait_for(&self, pending: &Pending) {
        // Whichever it is, the next look finds it.
        _ = timeout_at(pending.until, pending.awaited.seen()).await;
    }

    /// Forgets all that was written for the key, for one that will not be looked at any more.
    #[doc(alias = "Clear")]
    pub fn clear(&self) {
        let garbage = self.tracker.shared.keys.lock().pending.remove(&self.key);
        drop(garbage);
    }

    pub(super) fn prolong(&self, id: u64, awaited: Awaited) {
        self.tracker.prolong(&self.key, id, awaited);
    }

    pub(super) fn forget(&self, id: u64) {
        drop(self.tracker.remove(&self.key, id));
    }
}

/// Says whether the server has answered that it did nothing, or was never asked.
fn is_refusal(error: &kube::Error) -> bool {
    match error {
        // A server that is slow or in trouble may still do it: those are 5xx, and 408.
        kube::Error::Api(status) => (400..500).contains(&status.code) && status.code != 408,
        kube::Error::BuildRequest(_) => true,
        _ => false,
    }
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
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
