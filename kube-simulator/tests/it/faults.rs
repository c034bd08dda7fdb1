//! Prepared responses, injected bytes and recorded requests.

use futures::{StreamExt, TryStreamExt};
use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube_simulator::{CannedResponse, RequestFilter, Verb, WatchInjection};

use crate::support::{Lines, MAPS, WATCH, config_map, get, simulator};

#[tokio::test]
async fn prepared_responses_are_used_in_order() {
    let simulator = simulator().await;
    let lists = || RequestFilter::verb(Verb::List).path(MAPS);
    simulator.fail_next(1, lists(), CannedResponse::failure(StatusCode::FORBIDDEN, "Forbidden", "no"));
    simulator.fail_next(1, lists(), CannedResponse::too_many_requests(7));
    simulator.fail_next(1, lists(), CannedResponse::raw(StatusCode::BAD_GATEWAY, "<html>"));
    let maps: Api<ConfigMap> = Api::namespaced(simulator.client().unwrap(), "a");
    for code in [403, 429, 502] {
        match maps.list(&ListParams::default()).await.unwrap_err() {
            kube::Error::Api(status) => assert_eq!(status.code, code),
            other => panic!("{other}"),
        }
    }
    assert!(maps.list(&ListParams::default()).await.is_ok());
    assert_eq!(get(&simulator, "/api/v1/pods").await.0, StatusCode::OK);
}

#[tokio::test]
async fn injected_bytes_follow_the_events_so_far() {
    let simulator = simulator().await;
    let mut watch = Lines::open(&simulator, WATCH).await;
    simulator.create(&config_map("a", "one")).unwrap();
    let garbage = WatchInjection::bytes("{\"type\":\"ADDED\",\"object\":{\"metadata\":7}}\n");
    assert_eq!(simulator.inject(&RequestFilter::verb(Verb::Watch), &garbage), 1);
    assert_eq!(watch.brief().await.unwrap().1, "one");
    assert_eq!(watch.next().await.unwrap()["object"]["metadata"], 7);
    simulator.create(&config_map("a", "two")).unwrap();
    assert_eq!(watch.brief().await.unwrap().1, "two");
}

#[tokio::test]
async fn an_event_can_be_replaced_by_bytes() {
    let simulator = simulator().await;
    let mut watch = Lines::open(&simulator, WATCH).await;
    simulator.inject(&RequestFilter::any(), &WatchInjection::bytes("broken\n").instead_of_next_event());
    simulator.create(&config_map("a", "one")).unwrap();
    simulator.create(&config_map("a", "two")).unwrap();
    assert_eq!(watch.next_line().await.unwrap(), b"broken\n");
    assert_eq!(watch.brief().await.unwrap().1, "two");
}

#[tokio::test]
async fn a_stream_can_end_in_the_middle_of_a_line() {
    let simulator = simulator().await;
    let maps: Api<ConfigMap> = Api::all(simulator.client().unwrap());
    for ending in [WatchInjection::then_close, WatchInjection::then_abort] {
        let mut events = maps.watch(&WatchParams::default(), "1000").await.unwrap().boxed();
        simulator.wait_for_watches(&RequestFilter::any(), 1).await;
        simulator.inject(&RequestFilter::any(), &ending(WatchInjection::bytes("{\"type\":\"ADD")));
        // kube's client treats a truncated line and a broken connection as the end of the stream.
        let last = events.try_next().await;
        assert!(!matches!(last, Ok(Some(WatchEvent::Added(_)))), "{last:?}");
        drop(events);
        simulator.wait_for_watches(&RequestFilter::any(), 0).await;
    }
}

#[tokio::test]
async fn requests_are_recorded_as_they_were_sent() {
    let simulator = simulator().await;
    get(&simulator, &format!("{MAPS}?limit=5&labelSelector=app%3Dweb")).await;
    let requests = simulator.requests(&RequestFilter::any().parameter("labelSelector", "app=web"));
    assert_eq!(requests.len(), 1);
    assert_eq!(simulator.request_count(&RequestFilter::any().has_parameter("limit")), 1);
    assert_eq!(simulator.request_count(&RequestFilter::any().has_parameter("continue")), 0);
    assert_eq!((requests[0].verb, requests[0].path.as_str()), (Verb::List, MAPS));
    assert_eq!(requests[0].query, "limit=5&labelSelector=app%3Dweb");
    simulator.wait_for_requests(&RequestFilter::verb(Verb::List), 1).await;
    simulator.clear_requests();
    assert_eq!(simulator.request_count(&RequestFilter::any()), 0);
}
