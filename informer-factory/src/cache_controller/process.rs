//! [`Process`]: what a controller does with what comes out of its queue, and what it does if that fails.

use std::collections::HashSet;
use std::time::Duration;

use informer_core::{Batch, ObjectKey, Pending};

type Each<K> = Box<dyn FnMut(&Pending<K>) -> Result<(), String> + Send>;
type Whole<K> = Box<dyn FnMut(&mut Batch<K>) + Send>;

/// The work on a batch.
enum Work<K: 'static> {
    /// Key by key; each can fail.
    Each(Each<K>),
    /// All at once; it is up to the function to put back what fails.
    Batch(Whole<K>),
}

/// The work on batches, and for which keys it has failed the last time.
pub(super) struct Process<K: 'static> {
    work: Work<K>,
    /// Whether what fails is tried again.
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

    /// Works on a batch. Returns whether there was work that is to be tried again, and no other.
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
                    tracing::info!("{description}: {} could be processed at last", pending.key);
                }
                Ok(()) => {}
                Err(error) if !self.retries => {
                    tracing::warn!("{description}: {} could not be processed: {error}", pending.key);
                }
                Err(error) => {
                    failed.push(position);
                    if self.failing.insert(pending.key.clone()) {
                        tracing::warn!(
                            "{description}: {} could not be processed, and is tried again: {error}",
                            pending.key
                        );
                    } else {
                        tracing::debug!("{description}: {} failed again: {error}", pending.key);
                    }
                }
            }
        }
        failed.into_iter().for_each(|position| batch.requeue(position));
        batch.is_all_requeued()
    }
}

/// How long to wait before the next try when all that there is to do fails.
pub(super) struct Pause {
    next: Duration,
}

impl Pause {
    const SHORTEST: Duration = Duration::from_millis(5);
    const LONGEST: Duration = Duration::from_secs(1);

    pub(super) fn new() -> Self {
        Self { next: Self::SHORTEST }
    }

    pub(super) fn reset(&mut self) {
        self.next = Self::SHORTEST;
    }

    pub(super) fn take(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(Self::LONGEST);
        now
    }
}
