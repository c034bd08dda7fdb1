//! The work queue on a paused clock, one test per behavior. Most tests follow client-go's
//! (docs/scenarios.md).

mod delays;
mod endings;
mod fairness;
mod hostile;
mod limiters;
mod metrics;
mod order;
mod queue;
mod shutdown;

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::time::Duration;

use futures::FutureExt;
use informer_workqueue::{Item, Workqueue};

/// Takes an item if one is ready now, without waiting.
fn take<T: Hash + Eq + Clone + Send + 'static>(queue: &Workqueue<T>) -> Option<Item<T>> {
    // Without `unconstrained`, tokio's cooperative scheduling would interrupt a test that takes
    // many items.
    tokio::task::unconstrained(queue.get()).now_or_never().flatten()
}

/// Takes and ends all items that are ready now. Returns their keys.
fn take_all<T: Hash + Eq + Clone + Send + 'static>(queue: &Workqueue<T>) -> Vec<T> {
    let items = std::iter::from_fn(|| take(queue));
    items
        .map(|item| {
            let key = item.key().clone();
            item.done();
            key
        })
        .collect()
}

/// Returns a waker, and the number of its calls.
fn counting_waker() -> (Waker, Arc<Wakes>) {
    let wakes = Arc::new(Wakes::default());
    (Arc::clone(&wakes).into(), wakes)
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Waits for the result of a future, for at most a day of tokio's clock. A paused clock advances by
/// itself when all tasks are idle.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(86_400), what).await.expect("no result within a day")
}
