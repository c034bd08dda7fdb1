//! CBOR on servers that support it, and on servers that do not support it, which is the default.

use http::Method;
use serde_json::{Value, json};

use crate::cbor::{read, write};
use crate::custom::Widgets;
use crate::objects::{names, secret, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON, STRATEGIC, Server};

const CBOR: &str = "application/cbor";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(cbor_is_not_acceptable_by_default),
        scenario(a_body_in_cbor_is_refused_by_default),
        scenario(a_client_that_prefers_cbor_gets_its_next_choice),
        scenario(an_object_in_cbor_has_kind_and_version).with_other_gates(),
        scenario(cbor_has_the_bytes_where_json_has_base64).with_other_gates(),
        scenario(a_list_in_cbor).with_other_gates(),
        scenario(a_watch_in_cbor_is_a_sequence).with_other_gates(),
        scenario(an_error_within_a_watch_in_cbor).with_other_gates(),
        scenario(custom_objects_in_cbor).with_other_gates(),
        scenario(metadata_alone_in_cbor).with_other_gates(),
        scenario(tables_in_cbor_are_not_acceptable).with_other_gates(),
        scenario(a_refusal_in_cbor).with_other_gates(),
        scenario(object_can_be_created_in_cbor).with_other_gates(),
        scenario(object_can_be_applied_in_cbor).with_other_gates(),
        scenario(patch_of_unknown_type_is_refused_with_the_supported_types).with_other_gates(),
        scenario(delete_options_can_be_sent_in_cbor).with_other_gates(),
        scenario(invalid_cbor_is_refused).with_other_gates(),
        scenario(unacceptable_encoding_is_refused_with_cbor_in_the_list).with_other_gates(),
    ]
}

async fn get(server: &Server, path: &str, accept: &str) -> Value {
    let answer = server.get_as(path, accept).await;
    assert_eq!((answer.code, answer.header("content-type")), (200, CBOR), "{}", answer.text());
    read(&answer.bytes)
}

async fn cbor_is_not_acceptable_by_default(server: Server) {
    server.create_secrets(&["a"]).await;
    server.get_as(&server.secret_path("a"), CBOR).await.refused_with(406, "NotAcceptable", JSON);
}

async fn a_body_in_cbor_is_refused_by_default(server: Server) {
    let headers = [("content-type", CBOR)];
    let answer = server.call(Method::POST, &server.secrets(), &headers, write(&secret("a"))).await;
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json, application/yaml, application/vnd.kubernetes.protobuf";
    answer.refused(415, "UnsupportedMediaType", message);
}

async fn a_client_that_prefers_cbor_gets_its_next_choice(server: Server) {
    server.create_secrets(&["a"]).await;
    let accept = "application/cbor,application/json;q=0.5";
    assert_eq!(server.get_as(&server.secret_path("a"), accept).await.expect(200)["kind"], "Secret");
    let mut watch = server.watch_as(&server.secrets(), accept, &[]).await;
    assert_eq!(watch.headers["content-type"], JSON);
    watch.expect("ADDED").await;
}

async fn an_object_in_cbor_has_kind_and_version(server: Server) {
    let created = server.create_secrets(&["a"]).await;
    assert_eq!(get(&server, &server.secret_path("a"), CBOR).await, created);
}

async fn cbor_has_the_bytes_where_json_has_base64(server: Server) {
    let mut object = secret("a");
    object["data"] = json!({ "k": "AP/+" });
    server.create(&server.secrets(), &object).await;
    assert_eq!(get(&server, &server.secret_path("a"), CBOR).await["data"]["k"], json!([0, 0xff, 0xfe]));
    let list = get(&server, &server.secrets(), CBOR).await;
    assert_eq!(list["items"][0]["data"]["k"], json!([0, 0xff, 0xfe]));
}

async fn a_list_in_cbor(server: Server) {
    server.create_secrets(&["a", "b", "c"]).await;
    let list = get(&server, &format!("{}?limit=2", server.secrets()), CBOR).await;
    assert_eq!((&list["kind"], names(&list)), (&json!("SecretList"), vec!["a", "b"]));
    assert_eq!(list["metadata"]["remainingItemCount"], 1);
    assert!(list["items"][0].get("kind").is_none());
}

