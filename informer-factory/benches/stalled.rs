//! Measures the cost of one stalled handler among ten: a million updates of 10,000 pods, while one
//! handler does not return from its call. `cargo bench -p informer-factory --bench stalled`;
//! `-- --quick` for a rough result.
//!
//! The benchmark compares two runs: nine handlers with a stalled one, and ten handlers that do not
//! stall. It compares the throughput of the handlers that do not stall, and the allocated bytes of
//! the process. The difference in bytes is the memory of the stalled handler. The source returns
//! one event at a time, like client-go's fake watcher.

mod prepared;

use std::sync::{Mutex, PoisonError, mpsc};

use informer_core::{EventHandler, HandlerOptions};
use informer_factory::Cached;
use k8s_openapi::api::core::v1::Pod;
use peak_alloc::PeakAlloc;
use prepared::{Bench, Placement, Sample, Updates, median, report};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// A handler whose calls block until `release` is closed.
struct Stalled {
    entered: mpsc::SyncSender<()>,
    release: Mutex<mpsc::Receiver<()>>,
}

impl<K: 'static> EventHandler<K> for Stalled {
    fn on_update(&self, _old: &Cached<K>, _new: &Cached<K>) {
        // `block_in_place` moves the other tasks of this thread to another thread, so that the
        // handler does not block them.
        tokio::task::block_in_place(|| {
            // Errors are ignored: `try_send` can fail after the first call, and `recv` fails when the
            // measurement is over.
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
    let with_old = HandlerOptions::default();
    let no_old = HandlerOptions::default().coalesce_drops_old();
    measure::<Pod>("stalled handler", &with_old, updates, rounds);
    measure::<Pod>("stalled handler that drops old states", &no_old, updates, rounds);
    measure::<Placement>("stalled handler of slim views", &with_old, updates, rounds);
    measure::<Placement>("stalled handler of slim views that drops old states", &no_old, updates, rounds);
}

fn measure<K: Sample>(case: &str, options: &HandlerOptions, updates: usize, rounds: usize) {
    let (mut held, mut speeds) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let without = ten_that_keep_up::<K>(updates);
        let with = nine_and_a_stalled_one::<K>(options, updates);
        held.push(with.bytes as f64 - without.bytes as f64);
        speeds.push(100.0 * with.speed / without.speed);
    }
    report(&format!("{case}, memory"), median(held) / 1e6, "MB");
    report(&format!("{case}, speed of the nine others"), median(speeds), "% of ten that keep up");
}

fn ten_that_keep_up<K: Sample>(updates: usize) -> Outcome {
    let bench = Bench::<K>::start(10, &HandlerOptions::default().threshold(None), |_| {});
    let outcome = run(&bench, updates);
    bench.stop();
    outcome
}

fn nine_and_a_stalled_one<K: Sample>(options: &HandlerOptions, updates: usize) -> Outcome {
    let (entered, has_entered) = mpsc::sync_channel(1);
    let (release, released) = mpsc::channel();
    let stalled = Stalled { entered, release: Mutex::new(released) };
    let bench = Bench::<K>::start(9, &HandlerOptions::default().threshold(None), |informer| {
        informer.add_event_handler_with(stalled, options).detach();
    });
    let outcome = run(&bench, updates);
    has_entered.recv().expect("the stalled handler is called");
    drop(release);
    bench.stop();
    outcome
}

/// Delivers all updates. Returns the throughput, and the number of bytes that are still allocated
/// after the delivery.
fn run<K: Sample>(bench: &Bench<K>, updates: usize) -> Outcome {
    const CHUNK: usize = 50_000;
    let mut source = Updates::new();
    let mut seconds = 0.0;
    for _ in 0..updates / CHUNK {
        seconds += bench.deliver(source.round(CHUNK, 1), 0, CHUNK).as_secs_f64();
    }
    Outcome { bytes: ALLOCATED.current_usage(), speed: updates as f64 / seconds }
}
