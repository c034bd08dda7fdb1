//! The shared state of the hammer test: server, informer, deadline and counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use informer_core::{ListWatchError, ResourceVersion};
use informer_factory::{InformerOptions, SharedIndexInformer, WaitOutcome};
use informer_reflector::ReflectorConfig;
use informer_testing::MemorySource;
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::item::{InstanceCounter, Item};

/// Longer than any wait of a passing test.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The reflector's backoff after failures. With the default of up to 30 seconds, the producers
/// would mostly wait for their writes to arrive.
const BACKOFF: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(50)];

/// The state that all tasks of a test share.
pub(crate) struct World {
    pub(crate) source: MemorySource<Item>,
    pub(crate) informer: SharedIndexInformer<Item>,
    pub(crate) items: Arc<InstanceCounter>,
    pub(crate) handlers: Arc<InstanceCounter>,
    pub(crate) seed: u64,
    /// When the producers stop, unless `enough` is cancelled earlier.
    pub(crate) deadline: Instant,
    pub(crate) enough: CancellationToken,
    /// Stops the informer.
    pub(crate) shutdown: CancellationToken,
    /// Set when the producers have stopped.
    pub(crate) over: CancellationToken,
    /// A counter that the producers increase while they write. The other tasks wait for its
    /// changes.
    pub(crate) progress: watch::Sender<u64>,
    /// Stalled handlers continue when this number changes. At [`World::NO_MORE_STALLS`], handlers
    /// no longer stall.
    pub(crate) phase: watch::Sender<u64>,
    /// Held while a producer disturbs the watch, so that no watch is closed between an unseen
    /// change and the list after it.
    pub(crate) fault: Mutex<()>,
    pub(crate) tally: Tally,
}

/// Counts what has happened in a test.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) writes: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) own_writes_read: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) joined: AtomicU64,
    pub(crate) left: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) coalesced: AtomicU64,
    pub(crate) panicked: AtomicU64,
    pub(crate) indexes: AtomicU64,
    pub(crate) snapshots: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl World {
    pub(crate) const NO_MORE_STALLS: u64 = u64::MAX;

    /// Returns a world and the task of its running informer.
    pub(crate) fn new(duration: Duration, seed: u64) -> (Arc<Self>, JoinHandle<()>) {
        let source = MemorySource::new("items");
        // Odd seeds test streaming lists, even seeds paged lists.
        let source = if seed % 2 == 1 { source.streaming_lists() } else { source };
        let [first, longest] = BACKOFF;
        let reflector = ReflectorConfig::new().backoff(first, longest);
        let options = InformerOptions::new().reflector(reflector).resync_period(Duration::from_secs(1));
        let (informer, task) = SharedIndexInformer::new(Arc::new(source.clone()), options);
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(task.run(shutdown.clone()));
        let world = Self {
            source,
            informer,
            items: Arc::default(),
            handlers: Arc::default(),
            seed,
            deadline: Instant::now() + duration,
            enough: CancellationToken::new(),
            shutdown,
            over: CancellationToken::new(),
            progress: watch::Sender::default(),
            phase: watch::Sender::default(),
            fault: Mutex::default(),
            tally: Tally::default(),
        };
        (Arc::new(world), running)
    }

    /// Returns whether the producers should stop writing.
    pub(crate) fn time_is_up(&self) -> bool {
        self.enough.is_cancelled() || Instant::now() >= self.deadline
    }

    /// Waits for the producers to finish, and then makes the other tasks finish.
    pub(crate) async fn end(&self, producers: JoinSet<()>) {
        // This propagates panics of the producers.
        producers.join_all().await;
        self.over.cancel();
        self.phase.send_replace(Self::NO_MORE_STALLS);
    }

    /// Returns a separate random number generator for one task.
    pub(crate) fn random(&self, task: u64) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(task))
    }

    /// Waits for the next round of a producer. Returns `false` when the producers have stopped.
    pub(crate) async fn progress(&self) -> bool {
        let mut progress = self.progress.subscribe();
        progress.mark_unchanged();
        matches!(self.over.run_until_cancelled(progress.changed()).await, Some(Ok(())))
    }

    /// Waits until the store has reached a version, and panics on a timeout. Returns `false` if the
    /// informer was stopped before.
    pub(crate) async fn reach(&self, version: &ResourceVersion) -> bool {
        match self.informer.wait_until(version, TIMEOUT).await {
            WaitOutcome::Reached => true,
            WaitOutcome::Stopped if self.shutdown.is_cancelled() => false,
            outcome => panic!("the wait for version {version} ended with {outcome:?}: {:?}", self.informer),
        }
    }
}

/// Waits with a timeout; `what` describes the wait.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TIMEOUT, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("timed out waiting for {what}"),
    }
}

/// Returns an error response of the server.
pub(crate) fn refusal(code: u16, reason: &str) -> ListWatchError {
    let status = json!({ "status": "Failure", "code": code, "reason": reason, "message": "hammered" });
    let status: Box<kube::core::Status> = serde_json::from_value(status).expect("the status is valid");
    status.into()
}
