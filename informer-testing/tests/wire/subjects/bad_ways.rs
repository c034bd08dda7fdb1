//! A server in a bad way: objects that can't be read, flow control that turns requests away, and a shutdown.

use http::StatusCode;
use serde_json::json;

use crate::connection::Connection;
use crate::objects::secret;
use crate::scenario::{Scenario, scenario};
use crate::server::{AGAIN, Server};
use crate::trouble::FLOW_SCHEMA;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(the_end_of_an_event_that_can_not_be_read_is_an_error_within_the_stream).alone(),
        scenario(flow_control_turns_away_in_plain_text).alone(),
        scenario(what_flow_control_has_let_through_says_how_it_was_classified),
        scenario(a_server_that_leaves_is_not_ready_then_refuses_and_ends_its_watches).on_a_leaving_server(),
    ]
}

const PRIORITY_LEVEL: &str = "x-kubernetes-pf-prioritylevel-uid";

async fn the_end_of_an_event_that_can_not_be_read_is_an_error_within_the_stream(server: Server) {
    let about = json!({ "kind": "Secret", "namespace": server.namespace, "name": "none" });
    let event = json!({ "metadata": { "name": "bad" }, "involvedObject": about });
    server.create(&server.core("events"), &event).await;
    let events = server.core("events");
    let begin = async {
        // Behind what has made it unreadable.
        let last = server.create_secrets(&["last"]).await;
        let version = last["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
        server.watch_path(&events, &[("resourceVersion", &version)]).await
    };
    let mut watch = server.delete_unreadable_event("bad", begin).await;
    let status = watch.expect("ERROR").await;
    assert_eq!((status["code"].as_u64(), status["reason"].as_str()), (Some(500), Some("StorageReadError")));
    watch.ends().await;
}

async fn flow_control_turns_away_in_plain_text(server: Server) {
    let answer = server.ask_and_be_turned_away().await;
    assert_eq!(answer.code, 429);
    assert_eq!(answer.text(), "Too many requests, please try again later.\n");
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(answer.header("retry-after"), "1");
    assert!(!answer.header(FLOW_SCHEMA).is_empty() && !answer.header(PRIORITY_LEVEL).is_empty());
}

async fn what_flow_control_has_let_through_says_how_it_was_classified(server: Server) {
    server.create_secrets(&["a"]).await;
    let missing = server.secret_path("missing");
    for path in [server.secrets(), missing, "/readyz".to_owned(), "/version".to_owned(), "/none".to_owned()] {
        let answer = server.get(&path).await;
        assert!(!answer.header(FLOW_SCHEMA).is_empty(), "{path}");
        assert!(!answer.header(PRIORITY_LEVEL).is_empty(), "{path}");
    }
    let watch = server.watch(&[]).await;
    assert!(watch.headers.contains_key(FLOW_SCHEMA));
}

async fn a_server_that_leaves_is_not_ready_then_refuses_and_ends_its_watches(server: Server) {
    let mut watch = server.watch(&[]).await;
    server.create_secrets(&["a"]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED a"]);
    // A request that is under way until its body has come. A real server does not go before.
    let slow = secret("slow").to_string();
    let (first, second) = slow.split_at(slow.len() / 2);
    let (answer, mut body) = Connection::open(&server).await.begin_to_post(&server.secrets()).await;
    body.send_data(first.to_owned().into(), false).expect("the connection is open");

    server.begin_to_leave();
    let mut ticks = tokio::time::interval(AGAIN);
    while server.ask_once("/readyz").await.code == 200 {
        ticks.tick().await;
    }
    let not_ready = server.ask_once("/readyz").await;
    assert_eq!((not_ready.code, not_ready.header("content-type")), (500, "text/plain; charset=utf-8"));
    assert!(not_ready.text().ends_with("[-]shutdown failed: reason withheld\nreadyz check failed\n"));
    let why = server.ask_once("/readyz/shutdown").await;
    assert_eq!((why.code, &*why.text()), (500, "internal server error: process is shutting down\n"));
    assert_eq!(server.ask_once("/livez").await.code, 200);
    server.create_secrets(&["b"]).await;
    assert_eq!(watch.briefs(1).await, ["ADDED b"], "it serves on for a while");

    let refused = server.takes_no_more().await;
    assert_eq!(refused.code, 429);
    assert_eq!(refused.text(), "The apiserver is shutting down, please try again later.\n");
    assert_eq!(refused.header("retry-after"), "5");
    assert_eq!(refused.header("connection"), "close");
    assert_eq!(refused.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(refused.header(FLOW_SCHEMA), "", "it has not come so far");
    assert_eq!(server.ask_once("/livez").await.code, 200);
    watch.ends().await;
    let last = Connection::open(&server).await.get(&server.secrets()).await.expect("an answer");
    assert_eq!(last.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(last.headers().get("connection").is_none(), "HTTP/2 has no such header");

    body.send_data(second.to_owned().into(), true).expect("the connection is open");
    assert_eq!(answer.await.expect("an answer").status(), StatusCode::CREATED, "it has been waited for");
}
