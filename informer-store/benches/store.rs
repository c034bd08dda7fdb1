//! Measures the store with 100,000 pods, an index by namespace and an index by node. The Go
//! benchmarks of client-go's `ThreadSafeStore` measure the same cases. Run with `cargo bench -p
//! informer-store`.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use criterion::Criterion;
use informer_core::{Cached, ObjectKey};
use informer_store::{Change, Index, Indexer, StoreWriter, store};
use k8s_openapi::api::core::v1::{Pod, PodSpec};

const PODS: u64 = 100_000;
/// The number of nodes; each has 500 pods.
const NODES: u64 = 200;

fn pod(n: u64, version: u64, node: u64) -> Cached<Pod> {
    let mut pod = Pod::default();
    pod.metadata.namespace = Some(format!("namespace-{}", n % 50));
    pod.metadata.name = Some(format!("deployment-7d9f8b6c5d-{n:06}"));
    pod.metadata.uid = Some(format!("0f7e3c1a-9b2d-4c5e-8f60-{n:012x}"));
    pod.metadata.resource_version = Some(version.to_string());
    pod.spec = Some(PodSpec { node_name: Some(format!("node-{node}")), ..PodSpec::default() });
    Cached::new(pod).expect("the pod has a name")
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
}

struct Filled {
    writer: StoreWriter<Pod>,
    indexer: Indexer<Pod>,
    by_node: Index<Pod, String>,
    version: u64,
}

impl Filled {
    fn new() -> Self {
        let (mut writer, indexer) = store::<Pod>();
        let by_node = indexer.add_index("node", node_of).expect("a free name");
        writer.replace((0..PODS).map(|n| pod(n, n + 1, n % NODES)).collect(), &PODS.into());
        Self { writer, indexer, by_node, version: PODS }
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }
}

fn reads(c: &mut Criterion, filled: &Filled) {
    let keys: Vec<ObjectKey> = filled.indexer.keys();
    let mut position = 0;
    c.bench_function("get by key", |b| {
        b.iter(|| {
            // The stride and the number of keys have no common divisor, so every key is visited.
            position = (position + 7_919) % keys.len();
            black_box(filled.indexer.get(&keys[position]))
        });
    });
    c.bench_function("get by key, in the order of the list", |b| {
        b.iter(|| {
            position = (position + 1) % keys.len();
            black_box(filled.indexer.get(&keys[position]))
        });
    });
    c.bench_function("get by key, among 1,000", |b| {
        b.iter(|| {
            position = (position + 337) % 1_000;
            black_box(filled.indexer.get(&keys[position]))
        });
    });
    let handles = filled.indexer.list().to_vec();
    c.bench_function("for comparison: a handle copied out of a vector of 100,000", |b| {
        b.iter(|| {
            position = (position + 7_919) % handles.len();
            black_box(handles[position].clone())
        });
    });
    c.bench_function("by_index with 500 results, each visited", |b| {
        b.iter(|| {
            position = (position + 1) % NODES as usize;
            let found = filled.by_node.get(format!("node-{position}").as_str());
            assert_eq!(found.len(), 500);
            found.iter().fold(0, |sum, pod| sum ^ black_box(pod).key().hash_value())
        });
    });
    c.bench_function("by_index with 500 results, as a list", |b| {
        b.iter(|| black_box(filled.by_node.get("node-77")).iter().count());
    });
    c.bench_function("list of 100,000, iterated", |b| {
        b.iter(|| filled.indexer.list().iter().map(black_box).count());
    });
    c.bench_function("list of 100,000, handles copied", |b| b.iter(|| filled.indexer.list().to_vec().len()));
}

fn writes(c: &mut Criterion, filled: &mut Filled) {
    let (mut n, mut node) = (0, 0);
    for (name, move_node) in [("update, index value unchanged", 0), ("update, index value changed", 1)] {
        c.bench_function(name, |b| {
            b.iter_custom(|updates| {
                let mut taken = Duration::ZERO;
                for update in 0..updates.div_ceil(1_000) {
                    // The updates are created outside the measurement, a thousand at a time.
                    let count = 1_000.min(updates - update * 1_000);
                    let mut objects = Vec::new();
                    for _ in 0..count {
                        n = (n + 7_919) % PODS;
                        node = (node + move_node) % NODES;
                        objects.push(pod(n, filled.next_version(), (n + node) % NODES));
                    }
                    // Events of an informer keep the old objects, so the measurement does not
                    // include their release.
                    let _old: Vec<_> =
                        objects.iter().map(|object| filled.indexer.get(object.key())).collect();
                    let started = Instant::now();
                    for object in objects {
                        filled.writer.transaction(vec![Change::Put(object)], None);
                    }
                    taken += started.elapsed();
                }
                taken
            });
        });
    }
}

