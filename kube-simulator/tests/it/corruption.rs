//! The deletion of corrupt objects, as watches observe it.

use http::StatusCode;
use kube_simulator::Simulator;
use serde_json::json;

use crate::support::{Lines, MAPS, config_map, event, get, names, simulator};

const EVENTS: &str = "/api/v1/namespaces/a/events";

async fn watch(simulator: &Simulator, path: &str, query: &str) -> Lines {
    Lines::open(simulator, &format!("{path}?watch=1&{query}")).await
}

#[tokio::test]
async fn deleted_corrupt_event_ends_its_watches_with_an_error() {
    let simulator = simulator().await;
    let mut bad = event("bad");
    bad["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let from = simulator.create(&bad).unwrap().resource_version();
    let since = format!("resourceVersion={from}");
    let elsewhere = EVENTS.replace("/a/", "/b/");
    let mut open = watch(&simulator, EVENTS, &since).await;
    let mut selecting = watch(&simulator, EVENTS, &format!("{since}&labelSelector=app%3Dweb")).await;
    let mut in_other_namespace = watch(&simulator, &elsewhere, &since).await;

    let events = simulator.objects("v1", "Event").unwrap();
    simulator.create(&event("good")).unwrap();
    let deleted = events.delete_corrupt("a/bad").unwrap();
    simulator.create(&event("later")).unwrap();
    assert_eq!(open.brief().await.unwrap().1, "good", "earlier events must come first");
    let mut late = watch(&simulator, EVENTS, &format!("resourceVersion={}", from + 1)).await;
    for watch in [&mut open, &mut selecting, &mut late] {
        let error = watch.next().await.unwrap();
        assert_eq!(error["type"], "ERROR");
        let status = &error["object"];
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(500)));
        assert_eq!(status["reason"], "StorageReadError");
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with("saw a DELETED event, but object data is corrupt"), "{message}");
        assert_eq!(watch.next().await, None, "the stream must end after the error");
    }

    // After a relist, a client continues normally.
    let mut left = names(&get(&simulator, EVENTS).await.1);
    left.sort();
    assert_eq!(left, ["good", "later"]);
    let mut after =
        watch(&simulator, EVENTS, &format!("resourceVersion={}", deleted.resource_version())).await;
    assert_eq!(after.brief().await.unwrap().1, "later");
    let mut there = event("there");
    there["metadata"]["namespace"] = "b".into();
    simulator.create(&there).unwrap();
    assert_eq!(in_other_namespace.brief().await.unwrap().1, "there");
}

#[tokio::test]
async fn watch_cache_relists_at_deletion_of_corrupt_object() {
    let simulator = simulator().await;
    let from = simulator.create(&config_map("a", "bad")).unwrap().resource_version();
    let mut open = watch(&simulator, MAPS, &format!("resourceVersion={from}")).await;
    let maps = simulator.objects("v1", "ConfigMap").unwrap();
    let deleted = maps.delete_corrupt("a/bad").unwrap().resource_version();
    assert_eq!(open.next().await, None, "the watch must end without an error");
    let expired = watch(&simulator, MAPS, &format!("resourceVersion={from}")).await.next().await.unwrap();
    assert_eq!(expired["object"]["reason"], "Expired");
    let (code, list) = get(&simulator, MAPS).await;
    assert_eq!((code, names(&list)), (StatusCode::OK, Vec::new()));
    let mut after = watch(&simulator, MAPS, &format!("resourceVersion={deleted}")).await;
    simulator.create(&config_map("a", "good")).unwrap();
    assert_eq!(after.brief().await.unwrap().1, "good");
    assert!(maps.delete_corrupt("a/bad").unwrap_err().to_string().contains("refused"));
}
