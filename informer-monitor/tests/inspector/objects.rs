//! Objects: searches, pages, masked values, changes, and encoded objects.

use std::sync::Arc;

use informer_core::Storage;
use informer_factory::SharedIndexInformer;
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::*;

fn pod(name: &str, app: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "shop", "name": name, "labels": { "app": app } },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "main", "image": "web:1", "env": [{ "name": "TOKEN", "value": "t0p-s3cret" }] }],
        },
    })
}

fn secret(password: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "namespace": "shop", "name": "db",
            "annotations": { "kubectl.kubernetes.io/last-applied-configuration":
                format!("{{\"data\":{{\"password\":\"{password}\"}}}}") },
        },
        "data": { "password": password },
    })
}

const PODS: (&str, &str) = ("informer", "pods (Pod)");
const SECRETS: (&str, &str) = ("informer", "secrets (Secret)");

async fn found(router: &Router, query: &str) -> Vec<String> {
    let page = document(router, "objects", &[PODS, ("query", query)]).await;
    keys(&page).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn search_combines_key_label_index_and_field() {
    let (simulator, factory) = cluster().await;
    for (name, app, node) in [("a-1", "web", "n-1"), ("a-2", "web", "n-2"), ("b-1", "db", "n-1")] {
        simulator.create(&pod(name, app, node)).expect("a new object");
    }
    let pods = factory.core().v1().pods();
    pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone()).expect("a new index");
    pods.add_index("containers", |pod: &Pod| pod.spec.as_ref().map(|spec| spec.containers.len()))
        .expect("a new index");
    let router = router(Inspector::new(&factory).objects(&pods));
    start(&factory).await;
    for (query, expected) in [
        ("", &["shop/a-1", "shop/a-2", "shop/b-1"][..]),
        ("A-", &["shop/a-1", "shop/a-2"]),
        ("label:app=web", &["shop/a-1", "shop/a-2"]),
        ("index:node=n-1", &["shop/a-1", "shop/b-1"]),
        ("index:node=n-1 index:namespace=shop", &["shop/a-1", "shop/b-1"]),
        ("index:node=n-1 index:namespace=other", &[]),
        ("field:spec.nodeName=n-2", &["shop/a-2"]),
        ("a- label:app=web index:node=n-1 field:spec.containers.image=web:1", &["shop/a-1"]),
        ("field:spec.containers.image=web:2", &[]),
    ] {
        assert_eq!(found(&router, query).await, expected, "{query}");
    }
    for (query, message) in [
        ("index:zone=a", "there is no index \"zone\""),
        ("index:containers=1", "its values are not text"),
        ("field:spec[0]=1", "in lists, write"),
    ] {
        let response = get(&router, "objects", &[PODS, ("query", query)]).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert!(response.body.contains(message), "{query}: {}", response.body);
    }
}

#[tokio::test]
async fn secret_is_masked_and_its_values_are_not_found() {
    let (simulator, factory) = cluster().await;
    simulator.create(&secret("aHVudGVyMg==")).expect("a new object");
    let secrets = factory.core().v1().secrets();
    let by_value =
        |secret: &Secret| secret.data.as_ref()?.get("password").map(|value| value.0.len().to_string());
    secrets.add_index("length", by_value).expect("a new index");
    let router = router(Inspector::new(&factory).objects(&secrets));
    start(&factory).await;
    let object = [SECRETS, ("key", "shop/db")];
    let shown = document(&router, "object", &object).await;
    assert_eq!(shown["value"]["data"], json!({ "password": "•••••" }));
    for query in ["field:data.password=aHVudGVyMg==", "field:data.password=hunter2"] {
        let page = document(&router, "objects", &[SECRETS, ("query", query)]).await;
        assert!(keys(&page).is_empty(), "{query}");
    }
    let response = get(&router, "objects", &[SECRETS, ("query", "index:length=7")]).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST, "{}", response.body);

    simulator.update(&secret("c3dvcmRmaXNo")).expect("the object exists");
    let is_changed = |document: &Value| document["changes"][0]["kind"] == "updated";
    let changed = until(&router, "object", &object, is_changed).await;
    let differences = &changed["changes"][0]["differences"];
    let expected = json!({ "path": "data.password", "old": "•••••", "new": "•••••" });
    assert!(differences.as_array().is_some_and(|all| all.contains(&expected)), "{differences}");
    for text in ["aHVudGVyMg", "c3dvcmRmaXNo", "hunter2"] {
        assert!(!changed.to_string().contains(text), "{changed}");
    }
}

