//! Faults in requests and response bodies, in process and over the socket.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube_simulator::{CannedResponse, Fault, Gate, RequestFilter, Simulator, Verb, WatchInjection};
use serde_json::Value;
use tower::Service as _;

use crate::definitions::{CRON_TABS, DEFINITION, cron_tab, cron_tabs, define};
use crate::support::{Lines, MAPS, WATCH, call, config_map, get, names, request, send, simulator};

fn any() -> RequestFilter {
    RequestFilter::any()
}

async fn whole_list(simulator: &Simulator) -> Bytes {
    let response = send(simulator, request(Method::GET, MAPS, &Value::Null)).await;
    response.into_body().collect().await.expect("a body").to_bytes()
}

#[tokio::test]
async fn a_watch_can_be_closed_in_the_middle_of_an_event() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    simulator.create(&config_map("a", "two")).unwrap();
    let first = Lines::open(&simulator, WATCH).await.next_line().await.unwrap().len();
    simulator.fail_next(1, any(), Fault::close_body_after(first as u64 + 10));
    let mut watch = Lines::open(&simulator, WATCH).await;
    assert_eq!(watch.brief().await.unwrap().1, "one");
    assert_eq!(watch.next_line().await, None, "the second event must be truncated");
}

#[tokio::test]
async fn broken_body_over_the_socket_is_a_client_error() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let maps: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    simulator.fail_next(1, RequestFilter::verb(Verb::List), Fault::abort_body_after(50));
    assert!(maps.list(&ListParams::default()).await.is_err());
    simulator.fail_next(1, RequestFilter::verb(Verb::List), Fault::close_body_after(50));
    assert!(matches!(maps.list(&ListParams::default()).await, Err(kube::Error::SerdeError(_))));
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn refused_request_has_no_effect() {
    let simulator = simulator().await;
    let refused = simulator.fail_while(any(), Fault::refuse());
    let create = request(Method::POST, MAPS, &config_map("a", "one"));
    let error = simulator.service().call(create).await.expect_err("a refused request");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    assert!(!matches!(maps.list(&ListParams::default()).await, Ok(_) | Err(kube::Error::Api(_))));
    refused.end();
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn guarded_fault_lasts_until_its_guard_drops() {
    let simulator = simulator().await;
    let unwell = CannedResponse::failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "unwell");
    let guard = simulator.fail_while(RequestFilter::verb(Verb::List), unwell.retry_after(3));
    for _ in 0..3 {
        let response = send(&simulator, request(Method::GET, MAPS, &Value::Null)).await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()["retry-after"], "3");
    }
    drop(guard);
    assert_eq!(get(&simulator, MAPS).await.0, StatusCode::OK);
}

#[tokio::test]
async fn prepared_errors_have_their_code_and_reason() {
    let simulator = simulator().await;
    simulator.fail_next(1, any(), CannedResponse::too_many_requests(7));
    let response = send(&simulator, request(Method::GET, MAPS, &Value::Null)).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["retry-after"], "7");
    simulator.fail_next(1, any(), CannedResponse::expired());
    let (code, status) = get(&simulator, MAPS).await;
    assert_eq!((code, status["reason"].as_str()), (StatusCode::GONE, Some("Expired")));
}

#[tokio::test(start_paused = true)]
async fn stalled_request_takes_effect_on_release() {
    let simulator = simulator().await;
    let gate = Gate::new();
    simulator.fail_next(1, any(), Fault::stall(&gate));
    let list = whole_list(&simulator);
    tokio::pin!(list);
    let an_hour = std::time::Duration::from_secs(3600);
    assert!(tokio::time::timeout(an_hour, &mut list).await.is_err(), "the request must wait for the release");
    simulator.create(&config_map("a", "meanwhile")).unwrap();
    gate.release();
    assert!(gate.is_released());
    assert!(String::from_utf8_lossy(&list.await).contains("meanwhile"));
}

