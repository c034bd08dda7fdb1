//! The health endpoints, on the API server simulator.
#![cfg(feature = "router")]

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use informer_factory::SharedInformerFactory;
use informer_monitor::router;
use informer_testing::{CannedResponse, RequestFilter, Simulator};
use prometheus_client::registry::Registry;
use tower::ServiceExt;

async fn get(factory: &SharedInformerFactory, path: &str) -> (StatusCode, String) {
    let request = Request::get(path).body(Body::empty()).expect("a path");
    let response = router(factory, Registry::default()).oneshot(request).await.expect("infallible");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn program_is_ready_when_its_informers_are_synced() {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    let ok = |informers: usize| {
        (StatusCode::OK, format!("{informers} of {informers} informers are synced and live\n"))
    };
    assert_eq!(get(&factory, "/readyz").await, ok(0));
    let _nodes = factory.core().v1().nodes();
    let _pods = factory.core().v1().pods();
    let not_started = "0 of 2 informers are synced and live; nodes (not started), pods (not started)\n";
    let not_ready = (StatusCode::SERVICE_UNAVAILABLE, not_started.to_owned());
    assert_eq!(get(&factory, "/readyz").await, not_ready);
    factory.start();
    factory.wait_for_cache_sync().await.expect("the informers sync");
    let live = async {
        while !factory.health().is_live() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), live).await.expect("the watches open");
    assert_eq!(get(&factory, "/readyz").await, ok(2));
    assert_eq!(get(&factory, "/healthz").await, ok(2));
    let (status, page) = get(&factory, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("informer_synced{resource=\"pods\""), "{page}");
}

#[tokio::test]
async fn program_that_is_not_ready_names_the_informer_and_the_reason() {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let message = "pods is forbidden: User \"bob\" cannot list resource \"pods\"";
    let refused = CannedResponse::failure(StatusCode::FORBIDDEN, "Forbidden", message);
    simulator.fail_next(usize::MAX, RequestFilter::any().path("/api/v1/pods"), refused);
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    let (pods, nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    factory.start();
    let refusal = async {
        nodes.synced().wait().await.expect("the informer syncs");
        while pods.health().error().is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), refusal).await.expect("the server answers");
    let (status, reasons) = get(&factory, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let start = "1 of 2 informers are synced and live; pods (forbidden: ";
    assert!(reasons.starts_with(start) && reasons.contains(message), "{reasons}");
    assert_eq!(get(&factory, "/healthz").await.0, StatusCode::OK);
}
