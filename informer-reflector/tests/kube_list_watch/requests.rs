//! The requests of lists and watches.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http::Request;
use informer_core::{
    ListOptions, ListWatchError, ListerWatcher, ObjectKey, ResourceVersionMatch, WatchOptions,
};
use informer_reflector::KubeListWatch;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::client::Body;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use tokio::sync::Barrier;

use super::server::{EMPTY_LIST, Server, answer, list, watch, watch_options};

#[tokio::test]
async fn list_request_has_the_options() -> Result<(), ListWatchError> {
    let server = Server::answering((0..4).map(|_| answer(200, EMPTY_LIST)));
    let pods = KubeListWatch::<Pod>::all(server.client());
    list(&pods, ListOptions::default()).await?;
    // kube's own `ListParams` omit the version here.
    let cached =
        ListOptions { resource_version: Some("0".into()), limit: Some(500), ..ListOptions::default() };
    list(&pods, cached).await?;
    let not_older = ListOptions {
        resource_version: Some("42".into()),
        resource_version_match: Some(ResourceVersionMatch::NotOlderThan),
        ..ListOptions::default()
    };
    list(&pods, not_older).await?;
    let next_page =
        ListOptions { limit: Some(2), continue_token: Some("a+b/c=".into()), ..ListOptions::default() };
    list(&pods, next_page).await?;
    let expected = [
        "/api/v1/pods",
        "/api/v1/pods?resourceVersion=0&limit=500",
        "/api/v1/pods?resourceVersion=42&resourceVersionMatch=NotOlderThan",
        "/api/v1/pods?limit=2&continue=a%2Bb%2Fc%3D",
    ];
    assert_eq!(server.uris(), expected);
    let accepted = "application/vnd.kubernetes.protobuf, application/json";
    assert!(server.header("accept").iter().all(|accept| accept.as_deref() == Some(accepted)));
    Ok(())
}

#[tokio::test]
async fn watch_request_has_the_options() -> Result<(), ListWatchError> {
    let server = Server::answering((0..3).map(|_| answer(200, "")));
    let deployments = KubeListWatch::<Deployment>::namespaced(server.client(), "shop")
        .label_selector("app in (web,api)")
        .field_selector("metadata.name!=x");
    assert!(watch(&deployments, watch_options("42")).await?.is_empty());
    let bare =
        WatchOptions { allow_bookmarks: false, timeout: Duration::from_millis(10), ..watch_options("") };
    watch(&deployments, bare).await?;
    watch(&deployments, WatchOptions { send_initial_events: true, ..watch_options("") }).await?;
    let selectors = "labelSelector=app%20in%20%28web%2Capi%29&fieldSelector=metadata.name%21%3Dx";
    let path = "/apis/apps/v1/namespaces/shop/deployments?watch=1";
    let expected = [
        format!("{path}&resourceVersion=42&allowWatchBookmarks=true&timeoutSeconds=300&{selectors}"),
        format!("{path}&timeoutSeconds=1&{selectors}"),
        format!(
            "{path}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
             &timeoutSeconds=300&{selectors}"
        ),
    ];
    assert_eq!(server.uris(), expected);
    Ok(())
}

#[tokio::test]
async fn metadata_only_type_requests_only_metadata() -> Result<(), ListWatchError> {
    let server = Server::answering([answer(200, EMPTY_LIST), answer(200, "")]);
    let nodes = KubeListWatch::<PartialObjectMeta<Node>>::all(server.client());
    list(&nodes, ListOptions::default()).await?;
    watch(&nodes, watch_options("1")).await?;
    let forms = ["PartialObjectMetadataList", "PartialObjectMetadata"];
    let accepted = forms.map(|form| {
        let types = ["application/vnd.kubernetes.protobuf", "application/json"];
        Some(types.map(|accepted| format!("{accepted};as={form};g=meta.k8s.io;v=v1")).join(", "))
    });
    assert_eq!(server.header("accept"), accepted);
    assert_eq!(nodes.description(), "metadata of nodes");
    Ok(())
}

#[tokio::test]
async fn concurrent_requests_that_prefer_protobuf_fall_back_to_json() {
    // The server refuses the first request only after it has received both.
    let both = Arc::new(Barrier::new(2));
    let service = tower::service_fn(move |request: Request<Body>| {
        let accepts = request.headers().get("accept").and_then(|value| value.to_str().ok());
        let prefers_protobuf = accepts.is_some_and(|accepts| accepts.contains("protobuf"));
        let both = Arc::clone(&both);
        async move {
            if !prefers_protobuf {
                return answer(200, EMPTY_LIST);
            }
            both.wait().await;
            answer(406, "")
        }
    });
    let pods = KubeListWatch::<Pod>::all(Client::new(service, "default"));
    let same = pods.clone();
    let (first, second) =
        tokio::join!(list(&pods, ListOptions::default()), list(&same, ListOptions::default()));
    assert!(first.is_ok() && second.is_ok(), "{first:?} and {second:?}");
}

