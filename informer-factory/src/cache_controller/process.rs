//! [`Process`]: calls a controller's process function, and requeues failed items if the controller
//! is configured to do so.

use std::collections::HashSet;

use informer_core::{Batch, ObjectKey, Pending};

/// The arguments are a batch, and the description of the batch's source for log messages.
type ProcessBatch<K> = Box<dyn FnMut(&mut Batch<K>, &str) + Send>;

/// A controller's process function.
pub(super) struct Process<K: 'static>(ProcessBatch<K>);

impl<K: 'static> Process<K> {
    /// Creates a process function that calls `process` with each item. If `retries` is `true`, it
    /// requeues failed items.
    pub(super) fn each(
        mut process: impl FnMut(&Pending<K>) -> Result<(), String> + Send + 'static,
        retries: bool,
    ) -> Self {
        // The requeued keys: those for which the last call failed.
        let mut failing: HashSet<ObjectKey> = HashSet::new();
        Self(Box::new(move |batch: &mut Batch<K>, description: &str| {
            let mut failed = Vec::new();
            for (position, pending) in batch.items().iter().enumerate() {
                let key = &pending.key;
                let Err(error) = process(pending) else {
                    if failing.remove(key) {
                        tracing::info!(
                            resource = description, %key,
                            "object was processed after at least one failure"
                        );
                    }
                    continue;
                };
                if !retries {
                    tracing::warn!(
                        resource = description, %key, error,
                        "object could not be processed; the next attempt follows its next change or resync"
                    );
                    continue;
                }
                failed.push(position);
                if failing.insert(key.clone()) {
                    tracing::warn!(
                        resource = description, %key, error,
                        "object could not be processed; retrying (repeats are logged at debug level)"
                    );
                } else {
                    tracing::debug!(
                        resource = description, %key, error,
                        "processing of object failed again; retrying"
                    );
                }
            }
            failed.into_iter().for_each(|position| batch.requeue(position));
        }))
    }

    /// Creates a process function from one that receives whole batches, and requeues failed items
    /// itself.
    pub(super) fn batches(mut process: impl FnMut(&mut Batch<K>) + Send + 'static) -> Self {
        Self(Box::new(move |batch: &mut Batch<K>, _: &str| process(batch)))
    }

    /// Processes a batch. Returns `true` if the batch has items and all of them were requeued
    /// because they failed.
    pub(super) fn run(&mut self, batch: &mut Batch<K>, description: &str) -> bool {
        (self.0)(batch, description);
        batch.is_all_requeued()
    }
}