fn replaces(c: &mut Criterion, filled: &mut Filled) {
    let mut group = c.benchmark_group("replace of 100,000");
    group.sample_size(10);
    for (name, same) in [("all changed", false), ("none changed", true)] {
        group.bench_function(name, |b| {
            b.iter_custom(|replaces| {
                let mut taken = Duration::ZERO;
                for _ in 0..replaces {
                    let version = filled.next_version();
                    let objects: Vec<Cached<Pod>> = if same {
                        let copy =
                            |old: &Cached<Pod>| Cached::new((**old).clone()).expect("the pod has a name");
                        filled.indexer.list().iter().map(copy).collect()
                    } else {
                        (0..PODS).map(|n| pod(n, version, n % NODES)).collect()
                    };
                    // Replaced and unused objects are kept, so that freeing them is not measured.
                    let _kept = (objects.clone(), filled.indexer.list().to_vec());
                    let started = Instant::now();
                    filled.writer.replace(objects, &version.into());
                    taken += started.elapsed();
                }
                taken
            });
        });
    }
    group.finish();
}

/// The duration of a reader's longest get, with and without waits for a CPU core.
#[derive(Default, Clone, Copy)]
struct Waits {
    /// The duration of the longest get, without waits for a CPU core.
    longest: Duration,
    longest_wall_clock: Duration,
}

/// Returns the time in which this thread waited for a CPU core, as Linux reports it; zero on other
/// systems.
fn waited_for_a_core() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split_whitespace().nth(1).and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// Reads one object repeatedly while `meanwhile` runs, and returns the duration of the longest get.
fn read_while(filled: &mut Filled, meanwhile: impl FnOnce(&mut Filled)) -> Waits {
    let key = filled.indexer.keys()[0].clone();
    let stop = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (indexer, stop) = (filled.indexer.clone(), Arc::clone(&stop));
        move || {
            let (mut waits, mut no_core) = (Waits::default(), waited_for_a_core());
            while !stop.load(Ordering::Relaxed) {
                let started = Instant::now();
                black_box(indexer.get(&key));
                let taken = started.elapsed();
                if taken > Duration::from_micros(20) {
                    // The difference also includes waits between the last check and this get, so
                    // the result can be slightly too low.
                    let before = std::mem::replace(&mut no_core, waited_for_a_core());
                    waits.longest = waits.longest.max(taken.saturating_sub(no_core - before));
                    waits.longest_wall_clock = waits.longest_wall_clock.max(taken);
                }
            }
            waits
        }
    });
    meanwhile(filled);
    stop.store(true, Ordering::Relaxed);
    reader.join().unwrap_or_default()
}

/// Measures the longest wait of a reader while all objects are replaced. The first three cases are
/// for comparison: the store does not change, so the machine causes their waits.
fn stall(filled: &mut Filled) {
    let everything = |filled: &mut Filled| {
        let version = filled.next_version();
        (0..PODS).map(|n| pod(n, version, n % NODES)).collect::<Vec<_>>()
    };
    let second = Duration::from_secs(1);
    type Meanwhile<'a> = Box<dyn FnOnce(&mut Filled) + 'a>;
    let cases: [(&str, Meanwhile<'_>); 4] = [
        ("nothing else runs", Box::new(move |_| std::thread::park_timeout(second))),
        (
            "a thread computes",
            Box::new(move |_| {
                let started = Instant::now();
                while started.elapsed() < second {
                    black_box((0..1_000_u64).fold(1, |product, n| product * black_box(n)));
                }
            }),
        ),
        (
            "100,000 objects are created and freed five times",
            Box::new(move |filled| {
                (0..5).for_each(|_| drop(black_box(everything(filled))));
            }),
        ),
        (
            "five replaces run",
            Box::new(move |filled| {
                for _ in 0..5 {
                    let objects = everything(filled);
                    let version = filled.version;
                    filled.writer.replace(objects, &version.into());
                }
            }),
        ),
    ];
    for (name, meanwhile) in cases {
        let Waits { longest, longest_wall_clock } = read_while(filled, meanwhile);
        println!("longest get while {name}: {longest:.1?}");
        println!("longest get while {name}, including waits for a core: {longest_wall_clock:.1?}");
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut filled = Filled::new();
    reads(&mut criterion, &filled);
    writes(&mut criterion, &mut filled);
    replaces(&mut criterion, &mut filled);
    stall(&mut filled);
    criterion.final_summary();
}
