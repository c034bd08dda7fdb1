//! Measures the benefit and the cost of a label index, with 100,000 pods of 200 deployments in 50
//! namespaces. Each pod has five labels, one of them with a unique value, like the pods of a
//! `StatefulSet`. Run with `cargo bench -p informer-store --bench labels`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;
use informer_core::Cached;
use informer_store::{Change, Indexer, LABEL_INDEX, Lister, StoreWriter, parse_selector, store};
use k8s_openapi::api::core::v1::Pod;

const PODS: u64 = 100_000;
/// The number of deployments; each has 500 pods.
const DEPLOYMENTS: u64 = 200;

fn pod(n: u64, version: u64, deployment: u64) -> Cached<Pod> {
    let mut pod = Pod::default();
    pod.metadata.namespace = Some(format!("namespace-{}", n % 50));
    pod.metadata.name = Some(format!("deployment-7d9f8b6c5d-{n:06}"));
    pod.metadata.resource_version = Some(version.to_string());
    let labels = [
        ("app.kubernetes.io/name", format!("deployment-{deployment}")),
        ("app.kubernetes.io/part-of", format!("product-{}", deployment % 10)),
        ("pod-template-hash", format!("7d9f8b{deployment:04x}")),
        ("statefulset.kubernetes.io/pod-name", format!("deployment-7d9f8b6c5d-{n:06}")),
        ("tier", if n.is_multiple_of(2) { "front" } else { "back" }.to_owned()),
    ];
    pod.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value)).into());
    Cached::new(pod).expect("the pod has a name")
}

struct Filled {
    writer: StoreWriter<Pod>,
    indexer: Indexer<Pod>,
    version: u64,
}

impl Filled {
    fn new() -> Self {
        let (mut writer, indexer) = store::<Pod>();
        // The pods are added in a scattered order, because after a long time with many changes, the
        // order of the objects in a store is arbitrary.
        let pods =
            (0..PODS).map(|n| n * 7_919 % PODS).map(|n| pod(n, n + 1, n / 500 % DEPLOYMENTS)).collect();
        writer.replace(pods, &PODS.into());
        Self { writer, indexer, version: PODS }
    }
}

fn reads(c: &mut Criterion, indexer: &Indexer<Pod>, with: &str) {
    let pods = Lister::new(indexer.clone());
    for (what, text, namespace, count) in [
        ("equal, 500 match", "app.kubernetes.io/name=deployment-77", None, 500),
        ("in, 1,000 match", "app.kubernetes.io/name in (deployment-7, deployment-77)", None, 1_000),
        ("two equal, 250 match", "app.kubernetes.io/name=deployment-77,tier=front", None, 250),
        ("equal and not equal, 250 match", "app.kubernetes.io/name=deployment-77,tier!=front", None, 250),
        ("equal in a namespace, 200 match", "app.kubernetes.io/part-of=product-7", Some("namespace-7"), 200),
        ("equal, half of all match", "tier=front", None, 50_000),
    ] {
        let selector = parse_selector(text).expect("a selector");
        c.bench_function(&format!("{what}, {with}"), |b| {
            b.iter(|| {
                let found = match namespace {
                    Some(namespace) => pods.namespace(namespace).list(&selector),
                    None => pods.list(&selector),
                };
                assert_eq!(found.len(), count);
                black_box(found)
            });
        });
    }
}

fn writes(c: &mut Criterion, filled: &mut Filled, with: &str) {
    let mut n = 0;
    c.bench_function(&format!("update, same labels, {with}"), |b| {
        b.iter_custom(|updates| {
            let mut taken = Duration::ZERO;
            for update in 0..updates.div_ceil(1_000) {
                // The updates are created outside the measurement, a thousand at a time.
                let count = 1_000.min(updates - update * 1_000);
                let mut objects = Vec::new();
                for _ in 0..count {
                    n = (n + 7_919) % PODS;
                    filled.version += 1;
                    objects.push(pod(n, filled.version, n / 500 % DEPLOYMENTS));
                }
                let _old: Vec<_> = objects.iter().map(|object| filled.indexer.get(object.key())).collect();
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

/// Returns the resident memory of this process in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4_096
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .configure_from_args();
    let mut filled = Filled::new();
    let (before, started) = (resident(), Instant::now());
    filled.indexer.add_label_index().expect("a free name");
    let (taken, grown) = (started.elapsed(), resident().saturating_sub(before));
    println!("adding the index: {taken:?}, {} bytes per pod", grown / PODS);
    reads(&mut criterion, &filled.indexer, "with");
    writes(&mut criterion, &mut filled, "with");
    filled.indexer.remove_index(LABEL_INDEX).expect("the index exists");
    reads(&mut criterion, &filled.indexer, "without");
    writes(&mut criterion, &mut filled, "without");
    criterion.final_summary();
}
