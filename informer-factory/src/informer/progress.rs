//! [`Progress`]: counts an informer's batches and their changed or resynced objects, and records
//! when a batch last set the watermark, the resource version that the store has reached.
//!
//! Only the informer's task writes these values.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The numbers of batches, and of changed or resynced objects in them, that an informer has
/// processed since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BatchCounts {
    /// The number of batches with at least one changed or resynced object.
    pub batches: u64,
    /// The number of changed or resynced objects in all batches. An object counts once per batch.
    pub items: u64,
}

pub(crate) struct Progress {
    created: Instant,
    batches: AtomicU64,
    items: AtomicU64,
    /// The time of the last batch that had a [watermark](informer_core::Batch::watermark), in
    /// milliseconds since `created`; `u64::MAX` before the first such batch.
    watermark_reached: AtomicU64,
}

impl Progress {
    pub(super) fn new() -> Self {
        let (batches, items) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { created: Instant::now(), batches, items, watermark_reached: AtomicU64::new(u64::MAX) }
    }

    /// Counts a batch with `items` objects. If the batch has set the watermark, records the current
    /// time.
    pub(super) fn record(&self, items: usize, sets_watermark: bool) {
        if items > 0 {
            self.batches.fetch_add(1, Ordering::Relaxed);
            self.items.fetch_add(items as u64, Ordering::Relaxed);
        }
        if sets_watermark {
            self.watermark_reached.store(self.millis(), Ordering::Relaxed);
        }
    }

    pub(crate) fn batches(&self) -> BatchCounts {
        let (batches, items) = (&self.batches, &self.items);
        BatchCounts { batches: batches.load(Ordering::Relaxed), items: items.load(Ordering::Relaxed) }
    }

    /// Returns the time since a batch last set the watermark; `None` before the first such batch.
    pub(crate) fn watermark_age(&self) -> Option<Duration> {
        let reached = self.watermark_reached.load(Ordering::Relaxed);
        let reached = Some(reached).filter(|reached| *reached != u64::MAX)?;
        Some(Duration::from_millis(self.millis().saturating_sub(reached)))
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
