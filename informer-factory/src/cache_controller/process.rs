//! [`Process`]: calls a controller's process function, and requeues failed items if the controller
//! is configured to do so.

use std::collections::HashSet;
use std::time::Duration;

use informer_core::{Batch, ObjectKey, Pending};

type Each<K> = Box<dyn FnMut(&Pending<K>) -> Result<(), String> + Send>;
type Whole<K> = Box<dyn FnMut(&mut Batch<K>) + Send>;

/// A process function, for single keys or for batches.
enum Work<K: 'static> {
    Each(Each<K>),
    /// The function receives the whole batch, and requeues failed items itself.
    Batch(Whole<K>),
}

/// A controller's process function, and the requeued keys: those for which the last call failed.
pub(super) struct Process<K: 'static> {
    work: Work<K>,
    retries: bool,
    failing: HashSet<ObjectKey>,
}

impl<K: 'static> Process<K> {
    pub(super) fn each(each: Each<K>, retries: bool) -> Self {
        Self { work: Work::Each(each), retries, failing: HashSet::new() }
    }

    pub(super) fn batches(process: Whole<K>) -> Self {
        Self { work: Work::Batch(process), retries: false, failing: HashSet::new() }
    }

    /// Processes a batch. Returns `true` if the batch has items and all of them were requeued
    /// because they failed.
    pub(super) fn run(&mut self, batch: &mut Batch<K>, description: &str) -> bool {
        let each = match &mut self.work {
            Work::Each(each) => each,
            Work::Batch(process) => {
                process(batch);
                return batch.is_all_requeued();
            }
        };
        let mut failed = Vec::new();
        for (position, pending) in batch.items().iter().enumerate() {
            match each(pending) {
                Ok(()) if self.failing.remove(&pending.key) => {
                    tracing::info!(
                        resource = description, key = %pending.key,
                        "object was processed after at least one failure"
                    );
                }
                Ok(()) => {}
                Err(error) if !self.retries => {
                    tracing::warn!(
                        resource = description, key = %pending.key, error,
                        "object could not be processed; the next attempt follows its next change or resync"
                    );
                }
                Err(error) => {
                    failed.push(position);
                    if self.failing.insert(pending.key.clone()) {
                        tracing::warn!(
                            resource = description, key = %pending.key, error,
                            "object could not be processed; retrying (repeats are logged at debug level)"
                        );
                    } else {
                        tracing::debug!(
                            resource = description, key = %pending.key, error,
                            "processing of object failed again; retrying"
                        );
                    }
                }
            }
        }
        failed.into_iter().for_each(|position| batch.requeue(position));
        batch.is_all_requeued()
    }
}

/// How long the controller waits after a batch in which all items failed. Each wait is twice as
/// long as the one before, up to [`MAX`](Self::MAX).
pub(super) struct RetryWait {
    next: Duration,
}

impl RetryWait {
    const MIN: Duration = Duration::from_millis(5);
    const MAX: Duration = Duration::from_secs(1);

    pub(super) fn new() -> Self {
        Self { next: Self::MIN }
    }

    pub(super) fn reset(&mut self) {
        self.next = Self::MIN;
    }

    pub(super) fn take(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(Self::MAX);
        now
    }
}
