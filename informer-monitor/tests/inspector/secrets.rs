//! Secrets in informers whose description or object type does not show the resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_factory::{Informer, SharedIndexInformer};
use informer_testing::MemorySource;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

/// A view of Secrets, whose JSON has no `kind`.
#[derive(Informer, Deserialize, Serialize, Clone)]
#[informer(group = "", version = "v1", kind = "Secret", namespaced, no_accessor)]
struct Credentials {
    metadata: ObjectMeta,
    data: BTreeMap<String, ByteString>,
}

/// Checks that the inspector shows the masked Secret `shop/db`, and does not search its index.
async fn assert_masked(router: &Router, informer: &str) {
    let informer = ("informer", informer);
    let shown = document(router, "object", &[informer, ("key", "shop/db")]).await["value"].to_string();
    assert!(shown.contains("•••••") && !shown.contains("aHVudGVyMg"), "{shown}");
    let response = get(router, "objects", &[informer, ("query", "index:password=hunter2")]).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST, "{informer:?}: {}", response.body);
}

#[tokio::test]
async fn secrets_of_a_named_factory_are_masked_in_every_form() {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let applied = json!({ "data": { "password": "aHVudGVyMg==" } }).to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "namespace": "shop", "name": "db",
            "annotations": { "kubectl.kubernetes.io/last-applied-configuration": applied },
        },
        "data": { "password": "aHVudGVyMg==" },
    });
    simulator.create(&secret).expect("a new object");
    let client = simulator.client().expect("a client");
    let factory = SharedInformerFactory::builder(client).name("scheduler").build();
    let secrets = factory.core().v1().secrets();
    let views = factory.informer::<Credentials>();
    let metadata = factory.metadata().of::<Secret>();
    secrets.add_index("password", |_| Some("hunter2".to_owned())).expect("a new index");
    views.add_index("password", |_| Some("hunter2".to_owned())).expect("a new index");
    metadata.add_index("password", |_| Some("hunter2".to_owned())).expect("a new index");
    let router = router(Inspector::new(&factory).objects(&secrets).objects(&views).objects(&metadata));
    start(&factory).await;
    for informer in [
        "scheduler/secrets (Secret)",
        "scheduler/secrets (Credentials)",
        "scheduler/metadata of secrets (PartialObjectMeta)",
    ] {
        assert_masked(&router, informer).await;
    }
}

#[tokio::test]
async fn secrets_of_a_namespace_added_later_are_masked() {
    let (_simulator, factory) = cluster().await;
    let source = MemorySource::new("secrets");
    let metadata =
        ObjectMeta { namespace: Some("shop".into()), name: Some("db".into()), ..ObjectMeta::default() };
    let data = [("password".to_owned(), ByteString(b"hunter2".to_vec()))].into();
    source.create(Credentials { metadata, data }).expect("a new object");
    let credentials = factory.informer_with::<Credentials>(|_, options| {
        let make = move |_: &str| Arc::new(source.clone()) as Arc<_>;
        SharedIndexInformer::new_in_namespaces(make, [""; 0], options).expect("valid names")
    });
    credentials.add_index("password", |_| Some("hunter2".to_owned())).expect("a new index");
    let router = router(Inspector::new(&factory).objects(&credentials));
    factory.start();
    let added = credentials.add_namespace("shop").expect("a valid name");
    soon(added.wait()).await.expect("the namespace is listed");
    assert_masked(&router, "Credentials (Credentials)").await;
}
