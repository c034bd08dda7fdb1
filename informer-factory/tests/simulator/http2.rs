//! Informers over HTTP/2: many watches on one connection, which the server may end with GOAWAY at
//! any time.

use std::collections::BTreeMap;

use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use informer_factory::{Cached, SharedInformerFactory, WaitOutcome};
use informer_testing::{RequestFilter, Simulator};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::client::{Body, ConfigExt};
use tower::ServiceBuilder;

use crate::{TIMEOUT, pod, versions_of_pods, within};

/// Returns a client that uses only HTTP/2. kube's own client supports only HTTP/1.1.
fn client(simulator: &Simulator) -> Client {
    let http = legacy::Client::builder(TokioExecutor::new()).http2_only(true).build_http::<Body>();
    let base = simulator.kube_config().base_uri_layer();
    Client::new(ServiceBuilder::new().layer(base).service(http), "default")
}

#[tokio::test]
async fn goaway_loses_no_events() {
    let builder = Simulator::builder().built_in_kinds().goaway_chance(0.3);
    let simulator = builder.start().await.expect("a free port");
    let factory = SharedInformerFactory::new(client(&simulator));
    let pods = factory.core().v1().pods();
    let _others = (factory.core().v1().nodes(), factory.core().v1().services());
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    for number in 0..40 {
        let created = simulator.create(&pod(&format!("p-{number}"), "n1")).expect("a new pod");
        match number % 4 {
            0 => simulator.drain_connections(),
            1 => simulator.close_watches(),
            2 => drop(simulator.delete::<Pod>(&format!("shop/p-{}", number / 2))),
            _ => {}
        }
        let version = created.resource_version().to_string().as_str().into();
        assert_eq!(pods.wait_until(&version, TIMEOUT).await, WaitOutcome::Reached);
    }
    let known = |pod: &Cached<Pod>| (pod.key().to_string(), pod.resource_version().to_string());
    let known: BTreeMap<_, _> = pods.indexer().list().iter().map(known).collect();
    assert_eq!(known, versions_of_pods(&simulator));
    factory.shutdown().await;
    let requests = simulator.requests(&RequestFilter::any());
    assert!(requests.iter().all(|request| request.version == http::Version::HTTP_2));
}

#[tokio::test]
async fn watch_continues_on_a_draining_connection() {
    let simulator = crate::simulator().await;
    let factory = SharedInformerFactory::new(client(&simulator));
    let pods = factory.core().v1().pods();
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    let requests = simulator.request_count(&RequestFilter::any());
    simulator.drain_connections();
    let created = simulator.create(&pod("p", "n1")).expect("a new pod");
    let version = created.resource_version().to_string().as_str().into();
    assert_eq!(pods.wait_until(&version, TIMEOUT).await, WaitOutcome::Reached);
    assert_eq!(pods.indexer().len(), versions_of_pods(&simulator).len());
    assert_eq!(simulator.request_count(&RequestFilter::any()), requests, "no request was repeated");
    factory.shutdown().await;
}
