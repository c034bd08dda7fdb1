//! Measures the throughput of a whole informer: prepared watch events pass through reflector, queue
//! and store, with an index by namespace and one by node, to handlers that count the events.
//! `cargo bench -p informer-factory --bench informer`; `-- --quick` for a rough result; other
//! arguments select cases by name.
//!
//! The new versions of the objects are allocated before the measurement. The measurement includes
//! the creation of keys and the freeing of replaced versions. The source returns batches of 1, 100
//! or 1,000 events; client-go's fake watcher returns single events.

mod prepared;

use informer_core::HandlerOptions;
use k8s_openapi::api::core::v1::Pod;
use prepared::{Bench, KEYS, Placement, Sample, Updates, median, report};

/// The allocator is mimalloc, because the system's allocator is slow for large objects that one
/// thread allocates and another thread frees.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Effort {
    rounds: usize,
    /// Divides the number of updates, so that a quick run takes less time.
    divisor: usize,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let quick = args.iter().any(|arg| arg == "--quick");
    let words: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    let is_wanted = |case: &str| words.is_empty() || words.iter().any(|word| case.contains(word.as_str()));
    let effort = if quick { Effort { rounds: 1, divisor: 5 } } else { Effort { rounds: 3, divisor: 1 } };
    for (handlers, updates) in [(1, 200_000), (10, 200_000), (100, 100_000)] {
        let updates = updates / effort.divisor;
        for batch in [1, 100, 1_000] {
            let case = format!("informer to {handlers} handlers, batches of {batch}");
            if is_wanted(&case) {
                report(&case, every_update::<Pod>(handlers, batch, updates, &effort), "events/s");
            }
            let case = format!("informer of slim views to {handlers} handlers, batches of {batch}");
            if is_wanted(&case) {
                report(&case, every_update::<Placement>(handlers, batch, updates, &effort), "events/s");
            }
        }
        let case = format!("informer to {handlers} handlers, up to date");
        if is_wanted(&case) {
            report(&case, last_versions(handlers, updates, &effort), "events/s");
        }
    }
}

/// Measures an informer that does not coalesce updates, so that each handler receives each update.
/// Returns the updates per second.
fn every_update<K: Sample>(handlers: usize, batch: usize, updates: usize, effort: &Effort) -> f64 {
    let bench = Bench::<K>::start(handlers, &HandlerOptions::default().threshold(None), |_| {});
    let mut source = Updates::new();
    let mut speed = || {
        let round = source.round(updates, batch);
        updates as f64 / bench.deliver(round, 0, updates).as_secs_f64()
    };
    // The first round does not count, because in that round the allocator requests memory from the
    // system.
    speed();
    let speed = median((0..effort.rounds).map(|_| speed()).collect());
    bench.stop();
    speed
}

/// Measures an informer with the default coalescing threshold. Returns the number of updates per
/// second until each handler has the latest version of each object.
fn last_versions(handlers: usize, updates: usize, effort: &Effort) -> f64 {
    let bench = Bench::<Pod>::start(handlers, &HandlerOptions::default(), |_| {});
    let mut source = Updates::new();
    let updates = updates.next_multiple_of(KEYS as usize);
    let mut speed = || {
        let round = source.round(updates, 1_000);
        updates as f64 / bench.deliver(round, source.version - KEYS, KEYS as usize).as_secs_f64()
    };
    speed();
    let speed = median((0..effort.rounds).map(|_| speed()).collect());
    bench.stop();
    speed
}
