//! What one stalled handler among ten costs: a million updates to 10,000 pods, while one handler does not return from
//! its call. `cargo bench -p informer-factory --bench stalled`; `-- --quick` for a glance.
//!
//! Counts the bytes that are allocated when the nine others have heard of everything, with the stall and without, and
//! how fast they have. The difference is what the stalled handler holds: for each key the version that it was last told
//! of, which nothing else holds any more, and an entry. The former is told apart by what such an object takes.

mod prepared;

use std::sync::{Mutex, PoisonError, mpsc};

use informer_core::{EventHandler, HandlerOptions};
use informer_factory::Cached;
use k8s_openapi::api::core::v1::Pod;
use peak_alloc::PeakAlloc;
use prepared::{Bench, KEYS, Placement, Sample, Updates, median, report};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Returns from none of its calls before it is released.
struct Stalled {
    entered: mpsc::SyncSender<()>,
    release: Mutex<mpsc::Receiver<()>>,
}

impl<K: 'static> EventHandler<K> for Stalled {
    fn on_update(&self, _old: &Cached<K>, _new: &Cached<K>) {
        // The runtime gives the other tasks of this thread to another one. A handler that blocks without telling it
        // would take one of its threads.
        tokio::task::block_in_place(|| {
            // Both fail only when the run is over.
            _ = self.entered.try_send(());
            _ = self.release.lock().unwrap_or_else(PoisonError::into_inner).recv();
        });
    }
}

struct Outcome {
    bytes: usize,
    speed: f64,
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (updates, rounds) = if quick { (100_000, 1) } else { (1_000_000, 3) };
    measure::<Pod>("stalled handler", updates, rounds);
    measure::<Placement>("stalled handler of slim views", updates, rounds);
}

fn measure<K: Sample>(case: &str, updates: usize, rounds: usize) {
    let (mut held, mut speeds) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (without, with) = (ten_that_keep_up::<K>(updates), nine_and_a_stalled_one::<K>(updates));
        held.push(with.bytes as f64 - without.bytes as f64);
        speeds.push(100.0 * with.speed / without.speed);
    }
    let held = median(held);
    report(&format!("{case}, memory"), held / 1e6, "MB");
    let beyond = held - KEYS as f64 * bytes_of_an_object::<K>();
    report(&format!("{case}, memory beyond the objects it was last told of"), beyond / 1e6, "MB");
    report(&format!("{case}, speed of the nine others"), median(speeds), "% of ten that keep up");
}

fn ten_that_keep_up<K: Sample>(updates: usize) -> Outcome {
    let bench = Bench::<K>::start(10, &HandlerOptions::default().threshold(None), |_| {});
    let outcome = run(&bench, updates);
    bench.stop();
    outcome
}

fn nine_and_a_stalled_one<K: Sample>(updates: usize) -> Outcome {
    let (entered, has_entered) = mpsc::sync_channel(1);
    let (release, released) = mpsc::channel();
    let stalled = Stalled { entered, release: Mutex::new(released) };
    let bench = Bench::<K>::start(9, &HandlerOptions::default().threshold(None), |informer| {
        informer.add_event_handler(stalled).detach();
    });
    let outcome = run(&bench, updates);
    has_entered.recv().expect("it is called");
    drop(release);
    bench.stop();
    outcome
}

/// Delivers all the updates, and counts what is allocated then.
fn run<K: Sample>(bench: &Bench<K>, updates: usize) -> Outcome {
    const CHUNK: usize = 50_000;
    let mut source = Updates::new();
    let mut seconds = 0.0;
    for _ in 0..updates / CHUNK {
        seconds += bench.deliver(source.round(CHUNK, 1_000), 0, CHUNK).as_secs_f64();
    }
    Outcome { bytes: ALLOCATED.current_usage(), speed: updates as f64 / seconds }
}

/// What an object takes in the cache, key included.
fn bytes_of_an_object<K: Sample>() -> f64 {
    const COUNT: usize = 1_000;
    let before = ALLOCATED.current_usage();
    let objects: Vec<_> =
        (0..COUNT as u64).map(|n| Cached::new(K::sample(n, n + 1)).expect("a name")).collect();
    let taken = ALLOCATED.current_usage() - before - COUNT * size_of::<Cached<K>>();
    drop(objects);
    taken as f64 / COUNT as f64
}
