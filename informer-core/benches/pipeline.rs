//! Measures the queue and the fan-out to handlers, in the same cases as the Go benchmarks of
//! client-go's `DeltaFIFO` and `sharedProcessor`. Run with `cargo bench -p informer-core`.

use std::any::Any;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use futures::FutureExt;
use informer_core::{
    Cached, DeltaFifo, Event, EventBatch, HandlerOptions, Handlers, KnownObjects, ObjectKey, ReflectorStore,
    Replacement, ResourceVersion, SharedProcessor, Uid,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A fast allocator, for a fair comparison: the Go benchmarks use the allocator of the Go runtime,
/// which is also fast.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of events in the batch that the fan-out benchmark publishes.
const BATCH: usize = 1_000;

fn objects(count: usize) -> Vec<Cached<u64>> {
    let object = |n: usize| {
        let key = ObjectKey::namespaced(&format!("namespace-{}", n % 50), &format!("pod-{n:06}"));
        Cached::from_parts(key, (n as u64 + 1).into(), Uid::default(), n as u64)
    };
    (0..count).map(object).collect()
}

fn queue(c: &mut Criterion) {
    let objects = objects(1_001);
    c.bench_function("queue, add and pop at depth 1", |b| {
        let queue = DeltaFifo::new();
        b.iter(|| {
            queue.add(objects[0].clone());
            black_box(queue.pop().now_or_never())
        });
    });
    c.bench_function("queue, add and pop at depth 1,000", |b| {
        let queue = DeltaFifo::new();
        objects[1..].iter().for_each(|object| queue.add(object.clone()));
        let mut next = 0;
        b.iter(|| {
            queue.add(objects[next].clone());
            next = (next + 1) % objects.len();
            black_box(queue.pop().now_or_never())
        });
    });
    c.bench_function("queue, add of 1,000 and one pop_batch, per add", |b| {
        let queue = DeltaFifo::new();
        b.iter_custom(|adds| {
            let started = Instant::now();
            for _ in 0..adds.div_ceil(1_000) {
                objects[1..].iter().for_each(|object| queue.add(object.clone()));
                black_box(queue.pop_batch().now_or_never());
            }
            started.elapsed()
        });
    });
}

/// A counter that counts down, and notifies `done` when it reaches zero.
struct Countdown {
    left: AtomicUsize,
    done: Notify,
}

impl Countdown {
    fn tick(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.done.notify_one();
        }
    }
}

fn fan_out(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let objects = objects(BATCH);
    for handlers in [1, 10, 100] {
        let processor = SharedProcessor::<u64>::new(None);
        let countdown = Arc::new(Countdown { left: AtomicUsize::new(0), done: Notify::new() });
        for _ in 0..handlers {
            let countdown = Arc::clone(&countdown);
            let handler = Handlers::new().on_update(move |_: &Cached<u64>, new| {
                black_box(new);
                countdown.tick();
            });
            processor.add_handler(handler, &HandlerOptions::default(), std::iter::empty).detach();
        }
        let shutdown = CancellationToken::new();
        let run = runtime.spawn({
            let (processor, shutdown) = (processor.clone(), shutdown.clone());
            async move { processor.run(shutdown).await }
        });
        let mut group = c.benchmark_group("fan-out of 1,000 updates");
        group.throughput(Throughput::Elements(BATCH as u64));
        group.bench_function(format!("to {handlers} handlers"), |b| {
            b.iter(|| {
                countdown.left.store(BATCH * handlers, Ordering::Relaxed);
                let update =
                    |object: &Cached<u64>| Event::Updated { old: object.clone(), new: object.clone() };
                let events = objects.iter().map(update).collect();
                processor.publish(EventBatch { events, completes_initial_list: false }, || {});
                runtime.block_on(countdown.done.notified());
            });
        });
        group.finish();
        shutdown.cancel();
        runtime.block_on(run).expect("no panic");
    }
}

