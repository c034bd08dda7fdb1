//! `KubeListWatch` against a server in the same process: what it asks for, and what it makes of the answers.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use informer_core::{
    ListEnd, ListOptions, ListPart, ListWatchError, ListerWatcher, ObjectKey, ResourceVersionMatch,
    WatchEvent, WatchOptions,
};
use informer_reflector::{KubeListWatch, PrunePaths};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::Client;
use kube::client::Body;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use tower::BoxError;

type ServerBody = UnsyncBoxBody<Bytes, io::Error>;
type Answer = Result<Response<ServerBody>, BoxError>;

/// A server that notes what it was asked and gives the answers it was given, in order.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Request<()>>>>,
}

impl Server {
    fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                server.asked.lock().expect("a lock").push(request.map(drop));
                server
                    .answers
                    .lock()
                    .expect("a lock")
                    .pop_front()
                    .unwrap_or_else(|| Err("no answer left".into()))
            }
        });
        Client::new(service, "default")
    }

    fn uris(&self) -> Vec<String> {
        self.asked.lock().expect("a lock").iter().map(|request| request.uri().to_string()).collect()
    }

    fn header(&self, name: &str) -> Vec<Option<String>> {
        let asked = self.asked.lock().expect("a lock");
        let header = |request: &Request<()>| request.headers().get(name)?.to_str().ok().map(str::to_owned);
        asked.iter().map(header).collect()
    }
}

/// An answer whose body comes in the given chunks, perhaps with an error at its end.
fn chunked(code: u16, chunks: Vec<io::Result<&'static str>>) -> Answer {
    let frames =
        stream::iter(chunks).map_ok(|chunk| http_body::Frame::data(Bytes::from_static(chunk.as_bytes())));
    let body = UnsyncBoxBody::new(StreamBody::new(frames));
    let response = Response::builder().status(code).header("content-type", "application/json");
    Ok(response.body(body).expect("a response"))
}

fn answer(code: u16, body: &'static str) -> Answer {
    chunked(code, vec![Ok(body)])
}

fn with_header(answer: Answer, name: &'static str, value: &'static str) -> Answer {
    let mut response = answer?;
    response.headers_mut().insert(name, value.parse().expect("a header"));
    Ok(response)
}

const EMPTY_LIST: &str = r#"{"kind":"List","metadata":{"resourceVersion":"1"},"items":[]}"#;

fn watch_options(version: &str) -> WatchOptions {
    WatchOptions {
        resource_version: version.into(),
        timeout: Duration::from_secs(300),
        allow_bookmarks: true,
        send_initial_events: false,
    }
}

async fn list<K: 'static>(
    list_watch: &dyn ListerWatcher<K>,
    options: ListOptions,
) -> Result<Vec<ListPart<K>>, ListWatchError> {
    list_watch.list(options).await?.try_collect().await
}

async fn watch<K: 'static>(
    list_watch: &dyn ListerWatcher<K>,
    options: WatchOptions,
) -> Result<Vec<Vec<WatchEvent<K>>>, ListWatchError> {
    list_watch.watch(options).await?.try_collect().await
}

/// Lists pods from a server that gives one answer, which means an error.
async fn list_error(answer: Answer) -> ListWatchError {
    let pods = KubeListWatch::<Pod>::all(Server::answering([answer]).client());
    list(&pods, ListOptions::default()).await.expect_err("an error")
}

#[tokio::test]
async fn a_list_asks_for_what_the_options_say() -> Result<(), ListWatchError> {
    let server = Server::answering((0..4).map(|_| answer(200, EMPTY_LIST)));
    let pods = KubeListWatch::<Pod>::all(server.client());
    list(&pods, ListOptions::default()).await?;
    // kube leaves the version out here.
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
    assert!(server.header("accept").iter().all(|accept| accept.as_deref() == Some("application/json")));
    Ok(())
}

#[tokio::test]
async fn a_watch_asks_for_what_the_options_say() -> Result<(), ListWatchError> {
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
    assert!(server.header("accept-encoding").iter().all(|encoding| encoding.as_deref() == Some("identity")));
    Ok(())
}