async fn a_watch_in_cbor_is_a_sequence(server: Server) {
    let from = version(&server.create_secrets(&["a"]).await).to_string();
    let labelled = server.label("a", "x", "1").await;
    server.delete(&server.secret_path("a")).await.expect(200);
    let parameters = [
        ("resourceVersion", &*from),
        ("fieldSelector", "metadata.name=a"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", "5"),
    ];
    let attempt = async |unseen: String| {
        let mut watch = server.watch_as(&server.secrets(), CBOR, &parameters).await;
        assert_eq!(watch.headers["content-type"], "application/cbor-seq");
        let event = watch.item().await.expect("an event");
        assert_eq!((&event["type"], &event["object"]), (&json!("MODIFIED"), &labelled));
        assert_eq!(watch.item().await.expect("an event")["type"], "DELETED");
        server.create_secrets(&[&unseen]).await;
        watch.item().await
    };
    let bookmark = server.bookmarked(attempt).await;
    assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &json!("Secret")));
}

async fn an_error_within_a_watch_in_cbor(server: Server) {
    let widgets = Widgets::define(&server).await;
    let from = version(&widgets.create("a", "red").await).to_string();
    widgets.create("b", "red").await;
    widgets.forget_history().await;
    let mut watch = server.watch_as(&widgets.path(), CBOR, &[("resourceVersion", &from)]).await;
    let event = watch.item().await.expect("an event");
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    watch.ends().await;
}

async fn custom_objects_in_cbor(server: Server) {
    let widgets = Widgets::define(&server).await;
    let created = widgets.create("a", "red").await;
    assert_eq!(get(&server, &format!("{}/a", widgets.path()), CBOR).await, created);
    let list = get(&server, &widgets.path(), CBOR).await;
    assert_eq!((&list["kind"], &list["items"][0]), (&json!("WidgetList"), &created));
}

async fn metadata_alone_in_cbor(server: Server) {
    server.create_secrets(&["a"]).await;
    let form = "application/cbor;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = get(&server, &server.secrets(), form).await;
    assert_eq!((&list["kind"], names(&list)), (&json!("PartialObjectMetadataList"), vec!["a"]));
}

async fn tables_in_cbor_are_not_acceptable(server: Server) {
    let form = "application/cbor;as=Table;g=meta.k8s.io;v=v1";
    assert_eq!(server.get_as(&server.secrets(), form).await.code, 406);
}

async fn a_refusal_in_cbor(server: Server) {
    let answer = server.get_as(&server.secret_path("a"), CBOR).await;
    assert_eq!((answer.code, answer.header("content-type")), (404, CBOR));
    let status = read(&answer.bytes);
    assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("NotFound")));
}

async fn object_can_be_created_in_cbor(server: Server) {
    let mut object = secret("a");
    object["stringData"] = json!({ "k": "v" });
    let headers = [("content-type", CBOR)];
    let created = server.call(Method::POST, &server.secrets(), &headers, write(&object)).await.expect(201);
    assert_eq!(created["data"], json!({ "k": "dg==" }));
}

async fn object_can_be_applied_in_cbor(server: Server) {
    let path = format!("{}?fieldManager=me", server.secret_path("a"));
    let headers = [("content-type", "application/apply-patch+cbor")];
    let mut object = secret("a");
    object["data"] = json!({ "k": "dg==" });
    let applied = server.call(Method::PATCH, &path, &headers, write(&object)).await.expect(201);
    assert_eq!(applied["metadata"]["managedFields"][0]["operation"], "Apply");
}

async fn patch_of_unknown_type_is_refused_with_the_supported_types(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let answer = server.patch(&format!("{}/a", widgets.path()), STRATEGIC, &json!({})).await;
    answer.refused_with(
        415,
        "UnsupportedMediaType",
        "application/apply-patch+yaml, application/apply-patch+cbor",
    );
}

async fn delete_options_can_be_sent_in_cbor(server: Server) {
    server.create_secrets(&["a"]).await;
    let options = json!({
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": { "uid": "another" },
    });
    let headers = [("content-type", CBOR)];
    let answer = server.call(Method::DELETE, &server.secret_path("a"), &headers, write(&options)).await;
    assert_eq!(answer.code, 409, "{}", answer.text());
}

async fn invalid_cbor_is_refused(server: Server) {
    let headers = [("content-type", CBOR)];
    for body in [&b"\xd9\xd9\xf7\xa1"[..], b"\xd9\xd9\xf7\x01", b"{}"] {
        assert_eq!(server.call(Method::POST, &server.secrets(), &headers, body).await.code, 400, "{body:x?}");
    }
}

async fn unacceptable_encoding_is_refused_with_cbor_in_the_list(server: Server) {
    let widgets = Widgets::define(&server).await;
    let answer = server.get_as(&widgets.path(), "text/html").await;
    assert!(answer.text().contains("application/vnd.kubernetes.protobuf, application/cbor"));
}
