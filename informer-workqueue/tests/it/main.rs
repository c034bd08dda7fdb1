//! What a work queue promises, one test per behaviour, the clock paused; most of it is what client-go's tests show of its
//! queues (docs/scenarios.md).

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
use std::time::Duration;

use futures::FutureExt;
use informer_workqueue::{Item, Workqueue};

/// Takes what can be taken now.
fn take<T: Hash + Eq + Clone + Send + 'static>(queue: &Workqueue<T>) -> Option<Item<T>> {
    // Otherwise tokio would make a test that takes much at once wait in between.
    tokio::task::unconstrained(queue.get()).now_or_never().flatten()
}

/// Takes all that can be taken now, and ends it; returns the keys.
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

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Waits, but not for ever: a paused clock goes on by itself when there is nothing else to do.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(86_400), what).await.expect("it comes within a day")
}
