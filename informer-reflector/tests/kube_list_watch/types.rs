//! Typed, dynamic and metadata-only objects, and objects of other types.

use informer_core::{ListOptions, ListPart, ListWatchError, OwnedObject, RejectedObject, WatchEvent};
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use serde_json::json;

use super::server::{Answer, Server, answer, list, watch, watch_options};

const TABLE: &str = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},
    "columnDefinitions":[],"rows":[]}"#;

fn widgets() -> ApiResource {
    ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
    }
}

fn body(object: &str) -> Answer {
    answer(200, format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", object.replace('\n', "")).leak())
}

async fn items<K: 'static>(
    list_watch: &KubeListWatch<K>,
) -> Result<Vec<Result<OwnedObject<K>, RejectedObject>>, ListWatchError> {
    let parts = list(list_watch, ListOptions::default()).await?;
    Ok(parts
        .into_iter()
        .flat_map(|part| if let ListPart::Items(items) = part { items } else { vec![] })
        .collect())
}

/// Lists and watches pods, and returns both errors.
async fn refusals(list_answer: &'static str, watch_answer: &str) -> [String; 2] {
    let server = Server::answering([answer(200, list_answer), body(watch_answer)]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    let of_list = list(&pods, ListOptions::default()).await.expect_err("a refusal");
    let of_watch = watch(&pods, watch_options("1")).await.expect_err("a refusal");
    [of_list, of_watch].map(|error| {
        assert!(matches!(error, ListWatchError::Protocol(_)), "{error}");
        error.to_string()
    })
}

#[tokio::test]
async fn table_response_is_an_error() {
    let [list, watch] = refusals(TABLE, TABLE).await;
    assert!(list.contains("it is a Table"), "{list}");
    assert!(watch.contains("kind Table (meta.k8s.io/v1) instead of the requested Pod (v1)"), "{watch}");

    // `DynamicObject` could decode a Table, but its kind does not match.
    let client = Server::answering([answer(200, TABLE), body(TABLE)]).client();
    let dynamic = KubeListWatch::<DynamicObject>::all_with(client, &widgets());
    list_error_contains(&dynamic, "it is a Table").await;
    let error = super::server::watch(&dynamic, watch_options("1")).await.expect_err("a refusal").to_string();
    assert!(error.contains("instead of the requested Widget (example.com/v1)"), "{error}");
}

async fn list_error_contains(list_watch: &KubeListWatch<DynamicObject>, text: &str) {
    let error = list(list_watch, ListOptions::default()).await.expect_err("a refusal").to_string();
    assert!(error.contains(text), "{error}");
}

#[tokio::test]
async fn objects_of_another_kind_or_version_are_refused() {
    let node = r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"hunter2"}}"#;
    let nodes =
        r#"{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"hunter2"}}]}"#;
    for text in refusals(nodes, node).await {
        assert!(text.contains("the requested Pod (v1); check group, version, kind and plural"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let beta = r#"{"apiVersion":"v1beta1","items":[{"apiVersion":"v1beta1","kind":"Pod"}]}"#;
    for text in refusals(beta, r#"{"apiVersion":"v1beta1","kind":"Pod"}"#).await {
        assert!(text.contains("kind Pod (v1beta1)"), "{text}");
    }
}

#[tokio::test]
async fn dynamic_type_with_a_wrong_plural_is_an_error() {
    let pods = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}}]}"#;
    let mixed = r#"{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Widget",
        "metadata":{"name":"a"}},{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"b"}}]}"#;
    for (list, expected) in [(pods, "kind PodList (v1)"), (mixed, "kind Gadget (example.com/v1)")] {
        let client = Server::answering([answer(200, list)]).client();
        list_error_contains(&KubeListWatch::all_with(client, &widgets()), expected).await;
    }
}

#[tokio::test]
async fn custom_resource_list_may_have_any_list_kind() -> Result<(), ListWatchError> {
    for list in [
        r#"{"kind":"AllTheWidgets","apiVersion":"example.com/v1","items":[{"kind":"Widget","metadata":{"name":"a"}}]}"#,
        r#"{"kind":"List","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}"#,
        r#"{"kind":"","apiVersion":"","items":[{"kind":"","apiVersion":"","metadata":{"name":"a"}}]}"#,
        r#"{"items":[{"kind":null,"metadata":{"name":"a"}}]}"#,
    ] {
        let client = Server::answering([answer(200, list)]).client();
        let items = items(&KubeListWatch::<DynamicObject>::all_with(client, &widgets())).await?;
        assert_eq!(items.len(), 1, "{list}");
    }
    Ok(())
}

#[tokio::test]
async fn dynamic_objects_have_their_type_in_lists_and_watches() -> Result<(), ListWatchError> {
    let list =
        r#"{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}]}"#;
    let event = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","managedFields":[{}]},"spec":{"nodeName":"n"}}"#;
    let server = Server::answering([answer(200, list), body(event)]);
    let resource = ApiResource::erase::<Pod>(&());
    let pods = KubeListWatch::<DynamicObject>::namespaced_with(server.client(), "shop", &resource);
    let listed = items(&pods).await?.remove(0).expect("a pod").clone();
    let batch = watch(&pods, watch_options("1")).await?.remove(0);
    let [WatchEvent::Added(watched)] = &batch[..] else { panic!("{batch:?}") };
    assert_eq!(listed, **watched);
    assert_eq!(listed.types.map(|types| (types.api_version, types.kind)), Some(("v1".into(), "Pod".into())));
    assert_eq!(listed.data, json!({"spec": {"nodeName": "n"}}));
    Ok(())
}

#[tokio::test]
async fn whole_objects_are_pruned_for_metadata_only_requests() -> Result<(), ListWatchError> {
    let partial = r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},
        "items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","labels":{"b":"c"}}}]}"#;
    // `spec` and `status` are invalid, so this test fails if they are decoded.
    let full = r#"{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"5"},
        "items":[{"metadata":{"name":"a","labels":{"b":"c"}},"spec":17,"status":{"x":[1e999]}}]}"#;
    for list in [partial, full] {
        for kind in [
            r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#,
            r#""kind":"Node","apiVersion":"v1""#,
        ] {
            let event = format!(r#"{{{kind},"metadata":{{"name":"a","labels":{{"b":"c"}}}},"spec":17}}"#);
            let server = Server::answering([answer(200, list), body(&event)]);
            let nodes = KubeListWatch::<PartialObjectMeta<Node>>::all(server.client());
            let listed = items(&nodes).await?.remove(0).expect("an object");
            let batch = watch(&nodes, watch_options("1")).await?.remove(0);
            let [WatchEvent::Added(watched)] = &batch[..] else { panic!("{batch:?}") };
            assert_eq!(listed.metadata, watched.metadata);
            assert_eq!(listed.metadata.name.as_deref(), Some("a"));
        }
    }
    let pod = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#;
    let nodes = KubeListWatch::<PartialObjectMeta<Node>>::all(Server::answering([body(pod)]).client());
    let error = watch(&nodes, watch_options("1")).await.expect_err("a refusal").to_string();
    assert!(error.contains("kind Pod (v1) instead of the requested Node (v1)"), "{error}");
    Ok(())
}
