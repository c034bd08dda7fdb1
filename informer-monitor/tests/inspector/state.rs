//! The state of informers and controllers: relists with causes, quarantine, failed and parked keys.

use informer_controller::{ControllerRunner, ReconcileRequest, Reconciled, Workqueue, own_key};
use informer_testing::{RequestFilter, WatchInjection};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;

const MAPS: (&str, &str) = ("informer", "configmaps (ConfigMap)");

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "shop", "name": name } })
}

/// Returns a factory whose informer of config maps rejects the config map named `bad`.
fn rejecting(simulator: &Simulator) -> SharedInformerFactory {
    let reject = |map: &mut ConfigMap| {
        if map.metadata.name.as_deref() == Some("bad") { Err("the name is bad") } else { Ok(()) }
    };
    let client = simulator.client().expect("a client");
    SharedInformerFactory::builder(client).configure::<ConfigMap>(|options| options.transform(reject)).build()
}

#[tokio::test]
async fn informer_shows_relists_with_causes_and_quarantine() {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    for name in ["good", "bad"] {
        simulator.create(&map(name)).expect("a new object");
    }
    let factory = rejecting(&simulator);
    let maps = factory.core().v1().config_maps();
    let router = router(Inspector::new(&factory).objects(&maps));
    start(&factory).await;
    let is_live = |document: &Value| document["health"] == "live";
    until(&router, "informer", &[MAPS], is_live).await;
    assert_eq!(simulator.inject(&RequestFilter::any(), &WatchInjection::expired()), 1);
    let is_relisted = |document: &Value| document["recentLists"].as_array().is_some_and(|all| all.len() > 1);
    let details = until(&router, "informer", &[MAPS], is_relisted).await;
    let causes: Vec<_> =
        details["recentLists"].as_array().expect("lists").iter().map(|it| &it["cause"]).collect();
    assert_eq!(causes.last(), Some(&&json!("initial")));
    assert!(causes[0].as_str().is_some_and(|cause| cause.starts_with("expired: ")), "{causes:?}");
    let quarantined = &details["quarantinedObjects"];
    assert_eq!(quarantined[0]["key"], "shop/bad");
    assert!(quarantined[0]["error"].as_str().is_some_and(|error| error.contains("the name is bad")));
    assert_eq!((&details["objects"], &details["quarantined"]), (&json!(1), &json!(1)));
    assert!(details["bytes"].as_u64().is_some_and(|bytes| bytes > 50), "{details}");
}

#[tokio::test]
async fn overview_follows_counters_and_controllers() {
    let (simulator, factory) = cluster().await;
    simulator.create(&map("a")).expect("a new object");
    let maps = factory.core().v1().config_maps();
    let runner = ControllerRunner::new(Workqueue::builder().name("maps").build()).watches(&maps, own_key);
    let router = router(Inspector::new(&factory).controller(runner.monitor()));
    let before = document(&router, "overview", &[]).await;
    assert_eq!(before["informers"][0]["state"], "not started");
    start(&factory).await;
    let shutdown = CancellationToken::new();
    let refuse = |_: ReconcileRequest| std::future::ready(Err::<Reconciled, _>("refused"));
    let controller = tokio::spawn(runner.run(refuse, shutdown.clone()));
    simulator.create(&map("b")).expect("a new object");
    let is_failing = |document: &Value| {
        let keys = document["controllers"][0]["failedKeys"].as_array().map_or(0, Vec::len);
        let informer = &document["informers"][0];
        keys == 2 && informer["events"]["added"] == 1 && informer["objects"] == 2
    };
    let shown = until(&router, "overview", &[], is_failing).await;
    let (informer, controller_shown) = (&shown["informers"][0], &shown["controllers"][0]);
    assert_eq!((&informer["health"], &informer["objects"]), (&json!("live"), &json!(2)));
    assert_eq!(informer["handlers"][0]["name"], "controller \"maps\"");
    assert_eq!(controller_shown["name"], "maps");
    let keys = controller_shown["failedKeys"].as_array().expect("keys");
    assert!(keys.iter().all(|key| key["failure"] == "failed: refused"), "{keys:?}");
    assert!(keys.iter().any(|key| key["key"] == "shop/a"), "{keys:?}");
    shutdown.cancel();
    soon(controller).await.expect("no panic").expect("synced");
}
