//! Measures the work queue, and a minimal queue for comparison: the cases of the Go benchmarks of
//! client-go's `workqueue`, and the cost of delays, priorities, groups and metrics. Run with `cargo
//! bench -p informer-workqueue`.

use std::collections::{HashSet, VecDeque};
use std::hint::black_box;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use criterion::Criterion;
use informer_workqueue::{ItemExponential, Metrics, Priority, Workqueue};

/// A key that is shared and cheap to copy, like Go's strings.
type Key = Arc<str>;

/// The shortest possible delay, which is over when the queue next checks its delays.
const NOTHING: Duration = Duration::from_nanos(1);

/// The number of keys that one thread adds and another thread takes in one round.
const ROUND: usize = 100_000;

fn keys(count: usize) -> Vec<Key> {
    (0..count).map(|n| format!("namespace-{}/deployment-7d9f8b6c5d-{n:06}", n % 50).into()).collect()
}

fn namespace(key: &Key) -> &str {
    key.split_once('/').map_or("", |(namespace, _)| namespace)
}

async fn take_and_end(queue: &Workqueue<Key>) {
    let item = queue.get().await.expect("not shut down");
    black_box(item.key());
    item.done();
}

/// Measures the duration of one call of `step` in a task.
fn bench(c: &mut Criterion, name: &str, mut step: impl AsyncFnMut()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    c.bench_function(name, |b| {
        b.iter_custom(|count| {
            runtime.block_on(async {
                let started = Instant::now();
                for _ in 0..count {
                    step().await;
                }
                started.elapsed()
            })
        });
    });
}

/// Returns a function that returns the keys in turn, beginning with index `from`.
fn in_turn(keys: &[Key], from: usize) -> impl FnMut() -> Key + '_ {
    let mut next = from;
    move || {
        let key = Arc::clone(&keys[next]);
        next = (next + 1) % keys.len();
        key
    }
}

fn one_thread(c: &mut Criterion) {
    let keys = keys(1_001);
    for (depth, name) in [(0, "1"), (1_000, "1,000")] {
        let queue = Workqueue::new();
        keys[..depth].iter().for_each(|key| queue.add(Arc::clone(key)));
        let mut next = in_turn(&keys, depth);
        bench(c, &format!("workqueue, add, get and done at depth {name}"), async || {
            queue.add(next());
            take_and_end(&queue).await;
        });
        c.bench_function(&format!("plain queue, add, get and done at depth {name}"), |b| {
            let queue = Plain::default();
            keys[..depth].iter().for_each(|key| queue.add(Arc::clone(key)));
            let mut next = in_turn(&keys, depth);
            b.iter(|| {
                queue.add(next());
                queue.done(&black_box(queue.get()));
            });
        });
    }
    c.bench_function("workqueue, add of a key that is queued", |b| {
        let queue = Workqueue::new();
        keys.iter().for_each(|key| queue.add(Arc::clone(key)));
        let mut next = in_turn(&keys, 0);
        b.iter(|| queue.add(next()));
    });
}

/// Measures the cost of the features of the queue: metrics, delays, groups and priorities.
fn in_use(c: &mut Criterion) {
    let keys = keys(1_001);
    let add_get_done = |c: &mut Criterion, name: &str, queue: &Workqueue<Key>| {
        let mut next = in_turn(&keys, 0);
        bench(c, &format!("workqueue, add, get and done, {name}"), async || {
            queue.add(next());
            take_and_end(queue).await;
        });
    };
    let queue = Workqueue::builder().metrics(NoMetrics).build();
    add_get_done(c, "with metrics", &queue);
    let queue = Workqueue::new();
    for key in &keys {
        queue.add_after(format!("later/{key}").into(), Duration::from_secs(86_400));
    }
    add_get_done(c, "with 1,000 delayed keys", &queue);
    let queue = Workqueue::builder().fair_by(namespace).build();
    take_and_add_back(c, "50 groups, depth 1,000", &queue, &keys, |_| Priority::Normal);
    let queue = Workqueue::new();
    let priority = |n| if n % 2 == 0 { Priority::Low } else { Priority::Normal };
    take_and_add_back(c, "two priorities, depth 1,000", &queue, &keys, priority);

    let queue = Workqueue::new();
    let mut next = in_turn(&keys, 0);
    bench(c, "workqueue, add, add with a higher priority, get and done", async || {
        let key = next();
        queue.add_with_priority(Arc::clone(&key), Priority::Low);
        queue.add(key);
        take_and_end(&queue).await;
    });
    bench(c, "workqueue, add with a delay, get and done", async || {
        queue.add_after(next(), NOTHING);
        take_and_end(&queue).await;
    });
    let queue = Workqueue::builder().rate_limiter(ItemExponential::new(NOTHING, NOTHING)).build();
    bench(c, "workqueue, add, get, retry, get and done", async || {
        queue.add(next());
        queue.get().await.expect("not shut down").retry();
        take_and_end(&queue).await;
    });
}