#[tokio::test]
async fn list_of_one_object_requests_its_name_without_selectors() -> Result<(), ListWatchError> {
    let server = Server::answering((0..4).map(|_| answer(200, EMPTY_LIST)));
    let everywhere = KubeListWatch::<Pod>::all(server.client()).label_selector("app=web");
    let in_shop = KubeListWatch::<Pod>::namespaced(server.client(), "shop").field_selector("spec.nodeName=n");
    let nodes = KubeListWatch::<Node>::all(server.client());
    let web = ObjectKey::namespaced("shop", "web");
    let unqualified = ObjectKey::cluster_scoped("web");
    let odd = ObjectKey::cluster_scoped("a,b=c");
    let of_pods = [
        everywhere.object_metadata(&web),
        in_shop.object_metadata(&web),
        in_shop.object_metadata(&unqualified),
    ];
    for one in of_pods.into_iter().chain([nodes.object_metadata(&odd)]) {
        let one = one.expect("the object is in scope");
        assert!(one.list(ListOptions::default()).await?.next().await.is_some());
    }
    assert!(in_shop.object_metadata(&ObjectKey::namespaced("other", "web")).is_none());
    let expected = [
        "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb",
        "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb",
        "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb",
        "/api/v1/nodes?fieldSelector=metadata.name%3Da%5C%2Cb%5C%3Dc",
    ];
    assert_eq!(server.uris(), expected);
    let accepts = server.header("accept");
    assert!(accepts.iter().flatten().all(|accept| accept.contains("PartialObjectMetadataList")));
    Ok(())
}

#[tokio::test]
async fn a_description_names_resource_scope_and_selectors() {
    let client = Server::default().client();
    assert_eq!(KubeListWatch::<Pod>::all(client.clone()).description(), "pods");
    assert_eq!(KubeListWatch::<Pod>::namespaced(client.clone(), "").description(), "pods");
    let resource = ApiResource::erase::<Deployment>(&());
    let deployments = KubeListWatch::<DynamicObject>::namespaced_with(client, "shop", &resource);
    assert_eq!(deployments.description(), "deployments.apps in namespace \"shop\"");
    let selected = deployments.label_selector("app=web").field_selector("metadata.name=a");
    let expected =
        "deployments.apps in namespace \"shop\" with labels \"app=web\" and fields \"metadata.name=a\"";
    assert_eq!(selected.description(), expected);
}

#[tokio::test]
async fn a_namespace_cannot_change_the_path() -> Result<(), ListWatchError> {
    let server = Server::answering([answer(200, EMPTY_LIST)]);
    let pods = KubeListWatch::<Pod>::namespaced(server.client(), "../x?y");
    list(&pods, ListOptions::default()).await?;
    assert_eq!(server.uris(), ["/api/v1/namespaces/..%2Fx%3Fy/pods"]);
    Ok(())
}

#[tokio::test]
async fn user_parameters_are_in_every_page_and_watch() -> Result<(), ListWatchError> {
    let server = Server::answering((0..2).map(|_| answer(200, EMPTY_LIST)).chain([answer(200, "")]));
    let pods =
        KubeListWatch::<Pod>::all(server.client()).label_selector("app=web").tweak_list_options(|options| {
            assert_eq!((options.resource(), options.label_selector.as_str()), ("pods", "app=web"));
            options.label_selector.push_str(",tier!=cache");
            options.field_selector = "spec.nodeName=n".to_owned();
            options.parameter("pretty", "true").parameter("gone", "x").parameter("gone", "");
            options.parameter("shard selector", "a&b='0x0'");
        });
    list(&pods, ListOptions { limit: Some(2), ..ListOptions::default() }).await?;
    list(&pods, ListOptions { continue_token: Some("next".into()), ..ListOptions::default() }).await?;
    watch(&pods, watch_options("1")).await?;
    let added = "labelSelector=app%3Dweb%2Ctier%21%3Dcache&fieldSelector=spec.nodeName%3Dn&pretty=true\
                 &shard%20selector=a%26b%3D%270x0%27";
    let expected = [
        format!("/api/v1/pods?limit=2&{added}"),
        format!("/api/v1/pods?continue=next&{added}"),
        format!("/api/v1/pods?watch=1&resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=300&{added}"),
    ];
    assert_eq!(server.uris(), expected);
    let described = pods.description();
    assert!(described.contains("fields \"spec.nodeName=n\" and pretty \"true\""), "{described}");
    Ok(())
}

#[tokio::test]
async fn reserved_query_parameters_cannot_be_set() {
    for name in ["resourceVersion", "limit", "continue", "watch", "labelSelector", "timeoutSeconds"] {
        let server = Server::default();
        let pods = KubeListWatch::<Pod>::all(server.client()).tweak_list_options(|options| {
            options.parameter(name, "1");
        });
        for error in [
            list(&pods, ListOptions::default()).await.expect_err("a refusal"),
            watch(&pods, watch_options("1")).await.expect_err("a refusal"),
        ] {
            assert!(matches!(error, ListWatchError::InvalidRequest(_)), "{error}");
            let text = error.to_string();
            assert!(text.contains(&format!("\"{name}\" can't be set for pods: ")), "{text}");
        }
        assert!(server.uris().is_empty());
    }
}

#[tokio::test]
async fn overlong_resource_version_is_an_invalid_request() {
    let pods = KubeListWatch::<Pod>::all(Server::answering([]).client());
    let version = "9".repeat(100_000);
    let error = watch(&pods, watch_options(&version)).await.expect_err("a request that is too long");
    assert!(matches!(error, ListWatchError::InvalidRequest(_)), "{error}");
    assert!(error.to_string().len() < 200, "{error}");
}