#[tokio::test]
async fn stalled_write_goes_to_the_recreated_resource() {
    let simulator = simulator().await;
    let gate = Gate::new();
    let creates = || RequestFilter::verb(Verb::Create).path(CRON_TABS);
    define(&simulator, &cron_tabs()).await;
    simulator.fail_next(1, creates(), Fault::stall(&gate));
    let object = cron_tab("one");
    let ((code, answer), ()) = tokio::join!(call(&simulator, Method::POST, CRON_TABS, &object), async {
        simulator.wait_for_requests(&creates(), 1).await;
        call(&simulator, Method::DELETE, DEFINITION, &Value::Null).await;
        define(&simulator, &cron_tabs()).await;
        gate.release();
    });
    assert_eq!(code, StatusCode::CREATED, "{answer}");
    assert_eq!(names(&get(&simulator, CRON_TABS).await.1), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn released_stalled_watch_continues_without_loss() {
    let simulator = simulator().await;
    simulator.create(&config_map("a", "one")).unwrap();
    let gate = Gate::new();
    simulator.fail_next(1, any(), Fault::stall_body_after(10, &gate));
    let mut watch = Lines::open(&simulator, WATCH).await;
    let almost_a_minute = std::time::Duration::from_secs(59);
    assert!(
        tokio::time::timeout(almost_a_minute, watch.next_line()).await.is_err(),
        "the line must stay incomplete"
    );
    simulator.create(&config_map("a", "two")).unwrap();
    gate.release();
    assert_eq!(watch.brief().await.unwrap().1, "one");
    assert_eq!(watch.brief().await.unwrap().1, "two");
}

#[tokio::test]
async fn stopping_simulator_ignores_gates() {
    let simulator = simulator().await;
    let service = simulator.service();
    simulator.fail_next(1, any(), Fault::stall(&Gate::new()));
    let stalled = tokio::spawn(async move {
        let mut service = service;
        service.call(request(Method::GET, MAPS, &Value::Null)).await.expect("an answer").status()
    });
    simulator.wait_for_requests(&any(), 1).await;
    simulator.shutdown().await;
    assert_eq!(stalled.await.unwrap(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn expired_error_can_be_sent_to_all_open_watches() {
    let simulator = simulator().await;
    let mut watch = Lines::open(&simulator, WATCH).await;
    assert_eq!(simulator.inject(&RequestFilter::verb(Verb::Watch), &WatchInjection::expired()), 1);
    let error = watch.next().await.unwrap();
    assert_eq!((error["type"].as_str(), error["object"]["code"].as_u64()), (Some("ERROR"), Some(410)));
    assert_eq!(error["object"]["reason"], "Expired");
    assert_eq!(watch.next().await, None);
}

/// The bytes of an injection. Calls a function after the injection has been sent.
struct Injected<F: Fn()>(F);

impl<F: Fn()> AsRef<[u8]> for Injected<F> {
    fn as_ref(&self) -> &[u8] {
        b"{\"type\":\"FIRST\"}\n"
    }
}

impl<F: Fn()> Drop for Injected<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[tokio::test]
async fn injection_during_a_read_precedes_later_writes() {
    let simulator = Arc::new(simulator().await);
    let mut watch = Lines::open(&simulator, WATCH).await;
    let same = Arc::clone(&simulator);
    let first = Injected(move || {
        same.inject(&any(), &WatchInjection::bytes("{\"type\":\"SECOND\"}\n"));
        same.create(&config_map("a", "two")).unwrap();
    });
    simulator.inject(&any(), &WatchInjection::bytes(Bytes::from_owner(first)));
    simulator.create(&config_map("a", "one")).unwrap();
    for expected in [("FIRST", ""), ("ADDED", "one"), ("SECOND", ""), ("ADDED", "two")] {
        let (kind, name, _) = watch.brief().await.unwrap();
        assert_eq!((kind.as_str(), name.as_str()), expected);
    }
}

#[tokio::test]
async fn expired_token_is_refused_until_accepted_again() {
    let simulator = simulator().await;
    simulator.require_token("right");
    let mut config = simulator.kube_config();
    config.auth_info.token = Some("right".to_owned().into());
    let maps: Api<ConfigMap> = Api::all(kube::Client::try_from(config.clone()).unwrap());
    let stranger: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    let mut open = maps.watch(&WatchParams::default(), "1000").await.unwrap().boxed();
    let code = |outcome: Result<_, kube::Error>| match outcome {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(code(maps.list(&ListParams::default()).await), 200);
    assert_eq!(code(stranger.list(&ListParams::default()).await), 401);
    simulator.expire_tokens();
    assert_eq!(code(maps.list(&ListParams::default()).await), 401);
    simulator.create(&config_map("a", "one")).unwrap();
    assert!(matches!(open.next().await, Some(Ok(WatchEvent::Added(_)))), "open watches must continue");
    simulator.require_token("right");
    assert_eq!(code(maps.list(&ListParams::default()).await), 200);
    simulator.accept_any_token();
    assert_eq!(code(stranger.list(&ListParams::default()).await), 200);
}

#[tokio::test]
async fn slow_socket_reader_is_disconnected() {
    let simulator = Simulator::builder().built_in_kinds().watch_buffer(5).start().await.unwrap();
    let maps: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    let events = maps.watch(&WatchParams::default(), "1000").await.unwrap();
    let mut large = config_map("a", "large");
    large["data"]["text"] = "x".repeat(1_000_000).into();
    // The client does not read. Once its socket is full, its watch lags, and the server ends the
    // watch at the next write. The last event can be incomplete, and the client then reports an error.
    for _ in 0..40 {
        simulator.apply(&large).unwrap();
        tokio::task::yield_now().await;
    }
    let seen = events.filter(|event| std::future::ready(event.is_ok())).count().await;
    assert!(seen < 40, "the client must miss some events");
}

#[tokio::test]
async fn without_a_socket_clients_are_in_process() {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    assert!(simulator.url().ends_with(":0"));
    simulator.create(&config_map("a", "one")).unwrap();
    let maps: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let response = simulator.service().call(http::Request::new(Full::new(Bytes::new()))).await;
    assert_eq!(response.unwrap().status(), StatusCode::OK);
    simulator.shutdown().await;
}