#[tokio::test]
async fn errors_of_unsearchable_indexes_are_masked() {
    let (simulator, factory) = cluster().await;
    simulator.create(&secret("aHVudGVyMg==")).expect("a new object");
    simulator.create(&pod("a", "web", "n-1")).expect("a new object");
    let (pods, secrets) = (factory.core().v1().pods(), factory.core().v1().secrets());
    let fails = || Err::<Option<String>, _>("invalid value \"t0p-s3cret\"");
    secrets.indexer().try_add_index("password", move |_| fails()).expect("a new index");
    for name in ["token", "shown"] {
        pods.indexer().try_add_index(name, move |_| fails()).expect("a new index");
    }
    let router = router(Inspector::new(&factory).objects(&pods).objects(&secrets).hide_index("token"));
    start(&factory).await;
    for (informer, index, key, is_masked) in [
        (SECRETS, "password", "shop/db", true),
        (PODS, "token", "shop/a", true),
        (PODS, "shown", "shop/a", false),
    ] {
        let details = document(&router, "informer", &[informer]).await;
        let prefix = format!("index \"{index}\" lacks object {key} at resource version ");
        let mut failures = details["indexFailures"].as_array().expect("failures").iter();
        let failure = failures.find_map(|it| it.as_str()?.strip_prefix(&prefix)).expect(index);
        assert_eq!((failure.contains("•••••"), failure.contains("t0p-s3cret")), (is_masked, !is_masked));
    }
}

#[tokio::test]
async fn listed_path_is_masked_in_object_diff_and_search() {
    let (simulator, factory) = cluster().await;
    simulator.create(&pod("a", "web", "n-1")).expect("a new object");
    let pods = factory.core().v1().pods();
    pods.add_index("token", |_: &Pod| Some("t0p-s3cret".to_owned())).expect("a new index");
    let inspector = Inspector::new(&factory).objects(&pods).hide_index("token");
    let inspector = inspector.mask("spec.containers.env.value").expect("a path");
    let inspector = inspector.mask("metadata.labels.owner").expect("a path");
    assert!(Inspector::new(&factory).mask("spec.containers[0].env").is_err());
    let router = router(inspector);
    start(&factory).await;
    assert!(found(&router, "field:spec.containers.env.value=t0p-s3cret").await.is_empty());
    assert_eq!(found(&router, "field:spec.containers.env.name=TOKEN").await, ["shop/a"]);
    let hidden = get(&router, "objects", &[PODS, ("query", "index:token=t0p-s3cret")]).await;
    assert_eq!(hidden.status, StatusCode::BAD_REQUEST);

    let api = Api::<Pod>::namespaced(simulator.client().expect("a client"), "shop");
    let patch = json!({ "metadata": { "labels": { "owner": "t0p-owner", "app": "db" } } });
    api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.expect("the object exists");
    let object = [PODS, ("key", "shop/a")];
    let changed = until(&router, "object", &object, |it| it["changes"][0]["kind"] == "updated").await;
    let differences = changed["changes"][0]["differences"].as_array().expect("differences");
    assert!(differences.contains(&json!({ "path": "metadata.labels.app", "old": "web", "new": "db" })));
    assert!(!changed.to_string().contains("t0p-"), "{changed}");
    assert!(found(&router, "label:owner=t0p-owner").await.is_empty());
    let page = document(&router, "objects", &[PODS]).await;
    assert_eq!(page["objects"][0]["labels"], json!({ "app": "db" }));
}

#[tokio::test]
async fn deleted_object_keeps_its_changes() {
    let (simulator, factory) = cluster().await;
    let pods = factory.core().v1().pods();
    let router = router(Inspector::new(&factory).objects(&pods));
    start(&factory).await;
    simulator.create(&pod("a", "web", "n-1")).expect("a new object");
    let object = [PODS, ("key", "shop/a")];
    until(&router, "object", &object, |it| it["changes"][0]["kind"] == "added").await;
    simulator.delete::<Pod>("shop/a").expect("the object exists");
    let deleted = until(&router, "object", &object, |it| it["changes"][0]["kind"] == "deleted").await;
    assert_eq!((&deleted["value"], &deleted["changes"][1]["kind"]), (&Value::Null, &json!("added")));
    assert_eq!(get(&router, "object", &[PODS, ("key", "shop/b")]).await.status, StatusCode::NOT_FOUND);
    let newest = document(&router, "informer", &[PODS]).await["changes"].clone();
    assert_eq!((&newest[0]["kind"], &newest[0]["key"]), (&json!("deleted"), &json!("shop/a")));
}