/// Measures how long publishing takes while handlers are stuck. The stuck handlers are streams
/// without a reader. Each published batch has 10,000 updates.
fn stuck(c: &mut Criterion) {
    const CHANGES: usize = 100_000;
    let objects = objects(CHANGES);
    let mut group = c.benchmark_group("100,000 updates until they are in the store");
    group.sample_size(10);
    for handlers in [0, 1, 50] {
        group.bench_function(format!("with {handlers} stuck handlers"), |b| {
            b.iter_custom(|rounds| (0..rounds).map(|_| until_in_the_store(&objects, handlers)).sum());
        });
    }
    group.finish();
}

fn until_in_the_store(objects: &[Cached<u64>], handlers: usize) -> Duration {
    let processor = SharedProcessor::<u64>::new(None);
    let options = HandlerOptions::default();
    let streams: Vec<_> = (0..handlers).map(|_| processor.events(&options, std::iter::empty)).collect();
    let mut committed = Instant::now();
    let started = committed;
    for chunk in objects.chunks(10_000) {
        let update = |object: &Cached<u64>| Event::Updated { old: object.clone(), new: object.clone() };
        let events = chunk.iter().map(update).collect();
        let batch = EventBatch { events, completes_initial_list: false };
        processor.publish(batch, || committed = Instant::now());
    }
    drop(streams);
    committed - started
}

/// The objects that the queue's consumer has stored.
struct Known(BTreeMap<ObjectKey, Cached<u64>>);

impl KnownObjects<u64> for Known {
    fn known(&self, key: &ObjectKey) -> Option<Cached<u64>> {
        self.0.get(key).cloned()
    }

    fn for_each_known(&self, visit: &mut dyn FnMut(&Cached<u64>)) -> Option<Box<dyn Any + Send>> {
        self.0.values().for_each(visit);
        None
    }
}

/// Prints the longest wait of another thread for the queue's lock while 200,000 objects are
/// resynced or listed.
fn longest_waits() {
    const COUNT: usize = 200_000;
    let known = objects(COUNT).into_iter().map(|object| (object.key().clone(), object)).collect();
    let known = Arc::new(Known(known));
    let changed = |version: u64| {
        let change = |object: &Cached<u64>| {
            Cached::from_parts(
                object.key().clone(),
                (version * 1_000_000 + **object).into(),
                Uid::default(),
                0,
            )
        };
        known.0.values().map(change).collect()
    };
    let list = |objects: &Vec<Cached<u64>>, version: u64| Replacement {
        objects: objects.clone(),
        quarantined: Vec::new(),
        complete: true,
        resource_version: version.into(),
    };
    let queue = || DeltaFifo::with_known_objects(Arc::clone(&known) as Arc<dyn KnownObjects<u64>>);
    let (quiet, all): (Vec<_>, Vec<_>) = (known.0.values().cloned().collect(), changed(1));
    let report = |case: &str, act: &dyn Fn(&DeltaFifo<u64>)| {
        let waits = (0..9).map(|_| longest_wait(&queue(), act).as_secs_f64() * 1e3);
        println!("bench: {case} = {:.1} ms", waits.fold(f64::INFINITY, f64::min));
    };
    // This case is the baseline: without a list or resync, only thread scheduling causes waits.
    report("longest wait for the queue without a resync or list", &|_| {
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(100) {
            black_box(objects(100));
        }
    });
    report("longest wait for the queue during a resync", &DeltaFifo::resync);
    report("longest wait for the queue during a list without changes", &|queue| {
        queue.replace(list(&quiet, 1));
    });
    report("longest wait for the queue during a list of changes", &|queue| queue.replace(list(&all, 2)));
}

fn longest_wait(queue: &DeltaFifo<u64>, act: &dyn Fn(&DeltaFifo<u64>)) -> Duration {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let started = Instant::now();
                queue.apply(Vec::new(), &ResourceVersion::empty());
                longest = longest.max(started.elapsed());
            }
            longest
        });
        act(queue);
        is_over.store(true, Ordering::Relaxed);
        waiter.join().expect("no panic")
    })
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    queue(&mut criterion);
    fan_out(&mut criterion);
    stuck(&mut criterion);
    criterion.final_summary();
    longest_waits();
}
