//! Raw HTTP/2: a watch that shares its connection, and `GOAWAY`.

use http::StatusCode;

use crate::connection::{Connection, next_name};
use crate::scenario::{Scenario, scenario};
use crate::server::{Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_watch_and_other_requests_share_a_connection).over_a_socket(),
        scenario(watch_continues_after_a_goaway).over_a_socket(),
    ]
}

/// The maximum number of requests until one gets a `GOAWAY`. Each request gets it with a
/// probability of 2 %.
const MANY: usize = 2_000;

async fn a_watch_and_other_requests_share_a_connection(server: Server) {
    let mut connection = Connection::open(&server).await;
    let watch = with_query(&server.secrets(), &[("watch", "1"), ("resourceVersion", "0")]);
    let watch = connection.get(&watch).await.expect("an answer");
    assert_eq!(watch.status(), StatusCode::OK);
    server.create_secrets(&["a"]).await;
    assert_eq!(next_name(&mut watch.into_body()).await.expect("an event"), "a");
    // The server may refuse this request because of a GOAWAY.
    if let Some(answer) = connection.get(&server.secret_path("a")).await {
        assert_eq!(answer.status(), StatusCode::OK);
    }
}

async fn watch_continues_after_a_goaway(server: Server) {
    let mut connection = Connection::open(&server).await;
    let watch = with_query(&server.secrets(), &[("watch", "1"), ("resourceVersion", "0")]);
    let mut watch = connection.get(&watch).await.expect("an answer").into_body();
    let mut answered = 0;
    while let Some(answer) = connection.get("/version").await {
        assert_eq!(answer.status(), StatusCode::OK);
        answered += 1;
        assert!(answered < MANY, "no GOAWAY after {MANY} requests");
    }
    server.create_secrets(&["a"]).await;
    assert_eq!(next_name(&mut watch).await.expect("an event"), "a");
    let mut other = Connection::open(&server).await;
    assert_eq!(other.get("/version").await.expect("an answer").status(), StatusCode::OK);
}
