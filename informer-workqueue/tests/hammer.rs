//! A stress test on several threads. Producers add keys in every way. Workers end items in every
//! way; some panic, or are cancelled while they wait or while they have an item. Two workers never
//! have the same key, and in the end each key has been processed after its last add.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use futures::FutureExt;
use informer_workqueue::{Item, ItemExponential, Priority, Workqueue};
use tokio::sync::Notify;
use tokio::task::JoinSet;

const KEYS: usize = 200;
const PRODUCERS: usize = 8;
const WORKERS: usize = 8;
const ADDS: u64 = 20_000;
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Default)]
struct Key {
    /// The number of adds of the key; incremented before each add.
    wanted: AtomicU64,
    /// The value of `wanted` at the time at which the last successfully processed item was taken.
    reached: AtomicU64,
    is_busy: AtomicBool,
}

struct World {
    queue: Workqueue<usize>,
    keys: Vec<Key>,
    producing: AtomicUsize,
    taken: AtomicU64,
    failed: AtomicU64,
    /// Notified after each successfully processed item, and when a producer has ended.
    progress: Notify,
}

impl World {
    fn is_settled(&self) -> bool {
        let is_reached = |key: &Key| key.wanted.load(SeqCst) == key.reached.load(SeqCst);
        self.producing.load(SeqCst) == 0 && self.keys.iter().all(is_reached)
    }

    /// Adds keys from a thread without a runtime.
    fn produce(&self, producer: u64) {
        let mut random = Random(producer + 1);
        for _ in 0..ADDS {
            let n = random.below(KEYS as u64) as usize;
            self.keys[n].wanted.fetch_add(1, SeqCst);
            match random.below(20) {
                0 => self.queue.add_after(n, Duration::from_micros(random.below(3_000))),
                1 => _ = self.queue.add_rate_limited(n),
                2..6 => self.queue.add_with_priority(n, Priority::Low),
                6 => self.queue.add_with_priority(n, Priority::High),
                _ => self.queue.add(n),
            }
        }
        self.producing.fetch_sub(1, SeqCst);
        self.progress.notify_one();
    }

    async fn work(&self, worker: u64) {
        let mut random = Random(1_000 + worker);
        loop {
            // Sometimes the worker does not wait for an item, and sometimes it cancels its wait.
            let item = match random.below(10) {
                0 => self.queue.get().now_or_never(),
                1 => {
                    tokio::select! {
                        biased;
                        item = self.queue.get() => Some(item),
                        () = tokio::task::yield_now() => None,
                    }
                }
                _ => Some(self.queue.get().await),
            };
            match item {
                None => tokio::task::yield_now().await,
                Some(None) => return,
                Some(Some(item)) => {
                    let process = AssertUnwindSafe(self.process(item, &mut random));
                    _ = process.catch_unwind().await;
                }
            }
        }
    }

    async fn process(&self, item: Item<usize>, random: &mut Random) {
        let key = &self.keys[*item.key()];
        assert!(!key.is_busy.swap(true, SeqCst), "two workers have {}", item.key());
        self.taken.fetch_add(1, SeqCst);
        let wanted = key.wanted.load(SeqCst);
        if random.below(4) == 0 {
            tokio::task::yield_now().await;
        }
        key.is_busy.store(false, SeqCst);
        let fails = random.below(20);
        if fails < 3 {
            self.failed.fetch_add(1, SeqCst);
        }
        match fails {
            0 => _ = item.retry(),
            1 => drop(item),
            // Unwinds without printing a panic message.
            2 => std::panic::resume_unwind(Box::new(item)),
            _ => {
                key.reached.store(wanted, SeqCst);
                if random.below(50) == 0 {
                    item.done_after(Duration::from_micros(500));
                } else {
                    item.done();
                }
                self.progress.notify_one();
            }
        }
    }
}

/// A seeded pseudo-random generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

async fn hammer(queue: Workqueue<usize>) {
    let world = Arc::new(World {
        queue,
        keys: (0..KEYS).map(|_| Key::default()).collect(),
        producing: AtomicUsize::new(PRODUCERS),
        taken: AtomicU64::new(0),
        failed: AtomicU64::new(0),
        progress: Notify::new(),
    });
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let world = Arc::clone(&world);
        workers.spawn(async move { world.work(worker as u64).await });
    }
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let world = Arc::clone(&world);
            std::thread::spawn(move || world.produce(producer as u64))
        })
        .collect();
    while !world.is_settled() {
        world.progress.notified().await;
    }
    assert!(world.queue.shut_down_with_drain().await);
    while let Some(worker) = workers.join_next().await {
        worker.expect("a worker ends when the queue is drained");
    }
    producers.into_iter().for_each(|producer| producer.join().expect("no panic"));
    assert!(world.is_settled(), "a drain loses no keys");
    assert!(world.queue.is_empty() && world.queue.delayed() == 0);
    let (taken, failed) = (world.taken.load(SeqCst), world.failed.load(SeqCst));
    assert!(taken >= KEYS as u64 && failed > 0);
    // Of the three kinds of failures, two count as abandoned: dropped items and panics.
    assert!((1..=failed).contains(&world.queue.abandoned()));
}

fn limiter() -> ItemExponential<usize> {
    ItemExponential::new(Duration::from_micros(10), Duration::from_millis(2))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hammered_keys_are_processed_after_their_last_add() {
    let queue = Workqueue::builder().rate_limiter(limiter()).build();
    tokio::time::timeout(LIMIT, hammer(queue)).await.expect("every key is processed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hammered_keys_in_groups_are_processed_after_their_last_add() {
    let groups: Vec<usize> = (0..KEYS).map(|key| key % 7).collect();
    let groups: &'static [usize] = groups.leak();
    let queue = Workqueue::builder().rate_limiter(limiter()).fair_by(|key| &groups[*key]).build();
    tokio::time::timeout(LIMIT, hammer(queue)).await.expect("every key is processed");
}
