//! [`NamespacesTask`]: runs the reflectors of an informer's namespaces, as futures joined in one
//! task.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use informer_core::NamespaceFeed;
use informer_reflector::{Health, Reflector, ReflectorStatus};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Namespaces;

/// How long the server must refuse (403) a namespace before the informer syncs without it.
// Temporary refusals usually end earlier. They occur just after the server has started, or when a
// role binding is created together with the workload.
const MIN_REFUSAL: Duration = Duration::from_secs(10);

/// The reflector of one namespace, ready to run.
pub(super) struct MemberTask<K: 'static> {
    pub(super) reflector: Reflector<K>,
    /// The input of the informer's queue for the changes of this namespace.
    pub(super) feed: Arc<NamespaceFeed<K>>,
    /// Cancelled when the program removes the namespace. The reflector then stops.
    pub(super) removed: CancellationToken,
    /// Cancelled by this task at its end, after it has queued the release of the namespace's
    /// objects. If the program has added the namespace again, the next reflector then starts.
    pub(super) released: CancellationToken,
    /// The token `released` of the namespace's last started reflector. This reflector starts when
    /// the token is cancelled. `None` if this reflector can start at once.
    pub(super) starts_after: Option<CancellationToken>,
}

impl<K: Send + Sync + 'static> MemberTask<K> {
    /// Runs the reflector until the namespace is removed. Then queues the release of the
    /// namespace's objects, so that the store removes these objects.
    async fn run(self) {
        if let Some(earlier) = self.starts_after {
            earlier.cancelled().await;
        }
        let status = self.reflector.status();
        let mut run = pin!(self.reflector.run(self.removed));
        tokio::select! {
            biased;
            () = &mut run => {}
            refused = wait_for_refusal(status.clone()) => {
                if self.feed.make_optional() {
                    tracing::warn!(
                        resource = status.description(),
                        namespace = self.feed.namespace(),
                        reason = %refused,
                        "namespace refused by the server; the informer retries, but its initial list does not wait for this \
                         namespace if another one has been listed. Grant the verbs list and watch in the namespace, or remove the namespace from the \
                         informer"
                    );
                }
                run.await;
            }
        }
        self.feed.release();
        self.released.cancel();
    }
}

/// Returns the health once the server has refused (403) all requests of a reflector for
/// [`MIN_REFUSAL`]. Never completes if the reflector ends first.
async fn wait_for_refusal(mut status: ReflectorStatus) -> Health {
    let mut since = None;
    loop {
        let health = status.health();
        match &health {
            Health::Forbidden { .. } => since = since.or_else(|| Some(Instant::now())),
            // A retry is in progress. Its result decides whether the refusal continues.
            Health::Syncing { .. } => {}
            _ => since = None,
        }
        let due = since.unwrap_or_else(Instant::now) + MIN_REFUSAL;
        tokio::select! {
            biased;
            changed = status.health_changed() => {
                if changed.is_none() {
                    return std::future::pending().await;
                }
            }
            // The health does not change before the retry, which the server can delay by an hour.
            () = sleep_until(due), if matches!(health, Health::Forbidden { .. }) => return health,
        }
    }
}

pub(crate) struct NamespacesTask<K: 'static> {
    pub(in crate::source) namespaces: Arc<Namespaces<K>>,
}

impl<K: Send + Sync + 'static> NamespacesTask<K> {
    /// Makes the informer's sync wait for the initial lists of the current namespaces only. Call
    /// this method before [`run`](Self::run).
    pub(in crate::source) fn begin(&self) {
        self.namespaces.queue.start_feeds();
    }

    pub(in crate::source) async fn run(self, shutdown: CancellationToken) {
        let Namespaces { state, joined, .. } = self.namespaces.as_ref();
        let mut running = FuturesUnordered::new();
        loop {
            let waiting = std::mem::take(&mut state.lock().waiting);
            running.extend(waiting.into_iter().map(MemberTask::run));
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = joined.notified() => {}
                // The removal of a namespace's objects has been queued.
                Some(()) = running.next() => {}
            }
        }
    }
}

impl<K: 'static> Drop for NamespacesTask<K> {
    fn drop(&mut self) {
        self.namespaces.end();
    }
}