/// Measures a queue of 1,000 keys, to which each key is added again after it has been processed.
fn take_and_add_back(
    c: &mut Criterion,
    name: &str,
    queue: &Workqueue<Key>,
    keys: &[Key],
    priority: impl Fn(u64) -> Priority,
) {
    let (last, others) = keys.split_last().expect("there are keys");
    others.iter().for_each(|key| queue.add_with_priority(Arc::clone(key), priority(0)));
    let (mut key, mut n) = (Arc::clone(last), 0);
    bench(c, &format!("workqueue, add, get and done, {name}"), async || {
        n += 1;
        queue.add_with_priority(Arc::clone(&key), priority(n));
        let item = queue.get().await.expect("not shut down");
        key = Arc::clone(item.key());
        item.done();
    });
}

/// Metrics that ignore all events, so that the benchmark measures only the cost of reading the
/// clock.
struct NoMetrics;

impl Metrics for NoMetrics {}

/// Measures the time per key while one thread adds keys and another thread takes and ends them.
/// Each round adds each key once.
fn two_threads(c: &mut Criterion) {
    let keys = keys(ROUND);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    c.bench_function("workqueue, add on one thread, get and done on another", |b| {
        let queue = Workqueue::new();
        b.iter_custom(|count| {
            in_rounds(count, |count| {
                let worker = queue.clone();
                let worker = runtime.spawn(async move {
                    for _ in 0..count {
                        worker.get().await.expect("not shut down").done();
                    }
                });
                keys[..count].iter().for_each(|key| queue.add(Arc::clone(key)));
                runtime.block_on(worker).expect("no panic");
            })
        });
    });
    c.bench_function("plain queue, add on one thread, get and done on another", |b| {
        let queue = Plain::default();
        b.iter_custom(|count| {
            in_rounds(count, |count| {
                thread::scope(|scope| {
                    scope.spawn(|| (0..count).for_each(|_| queue.done(&queue.get())));
                    keys[..count].iter().for_each(|key| queue.add(Arc::clone(key)));
                });
            })
        });
    });
}

fn in_rounds(count: u64, mut round: impl FnMut(usize)) -> Duration {
    let started = Instant::now();
    let mut left = usize::try_from(count).expect("the count fits");
    while left > 0 {
        let count = left.min(ROUND);
        round(count);
        left -= count;
    }
    started.elapsed()
}

/// A minimal queue for comparison, with one lock.
#[derive(Default)]
struct Plain {
    state: Mutex<PlainState>,
    added: Condvar,
}

#[derive(Default)]
struct PlainState {
    order: VecDeque<Key>,
    pending: HashSet<Key>,
    running: HashSet<Key>,
}

impl Plain {
    fn add(&self, key: Key) {
        let mut state = self.state.lock().expect("no panic");
        if !state.pending.insert(Arc::clone(&key)) || state.running.contains(&key) {
            return;
        }
        state.order.push_back(key);
        self.added.notify_one();
    }

    fn get(&self) -> Key {
        let state = self.state.lock().expect("no panic");
        let mut state = self.added.wait_while(state, |state| state.order.is_empty()).expect("no panic");
        let key = state.order.pop_front().expect("the queue is not empty");
        state.pending.remove(&key);
        state.running.insert(Arc::clone(&key));
        key
    }

    fn done(&self, key: &Key) {
        let mut state = self.state.lock().expect("no panic");
        state.running.remove(key);
        if state.pending.contains(key) {
            state.order.push_back(Arc::clone(key));
            self.added.notify_one();
        }
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    one_thread(&mut criterion);
    in_use(&mut criterion);
    two_threads(&mut criterion);
    criterion.final_summary();
}
