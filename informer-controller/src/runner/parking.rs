//! [`ParkingLot`]: holds keys for which the caches are not ready, without occupying a worker.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use informer_workqueue::{Priority, Workqueue};
use tokio::sync::mpsc::UnboundedReceiver;

use super::RunnerMonitor;
use super::readiness::Readiness;

pub(super) struct ParkingLot<T> {
    pub(super) queue: Workqueue<T>,
    pub(super) readiness: Arc<Readiness<T>>,
    pub(super) monitor: RunnerMonitor,
    /// The keys to park, which the workers send.
    pub(super) arrivals: UnboundedReceiver<(T, Priority)>,
    /// The parked keys, and the priority with which each key will be queued again.
    pub(super) parked: HashMap<T, Priority>,
}

impl<T: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static> ParkingLot<T> {
    /// Holds the keys that workers send to `arrivals`. Queues each key again when the caches are
    /// ready for it, or a worker must drop it. Returns when all senders are dropped.
    pub(super) async fn run(mut self) {
        let mut waits = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some((key, in_time)) = waits.next() => self.unpark(key, in_time),
                arrival = self.arrivals.recv() => {
                    let Some((key, priority)) = arrival else { return };
                    if self.park(key.clone(), priority) {
                        let readiness = Arc::clone(&self.readiness);
                        waits.push(async move {
                            // This can include reads from an overloaded server. No worker waits for
                            // them.
                            let in_time = readiness.ready(&key).await;
                            (key, in_time)
                        });
                    }
                }
            }
        }
    }

    /// Adds a key, or raises the priority of a key that waits already. Returns `true` if the key
    /// did not wait before.
    fn park(&mut self, key: T, priority: Priority) -> bool {
        let before = self.parked.get(&key).copied();
        if before.is_none() {
            self.monitor.park(&key);
        }
        self.parked.insert(key, before.map_or(priority, |before| before.max(priority)));
        before.is_none()
    }

    fn unpark(&mut self, key: T, in_time: bool) {
        self.monitor.unpark(&key, !in_time);
        let priority = self.parked.remove(&key).unwrap_or_default();
        self.queue.add_with_priority(key, priority);
    }
}

impl<T> Drop for ParkingLot<T> {
    fn drop(&mut self) {
        self.monitor.forget_parked();
    }
}