#[tokio::test]
async fn a_metadata_only_type_asks_for_metadata_only() -> Result<(), ListWatchError> {
    let server = Server::answering([answer(200, EMPTY_LIST), answer(200, "")]);
    let nodes = KubeListWatch::<PartialObjectMeta<Node>>::all(server.client());
    list(&nodes, ListOptions::default()).await?;
    watch(&nodes, watch_options("1")).await?;
    let forms = ["PartialObjectMetadataList", "PartialObjectMetadata"];
    let accepted = forms.map(|form| Some(format!("application/json;as={form};g=meta.k8s.io;v=v1")));
    assert_eq!(server.header("accept"), accepted);
    assert_eq!(nodes.description(), "metadata of nodes");
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
async fn a_list_comes_in_parts_with_malformed_items_in_their_places() -> Result<(), ListWatchError> {
    let server = Server::answering([chunked(
        200,
        vec![
            Ok(r#"{"kind":"PodList","metadata":{"resourceVersion":"9","continue":"next"},"ite"#),
            Ok(r#"ms":[{"metadata":{"name":"a","managedFields":[{}]}},{"metadata":{"name":"b"},"#),
            Ok(""),
            Ok(r#""spec":17},{"metadata":{"name":"c"}}]"#),
            Ok("}\n"),
        ],
    )]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    let parts = list(&pods, ListOptions::default()).await?;
    let [ListPart::Items(items), ListPart::End(end)] = &parts[..] else { panic!("{parts:?}") };
    let [Ok(a), Err(b), Ok(c)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((a.metadata.name.as_deref(), c.metadata.name.as_deref()), (Some("a"), Some("c")));
    assert_eq!(a.metadata.managed_fields, None);
    assert_eq!(b.key.as_ref().map(ObjectKey::as_str), Some("b"));
    let expected = ListEnd {
        resource_version: "9".into(),
        continue_token: Some("next".into()),
        remaining_item_count: None,
    };
    assert_eq!(*end, expected);
    Ok(())
}

#[tokio::test]
async fn managed_fields_are_kept_on_request_and_other_fields_pruned() -> Result<(), Box<dyn std::error::Error>>
{
    const BODY: &str = r#"{"items":[{"metadata":{"managedFields":[{}]},"spec":{"nodeName":"n"}}]}"#;
    let server = Server::answering([answer(200, BODY), answer(200, BODY)]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    for (list_watch, kept) in [
        (pods.clone().keep_managed_fields(), true),
        (pods.prune("spec.nodeName".parse::<PrunePaths>()?), false),
    ] {
        let parts = list(&list_watch, ListOptions::default()).await?;
        let [ListPart::Items(items), ListPart::End(_)] = &parts[..] else { panic!("{parts:?}") };
        let [Ok(pod)] = &items[..] else { panic!("{items:?}") };
        assert!(pod.metadata.managed_fields.is_some());
        assert_eq!(pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()), kept);
    }
    Ok(())
}

#[tokio::test]
async fn a_long_list_is_delivered_before_it_has_all_come() -> Result<(), ListWatchError> {
    let pad = "x".repeat(1000);
    let item = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"nodeName":"{pad}","containers":[]}}}},"#);
    let body: &'static str = format!(r#"{{"items":[{}{{}}]}}"#, item.repeat(2000)).leak();
    let server = Server::answering([answer(200, body)]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    let parts = list(&pods, ListOptions::default()).await?;
    let items: usize =
        parts.iter().map(|part| if let ListPart::Items(items) = part { items.len() } else { 0 }).sum();
    assert_eq!(items, 2001);
    assert!(parts.len() > 5, "{} parts", parts.len());
    Ok(())
}

#[tokio::test]
async fn a_chunk_of_a_watch_is_a_batch() -> Result<(), ListWatchError> {
    let server = Server::answering([chunked(
        200,
        vec![
            Ok("{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"DELETED\",\"object\":{}}\n{\"type\":"),
            Ok("\"MODIFIED\",\"object\""),
            Ok(":{}}\n"),
            Ok("\n"),
            Ok("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\"}}}"),
        ],
    )]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    let batches = watch(&pods, watch_options("1")).await?;
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1], "{batches:?}");
    assert!(
        matches!(&batches[2][0], WatchEvent::Bookmark(bookmark) if bookmark.resource_version == "5".into())
    );
    Ok(())
}

#[tokio::test]
async fn a_watch_that_breaks_off_says_so_after_what_came() -> Result<(), ListWatchError> {
    let event = "{\"type\":\"ADDED\",\"object\":{}}\n";
    let reset = || Err(io::Error::new(io::ErrorKind::ConnectionReset, "the peer went away"));
    for chunks in [vec![Ok(event), reset()], vec![Ok(event), Ok("{\"type\":\"ADDED\""), reset()]] {
        let server = Server::answering([chunked(200, chunks)]);
        let mut events = KubeListWatch::<Pod>::all(server.client()).watch(watch_options("1")).await?;
        assert!(matches!(events.next().await, Some(Ok(_))));
        let error = events.next().await.and_then(Result::err).expect("an error");
        assert!(matches!(error, ListWatchError::Interrupted(_)), "{error}");
        assert!(error.to_string().contains("the peer went away"), "{error}");
        assert!(events.next().await.is_none());
    }
    Ok(())
}

#[tokio::test]
async fn a_body_cut_short_is_interrupted() -> Result<(), ListWatchError> {
    let error = list_error(answer(200, r#"{"items":[{"metadata":{"name":"a"}}"#)).await;
    assert!(matches!(error, ListWatchError::Interrupted(_)), "{error}");
    let reset = Err(io::Error::from(io::ErrorKind::ConnectionReset));
    let error = list_error(chunked(200, vec![Ok("{"), reset])).await;
    assert!(matches!(error, ListWatchError::Interrupted(_)), "{error}");
    let server = Server::answering([answer(200, "{\"type\":\"ADDED\",\"obj")]);
    let error =
        watch(&KubeListWatch::<Pod>::all(server.client()), watch_options("1")).await.expect_err("an error");
    assert!(matches!(error, ListWatchError::Interrupted(_)), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_status_keeps_what_the_server_said() {
    let expired = r#"{"kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}"#;
    let error = list_error(answer(410, expired)).await;
    assert!(error.is_expired() && error.to_string().contains("too old"), "{error}");
    assert_eq!(error.retry_after(), None);

    let too_large = r#"{"kind":"Status","status":"Failure","reason":"Timeout","message":"m","details":
        {"retryAfterSeconds":1,"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}"#;
    let error = list_error(answer(504, too_large)).await;
    assert!(error.is_too_large_resource_version(), "{error}");
    assert_eq!(error.status().map(|status| status.code), Some(504));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn an_error_that_is_no_status_becomes_one() {
    let overload = "Too many requests,\r\n please try again later.\u{1b}[2J\n";
    let error = list_error(with_header(answer(429, overload), "retry-after", "7")).await;
    assert!(error.is_too_many_requests());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    let text = error.to_string();
    assert!(text.contains("Too many requests, please try again later. [2J"), "{text}");

    let page = format!("<html>{}</html>", "é ".repeat(10_000)).leak();
    let error = list_error(with_header(answer(502, page), "content-type", "text/html")).await;
    let text = error.to_string();
    assert!(text.contains("502") && text.contains("text/html") && text.contains("<html>"), "{text}");
    assert!(text.len() < 500, "{} bytes", text.len());

    let not_a_status = list_error(answer(403, r#"{"error":"who are you?"}"#)).await;
    assert!(not_a_status.is_forbidden(), "{not_a_status}");
    let redirect = list_error(answer(302, "")).await;
    assert_eq!(redirect.status().map(|status| status.code), Some(302));
}

#[tokio::test]
async fn a_failure_within_a_success_is_found() {
    let status = r#"{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}"#;
    assert!(list_error(answer(200, status)).await.is_forbidden());
}

#[tokio::test]
async fn what_is_no_kubernetes_answer_is_named_and_not_quoted() {
    let page = || with_header(answer(200, "<html>hunter2</html>"), "content-type", "text/html");
    let error = list_error(page()).await;
    assert!(matches!(error, ListWatchError::Protocol(_)));
    let text = error.to_string();
    assert!(text.contains("not a Kubernetes list") && text.contains("text/html"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let secrets = KubeListWatch::<Secret>::all(Server::answering([page()]).client());
    let error = watch(&secrets, watch_options("1")).await.expect_err("an error");
    assert!(matches!(error, ListWatchError::Protocol(_)));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_told_with_the_cause() {
    let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
    let error = list_error(Err(refused.into())).await;
    assert!(matches!(error, ListWatchError::Unreachable(_)), "{error}");
    assert!(error.to_string().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn a_namespace_cannot_change_the_path() -> Result<(), ListWatchError> {
    let server = Server::answering([answer(200, EMPTY_LIST)]);
    let pods = KubeListWatch::<Pod>::namespaced(server.client(), "../x?y");
    list(&pods, ListOptions::default()).await?;
    assert_eq!(server.uris(), ["/api/v1/namespaces/..%2Fx%3Fy/pods"]);
    Ok(())
}