#[tokio::test]
async fn objects_of_other_informers_are_not_shown() {
    let (simulator, factory) = cluster().await;
    simulator.create(&secret("aHVudGVyMg==")).expect("a new object");
    let (_secrets, pods) = (factory.core().v1().secrets(), factory.core().v1().pods());
    let router = router(Inspector::new(&factory).objects(&pods));
    start(&factory).await;
    let overview = document(&router, "overview", &[]).await;
    let shown: Vec<_> =
        overview["informers"].as_array().expect("informers").iter().map(|it| &it["shown"]).collect();
    assert_eq!(shown, [true, false]);
    for path in ["objects", "object"] {
        let response = get(&router, path, &[SECRETS, ("key", "shop/db")]).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}: {}", response.body);
        assert!(response.body.contains("Inspector::objects"), "{}", response.body);
    }
    assert_eq!(get(&router, "objects", &[("informer", "nodes")]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(get(&router, "objects", &[]).await.status, StatusCode::BAD_REQUEST);
    let odd = [PODS, ("limit", "many"), ("after", "\u{0}")];
    assert_eq!(get(&router, "objects", &odd).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn informers_of_the_same_name_show_their_own_objects() {
    let (_simulator, factory) = cluster().await;
    let [first, second] = ["first", "second"].map(|namespace| {
        let source = MemorySource::<ConfigMap>::new("configmaps");
        let mut map = ConfigMap::default();
        (map.metadata.namespace, map.metadata.name) = (Some(namespace.into()), Some("a".into()));
        source.create(map).expect("a new object");
        let scope = factory.in_namespace(namespace);
        scope.informer_with::<ConfigMap>(|_, options| SharedIndexInformer::new(Arc::new(source), options))
    });
    let router = router(Inspector::new(&factory).objects(&first).objects(&second));
    start(&factory).await;
    for (id, key) in [("configmaps (ConfigMap)", "first/a"), ("configmaps (ConfigMap) 2", "second/a")] {
        assert_eq!(keys(&document(&router, "objects", &[("informer", id)]).await), [key]);
    }
}

#[tokio::test]
async fn informer_requested_again_after_a_stop_is_not_shown() {
    let (simulator, factory) = cluster().await;
    simulator.create(&pod("a", "web", "n-1")).expect("a new object");
    let pods = factory.core().v1().pods();
    let router = router(Inspector::new(&factory).objects(&pods));
    start(&factory).await;
    assert_eq!(found(&router, "").await, ["shop/a"]);
    soon(factory.stop(&pods)).await;
    let _again = factory.core().v1().pods();
    start(&factory).await;
    assert_eq!(get(&router, "objects", &[PODS]).await.status, StatusCode::NOT_FOUND);
    let overview = document(&router, "overview", &[]).await;
    assert_eq!(
        (&overview["informers"][0]["objects"], &overview["informers"][0]["shown"]),
        (&json!(1), &json!(false))
    );
}

#[tokio::test]
async fn encoded_objects_are_shown_and_searched() {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let factory = SharedInformerFactory::builder(simulator.client().expect("a client"))
        .configure::<ConfigMap>(|options| options.storage(Storage::Encoded))
        .build();
    let map = |colour: &str| {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "colour": colour },
            "metadata": { "namespace": "shop", "name": "a", "labels": { "app": "web" } } })
    };
    simulator.create(&map("green")).expect("a new object");
    let maps = factory.core().v1().config_maps();
    let router = router(Inspector::new(&factory).objects(&maps));
    start(&factory).await;
    let informer = ("informer", "configmaps (ConfigMap)");
    let page =
        document(&router, "objects", &[informer, ("query", "label:app=web field:data.colour=green")]).await;
    assert_eq!(keys(&page), ["shop/a"]);
    simulator.update(&map("red")).expect("the object exists");
    let object = [informer, ("key", "shop/a")];
    let changed = until(&router, "object", &object, |it| it["changes"][0]["kind"] == "updated").await;
    assert_eq!((&changed["encoded"], &changed["value"]["data"]["colour"]), (&json!(true), &json!("red")));
    let expected = json!([{ "path": "data.colour", "old": "green", "new": "red" }]);
    assert_eq!(changed["changes"][0]["differences"], expected);
}
