//! A watch cache that is not ready: the server's errors, and responses from etcd.

use serde_json::json;
use tokio::time::Instant;

use crate::failures::UnreadyWidgets;
use crate::objects::{names, token, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{MERGE, POLL_INTERVAL, Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    // These scenarios run alone, because an unready cache also blocks a real server's controllers,
    // which other scenarios need.
    vec![
        scenario(unready_cache_refuses_its_requests).alone(),
        scenario(invalid_request_is_refused_before_an_unready_cache).alone(),
        scenario(etcd_serves_pages_while_the_cache_is_unready).alone(),
        scenario(etcd_serves_objects_and_writes_without_cache).alone(),
        scenario(etcd_refuses_the_future_without_cache).alone(),
        scenario(a_cache_that_has_become_ready_has_everything).alone(),
        // This scenario need not run alone, because its server has no controllers.
        scenario(retry_after_grows_while_the_cache_is_unready).with_other_gates(),
    ]
}

const THREE: [&str; 3] = ["a", "b", "c"];

async fn unready_cache_refuses_its_requests(server: Server) {
    let widgets = UnreadyWidgets::with(&server, &THREE).await;
    let not_older = ("resourceVersionMatch", "NotOlderThan");
    let watch = ("watch", "1");
    for parameters in [
        &[][..],
        &[("resourceVersion", "0")],
        &[("resourceVersion", "0"), not_older],
        &[("resourceVersion", "1")],
        &[("resourceVersion", "1"), not_older],
        &[("limit", "2"), ("labelSelector", "x")],
        &[("limit", "2"), ("fieldSelector", "spec.color=red"), ("resourceVersion", "0")],
        &[watch],
        &[watch, ("resourceVersion", "0")],
        &[watch, ("resourceVersion", "1")],
        &[watch, ("sendInitialEvents", "true"), not_older, ("allowWatchBookmarks", "true")],
    ] {
        let answer = widgets.get(&with_query("", parameters)).await;
        let after = answer.header("retry-after").to_owned();
        let refusal = answer.refused_with(429, "TooManyRequests", "storage is (re)initializing");
        assert_eq!(refusal.details()["retryAfterSeconds"].to_string(), after, "{parameters:?}");
        assert_eq!(refusal.details().as_object().expect("details").len(), 1);
    }
    widgets.become_ready().await;
}

async fn invalid_request_is_refused_before_an_unready_cache(server: Server) {
    let widgets = UnreadyWidgets::with(&server, &THREE).await;
    let wrong = widgets.get("?watch=1&resourceVersionMatch=NotOlderThan").await;
    wrong.refused_with(422, "Invalid", "resourceVersionMatch is forbidden for watch");
    widgets.get("?resourceVersion=x").await.refused_with(400, "BadRequest", "invalid resource version");
    widgets.become_ready().await;
}

async fn etcd_serves_pages_while_the_cache_is_unready(server: Server) {
    let widgets = UnreadyWidgets::with(&server, &THREE).await;
    let mut tokens = Vec::new();
    for parameters in [
        "limit=2",
        "limit=2&resourceVersion=0",
        "limit=2&resourceVersion=1&resourceVersionMatch=NotOlderThan",
    ] {
        let page = widgets.get(&format!("?{parameters}")).await.expect(200);
        assert_eq!(names(&page), ["a", "b"], "{parameters}");
        let next = format!("?limit=1&continue={}", token(&page));
        tokens.push(next.clone());
        let second = widgets.get(&next).await.expect(200);
        assert_eq!((names(&second), version(&second)), (vec!["c"], version(&page)));
        let exactly = format!("?limit=2&resourceVersion={}", version(&page));
        for query in [exactly.clone(), format!("{exactly}&resourceVersionMatch=Exact")] {
            let again = widgets.get(&query).await.expect(200);
            assert_eq!((names(&again), version(&again)), (vec!["a", "b"], version(&page)));
        }
    }
    widgets.become_ready().await;
    for next in tokens {
        assert_eq!(names(&server.get(&format!("{}{next}", widgets.path)).await.expect(200)), ["c"]);
    }
}

async fn etcd_serves_objects_and_writes_without_cache(server: Server) {
    let widgets = UnreadyWidgets::with(&server, &THREE).await;
    for query in ["", "?resourceVersion=0", "?resourceVersion=1"] {
        let widget = widgets.get(&format!("/a{query}")).await.expect(200);
        assert_eq!(widget["spec"]["color"], "red");
    }
    let path = format!("{}/a", widgets.path);
    let blue = json!({ "spec": { "color": "blue" } });
    server.patch(&path, MERGE, &blue).await.expect(200);
    assert_eq!(server.get(&path).await.expect(200)["spec"]["color"], "blue");
    server.delete(&path).await.expect(200);
    assert_eq!(widgets.get("/a").await.code, 404);
    widgets.become_ready().await;
}

async fn etcd_refuses_the_future_without_cache(server: Server) {
    let widgets = UnreadyWidgets::with(&server, &THREE).await;
    for query in
        ["/a?resourceVersion=99999999", "?limit=1&resourceVersion=99999999&resourceVersionMatch=NotOlderThan"]
    {
        let refusal = widgets.get(query).await.refused_with(504, "Timeout", "Too large resource version");
        assert_eq!(refusal.details()["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert!(refusal.details()["retryAfterSeconds"].is_null(), "{}", refusal.0);
    }
    widgets.become_ready().await;
}

async fn a_cache_that_has_become_ready_has_everything(server: Server) {
    let widgets = UnreadyWidgets::with(&server, &THREE).await;
    widgets.become_ready().await;
    let list = server.get(&widgets.path).await.expect(200);
    assert_eq!(names(&list), THREE);
    let mut watch = server.watch_path(&widgets.path, &[("resourceVersion", "0")]).await;
    assert_eq!(watch.briefs(3).await, ["ADDED a", "ADDED b", "ADDED c"]);
}

/// The delay in `Retry-After` grows as e^(0.06 t), with t in seconds: 2 after 11.6 seconds, 3 after
/// 18.4.
async fn retry_after_grows_while_the_cache_is_unready(server: Server) {
    let begun = Instant::now();
    let widgets = UnreadyWidgets::with(&server, &THREE).await;
    let (mut last, mut ticks) = (1_u32, tokio::time::interval(POLL_INTERVAL));
    while last < 3 {
        ticks.tick().await;
        let refused = widgets.get("?resourceVersion=0").await;
        let after = refused.header("retry-after").parse().expect("a number of seconds");
        refused.refused_with(429, "TooManyRequests", "storage is (re)initializing");
        assert!(after >= last, "{after} after {last}");
        // The cache has been unready for at most `begun.elapsed()`.
        let most = (0.06 * begun.elapsed().as_secs_f64()).exp();
        assert!(f64::from(after) <= most, "{after} after {:?}", begun.elapsed());
        last = after;
    }
    widgets.become_ready().await;
}
