//! Tests that count the allocations per event, and the memory of idle informers.

mod server;

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allocation_counter::measure;
use bytes::Bytes;
use informer_core::{AnyObject, Codec, DecodeBytes, Encoded, OwnedObject, Storage};
use informer_factory::{Handlers, SharedInformerFactory};
use informer_reflector::{PrunePaths, ReflectorConfig, WatchDecoder};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::runtime::Runtime;

use server::Server;

/// The number of events in one piece of a watch response.
const EVENTS: usize = 200;

fn factory(server: &Server) -> SharedInformerFactory {
    let lists = ReflectorConfig::new().streaming_lists(false);
    SharedInformerFactory::builder(server.client()).reflector(lists).build()
}

/// Returns a runtime with one thread, because allocations are counted per thread.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the runtime starts")
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

/// Returns a piece of a watch response, with one event for each of [`EVENTS`] config maps.
fn piece(event_type: &str, round: usize) -> Bytes {
    let mut piece = String::new();
    for number in 0..EVENTS {
        let version = (round + 1) * 1_000 + number;
        let metadata =
            format!(r#"{{"namespace":"shop","name":"map-{number}","resourceVersion":"{version}"}}"#);
        let data = r#"{"colour":"green","size":"large"}"#;
        let object =
            format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{metadata},"data":{data}}}"#);
        writeln!(piece, r#"{{"type":"{event_type}","object":{object}}}"#)
            .expect("a write to a string succeeds");
    }
    piece.into()
}

#[test]
fn event_costs_two_allocations_besides_its_object() {
    let (server, runtime, received) = (Server::default(), runtime(), Arc::new(AtomicUsize::new(0)));
    let _entered = runtime.enter();
    let factory = factory(&server);
    let counter = Arc::clone(&received);
    let count = move || {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let (added, updated) = (count.clone(), count);
    let handler = Handlers::new().on_add(move |_, _| added()).on_update(move |_, _| updated());
    let _registration = factory.informer::<ConfigMap>().add_event_handler(handler);
    let send = |event_type: &str, round: usize| {
        let piece = piece(event_type, round);
        let sent = measure(|| {
            server.send(&piece);
            runtime.block_on(until(|| received.load(Ordering::Relaxed) == (round + 1) * EVENTS));
        });
        sent.count_total
    };
    runtime.block_on(async {
        factory.start();
        factory.wait_for_cache_sync().await.expect("the informer syncs");
        until(|| server.watches() == 1).await;
    });
    send("ADDED", 0);
    send("MODIFIED", 1);
    let all = send("MODIFIED", 2);

    let piece = piece("MODIFIED", 2);
    let mut decoder = WatchDecoder::<ConfigMap>::new(PrunePaths::default());
    let objects = measure(|| drop(decoder.push(&piece).expect("the events are valid"))).count_total;
    let per_event = (all - objects) as f64 / EVENTS as f64;
    println!("allocations per event, besides its object: {per_event:.2}");
    assert!(per_event <= 2.0, "{per_event}");
}

struct NeverRead;

impl DecodeBytes for NeverRead {
    fn object(&self, _: &[u8]) -> OwnedObject<AnyObject> {
        unreachable!("the test reads no object")
    }
}

#[test]
fn compressed_objects_of_a_family_leave_nothing_in_memory() {
    let codec = Arc::new(Codec::new(NeverRead, Storage::Compressed));
    let store = |family: &str| Encoded::new(&[7; 100_000], family, Arc::clone(&codec));
    drop(store("of the common base"));
    let left = measure(|| drop(["web"; 3].map(store))).bytes_current;
    assert!(left < 1_000, "{left} bytes");
}

#[test]
fn thousand_idle_informers_use_50_kb_each_and_receive_events() {
    const INFORMERS: usize = 1_000;
    let (server, runtime, received) = (Server::default(), runtime(), Arc::new(AtomicUsize::new(0)));
    let _entered = runtime.enter();
    let factory = factory(&server);
    let mut registrations = Vec::with_capacity(INFORMERS);
    let idle = measure(|| {
        for number in 0..INFORMERS {
            let received = Arc::clone(&received);
            let informer = factory.in_namespace(&format!("team-{number}")).informer::<ConfigMap>();
            registrations.push(informer.add_event_handler(Handlers::new().on_add(move |_, _| {
                received.fetch_add(1, Ordering::Relaxed);
            })));
        }
        runtime.block_on(async {
            factory.start();
            factory.wait_for_cache_sync().await.expect("the informers sync");
            until(|| server.watches() == INFORMERS).await;
        });
    });
    let per_informer = idle.bytes_current / INFORMERS as i64;
    println!("bytes per idle informer: {per_informer}");
    assert!(per_informer < 50_000, "{per_informer}");

    server.send(&piece("ADDED", 0));
    runtime.block_on(until(|| received.load(Ordering::Relaxed) == INFORMERS * EVENTS));
}
