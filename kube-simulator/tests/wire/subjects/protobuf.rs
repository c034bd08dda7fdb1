//! Protobuf responses, as the components of Kubernetes request them.

use flate2::read::GzDecoder;
use http::Method;
use kube_messages::{put_bytes, put_nested, put_number};
use serde_json::{Value, json};

use crate::custom::{DEFINITIONS, Widgets};
use crate::objects::{deployment, labelled, name, pod, secret, token, uid, version};
use crate::protobuf::{Document, Message};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON, MERGE, PROTOBUF, STREAMING, Server, with_query};

/// The media types of a metadata-only object and list.
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(an_object_in_protobuf_is_a_message_in_an_envelope),
        scenario(protobuf_has_the_bytes_where_json_has_base64),
        scenario(empty_field_without_a_pointer_is_encoded),
        scenario(a_list_in_protobuf_has_its_metadata_and_items),
        scenario(page_in_protobuf_has_the_remaining_item_count),
        scenario(an_empty_list_in_protobuf_has_no_items),
        scenario(a_long_list_in_protobuf_is_compressed),
        scenario(a_watch_in_protobuf_has_lengths_before_its_events),
        scenario(a_streaming_list_in_protobuf_ends_with_a_bookmark),
        scenario(a_bookmark_of_pods_in_protobuf_is_an_empty_pod),
        scenario(an_error_within_a_watch_in_protobuf),
        scenario(writes_are_answered_in_protobuf),
        scenario(a_delete_is_answered_with_a_status_in_protobuf),
        scenario(a_refusal_in_protobuf),
        scenario(error_is_in_json_if_only_metadata_is_accepted),
        scenario(a_scale_in_protobuf),
        scenario(metadata_alone_in_protobuf),
        scenario(metadata_alone_of_a_watch_in_protobuf),
        scenario(tables_in_protobuf_are_not_acceptable),
        scenario(custom_objects_in_protobuf_are_not_acceptable),
        scenario(metadata_alone_of_custom_objects_in_protobuf),
        scenario(accept_qualities_select_the_encoding),
        scenario(wildcard_in_accept_has_the_lowest_rank),
        scenario(secret_can_be_created_in_protobuf),
        scenario(time_in_protobuf_has_whole_seconds),
        scenario(time_before_1970_in_protobuf_is_rounded_down),
        scenario(null_in_a_map_of_strings_is_an_empty_string),
        scenario(schema_of_additional_properties_allows_them),
    ]
}

/// Gets an object, and asserts that it is in protobuf.
async fn get(server: &Server, path: &str, accept: &str) -> Document {
    let answer = server.get_as(path, accept).await;
    assert_eq!((answer.code, answer.header("content-type")), (200, PROTOBUF), "{}", answer.text());
    Document::read(&answer.bytes)
}

/// Decodes an event into its type and object.
fn event(frame: &[u8]) -> (String, Document) {
    let event = Message::read(frame);
    (event.text(1), Document::read(event.message(2).bytes(1)))
}

async fn an_object_in_protobuf_is_a_message_in_an_envelope(server: Server) {
    let created = server.create(&server.secrets(), &labelled("a", "x", "1")).await;
    let document = get(&server, &server.secret_path("a"), PROTOBUF).await;
    assert_eq!((document.api_version.as_str(), document.kind.as_str()), ("v1", "Secret"));
    let metadata = document.object.message(1);
    assert_eq!((metadata.text(1).as_str(), metadata.text(3)), ("a", server.namespace.clone()));
    assert_eq!((metadata.text(5).as_str(), metadata.text(6)), (uid(&created), version(&created).to_string()));
    let label = metadata.message(11);
    assert_eq!((label.text(1).as_str(), label.text(2).as_str()), ("x", "1"));
    assert!(metadata.message(8).number(1) > 1_700_000_000);
}

async fn protobuf_has_the_bytes_where_json_has_base64(server: Server) {
    let mut object = secret("a");
    object["data"] = json!({ "k": "AP/+" });
    server.create(&server.secrets(), &object).await;
    let document = get(&server, &server.secret_path("a"), PROTOBUF).await;
    let entry = document.object.message(2);
    assert_eq!((entry.text(1).as_str(), entry.bytes(2)), ("k", &[0, 0xff, 0xfe][..]));
}

async fn empty_field_without_a_pointer_is_encoded(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    let document = get(&server, &server.core("pods/a"), PROTOBUF).await;
    // The empty fields `metadata.generateName` and `status.reason` are encoded.
    assert_eq!((document.object.message(1).text(2), document.object.message(3).text(4)), Default::default());
    // The deletion time is a pointer, so it is absent.
    assert!(document.object.message(1).all(9).is_empty());
}

async fn a_list_in_protobuf_has_its_metadata_and_items(server: Server) {
    let last = server.create_secrets(&["a", "b"]).await;
    let list = get(&server, &server.secrets(), PROTOBUF).await;
    assert_eq!((list.api_version.as_str(), list.kind.as_str()), ("v1", "SecretList"));
    let listed: u64 = list.object.message(1).text(2).parse().expect("a version");
    assert!(listed >= version(&last));
    let items: Vec<String> =
        list.object.all(2).iter().map(|item| Message::read(item).message(1).text(1)).collect();
    assert_eq!(items, ["a", "b"]);
}

async fn page_in_protobuf_has_the_remaining_item_count(server: Server) {
    server.create_secrets(&["a", "b", "c"]).await;
    let path = with_query(&server.secrets(), &[("limit", "1")]);
    let page = get(&server, &path, PROTOBUF).await;
    let metadata = page.object.message(1);
    assert_eq!(metadata.number(4), 2);
    let rest = server.list(&[("continue", &metadata.text(3))]).await.expect(200);
    assert_eq!((crate::objects::names(&rest), token(&rest)), (vec!["b", "c"], ""));
}

async fn an_empty_list_in_protobuf_has_no_items(server: Server) {
    let list = get(&server, &server.secrets(), PROTOBUF).await;
    assert!(list.object.all(2).is_empty());
    assert_eq!(list.object.message(1).text(3), "");
}

async fn a_long_list_in_protobuf_is_compressed(server: Server) {
    let mut object = secret("long");
    object["data"] = json!({ "k": "QUFB".repeat(60_000) });
    server.create(&server.secrets(), &object).await;
    let headers = [("accept", PROTOBUF), ("accept-encoding", "gzip")];
    let answer = server.call(Method::GET, &server.secrets(), &headers, "").await;
    assert_eq!((answer.code, answer.header("content-encoding")), (200, "gzip"));
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut GzDecoder::new(&answer.bytes[..]), &mut bytes).expect("gzip");
    assert_eq!(Document::read(&bytes).kind, "SecretList");
}

async fn a_watch_in_protobuf_has_lengths_before_its_events(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = server.watch_as(&server.secrets(), PROTOBUF, &[]).await;
    assert_eq!(watch.headers["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
    server.label("a", "x", "1").await;
    server.delete(&server.secret_path("a")).await.expect(200);
    for expected in ["ADDED", "MODIFIED", "DELETED"] {
        let (kind, document) = event(&watch.frame().await);
        assert_eq!((kind.as_str(), document.kind.as_str()), (expected, "Secret"));
        assert_eq!(document.name(), "a");
    }
}

async fn a_streaming_list_in_protobuf_ends_with_a_bookmark(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = server.watch_as(&server.secrets(), PROTOBUF, &STREAMING).await;
    assert_eq!(event(&watch.frame().await).0, "ADDED");
    let (kind, bookmark) = event(&watch.frame().await);
    assert_eq!((kind.as_str(), bookmark.kind.as_str()), ("BOOKMARK", "Secret"));
    let annotation = bookmark.object.message(1).message(12);
    assert_eq!(
        (annotation.text(1).as_str(), annotation.text(2).as_str()),
        ("k8s.io/initial-events-end", "true")
    );
}

async fn a_bookmark_of_pods_in_protobuf_is_an_empty_pod(server: Server) {
    let mut watch = server.watch_as(&server.core("pods"), PROTOBUF, &STREAMING).await;
    let (kind, bookmark) = event(&watch.frame().await);
    assert_eq!((kind.as_str(), bookmark.kind.as_str(), bookmark.name().as_str()), ("BOOKMARK", "Pod", ""));
    // Spec and status are encoded with their empty fields, because these fields are not pointers.
    assert_eq!((bookmark.object.message(2).text(3), bookmark.object.message(3).text(1)), Default::default());
}

async fn an_error_within_a_watch_in_protobuf(server: Server) {
    let future = [("resourceVersion", "999999999")];
    let parameters = [&STREAMING[..], &future].concat();
    let mut watch = server.watch_as(&server.secrets(), PROTOBUF, &parameters).await;
    let (kind, status) = event(&watch.frame().await);
    assert_eq!((kind.as_str(), status.api_version.as_str(), status.kind.as_str()), ("ERROR", "v1", "Status"));
    assert_eq!((status.object.text(4).as_str(), status.object.number(6)), ("Timeout", 504));
    let cause = status.object.message(5).message(4);
    assert_eq!(cause.text(1), "ResourceVersionTooLarge");
    watch.ends().await;
}

async fn writes_are_answered_in_protobuf(server: Server) {
    let write = async |method: Method, path: &str, content_type: &str, body: &Value, code: u16| {
        let headers = [("accept", PROTOBUF), ("content-type", content_type)];
        let answer = server.call(method, path, &headers, body.to_string()).await;
        assert_eq!((answer.code, answer.header("content-type")), (code, PROTOBUF), "{}", answer.text());
        Document::read(&answer.bytes)
    };
    let created = write(Method::POST, &server.secrets(), JSON, &secret("a"), 201).await;
    assert_eq!((created.kind.as_str(), created.name().as_str()), ("Secret", "a"));
    let path = server.secret_path("a");
    let updated = write(Method::PUT, &path, JSON, &labelled("a", "x", "1"), 200).await;
    assert_eq!(updated.object.message(1).message(11).text(2), "1");
    let patch = json!({ "metadata": { "labels": { "x": "2" } } });
    let patched = write(Method::PATCH, &path, MERGE, &patch, 200).await;
    assert_eq!(patched.object.message(1).message(11).text(2), "2");
}

async fn a_delete_is_answered_with_a_status_in_protobuf(server: Server) {
    let object = server.create_secrets(&["a"]).await;
    let answer = server.call(Method::DELETE, &server.secret_path("a"), &[("accept", PROTOBUF)], "").await;
    assert_eq!((answer.code, answer.header("content-type")), (200, PROTOBUF));
    let status = Document::read(&answer.bytes);
    assert_eq!((status.kind.as_str(), status.object.text(2).as_str()), ("Status", "Success"));
    let details = status.object.message(5);
    assert_eq!((details.text(1).as_str(), details.text(6).as_str()), (name(&object), uid(&object)));
}

async fn a_refusal_in_protobuf(server: Server) {
    let answer = server.get_as(&server.secret_path("a"), PROTOBUF).await;
    assert_eq!((answer.code, answer.header("content-type")), (404, PROTOBUF));
    let status = Document::read(&answer.bytes);
    assert_eq!((status.api_version.as_str(), status.kind.as_str()), ("v1", "Status"));
    let object = &status.object;
    assert_eq!((object.text(3).as_str(), object.text(4).as_str()), ("secrets \"a\" not found", "NotFound"));
    assert_eq!(object.number(6), 404);
}

async fn error_is_in_json_if_only_metadata_is_accepted(server: Server) {
    let answer = server.get_as(&server.secret_path("a"), METADATA).await;
    answer.refused(404, "NotFound", "secrets \"a\" not found");
}

async fn a_scale_in_protobuf(server: Server) {
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &deployment("a")).await;
    let scale = get(&server, &format!("{path}/a/scale"), PROTOBUF).await;
    assert_eq!((scale.api_version.as_str(), scale.kind.as_str()), ("autoscaling/v1", "Scale"));
    assert_eq!((scale.object.message(2).number(1), scale.object.message(3).text(2).as_str()), (0, "app=a"));
}

async fn metadata_alone_in_protobuf(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let object = get(&server, &server.secret_path("a"), METADATA).await;
    let kind = (object.api_version.as_str(), object.kind.as_str());
    assert_eq!((kind, object.name().as_str()), (("meta.k8s.io/v1", "PartialObjectMetadata"), "a"));
    let list = get(&server, &server.secrets(), METADATA_LIST).await;
    assert_eq!((list.kind.as_str(), list.object.all(2).len()), ("PartialObjectMetadataList", 2));
    let first = Message::read(list.object.all(2)[0]);
    assert_eq!(first.message(1).text(1), "a");
}

async fn metadata_alone_of_a_watch_in_protobuf(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = server.watch_as(&server.secrets(), METADATA, &[]).await;
    let (kind, object) = event(&watch.frame().await);
    assert_eq!((kind.as_str(), object.kind.as_str()), ("ADDED", "PartialObjectMetadata"));
    assert_eq!(object.name(), "a");
}

async fn tables_in_protobuf_are_not_acceptable(server: Server) {
    const TABLE: &str = ";as=Table;g=meta.k8s.io;v=v1";
    let answer = server.get_as(&server.secrets(), &format!("{PROTOBUF}{TABLE}")).await;
    assert_eq!(answer.code, 406, "{}", answer.text());
    let accept = format!("{PROTOBUF}{TABLE},application/json{TABLE}");
    assert_eq!(server.get_as(&server.secrets(), &accept).await.expect(200)["kind"], "Table");
}

async fn custom_objects_in_protobuf_are_not_acceptable(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let answer = server.get_as(&widgets.path(), PROTOBUF).await;
    let message = "only the following media types are accepted: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    assert_eq!(answer.code, 406, "{}", answer.text());
    assert!(answer.text().contains(message), "{}", answer.text());
    let answer = server.get_as(&widgets.path(), &format!("{PROTOBUF},application/json")).await;
    assert_eq!(answer.expect(200)["items"][0]["spec"]["color"], "red");
}

async fn metadata_alone_of_custom_objects_in_protobuf(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let object = get(&server, &format!("{}/a", widgets.path()), METADATA).await;
    assert_eq!((object.kind.as_str(), object.name().as_str()), ("PartialObjectMetadata", "a"));
    let mut watch = server.watch_as(&widgets.path(), METADATA, &[]).await;
    assert_eq!(event(&watch.frame().await).1.kind, "PartialObjectMetadata");
}

async fn accept_qualities_select_the_encoding(server: Server) {
    server.create_secrets(&["a"]).await;
    for (accept, expected) in [
        (format!("application/json;q=0.8,{PROTOBUF}"), PROTOBUF),
        (format!("application/json,{PROTOBUF}"), JSON),
        (format!("application/json;q=0.1,{PROTOBUF};q=0.2,text/html"), PROTOBUF),
        (format!("{PROTOBUF};q=0.5,application/json;q=0.5"), PROTOBUF),
    ] {
        let answer = server.get_as(&server.secret_path("a"), &accept).await;
        assert_eq!((answer.code, answer.header("content-type")), (200, expected), "{accept}");
    }
}

async fn wildcard_in_accept_has_the_lowest_rank(server: Server) {
    server.create_secrets(&["a"]).await;
    for (accept, expected) in
        [(format!("*/*,{PROTOBUF};q=0.1"), PROTOBUF), ("text/html,*/*;q=0.1".to_owned(), JSON)]
    {
        let answer = server.get_as(&server.secret_path("a"), &accept).await;
        assert_eq!((answer.code, answer.header("content-type")), (200, expected), "{accept}");
    }
}

async fn secret_can_be_created_in_protobuf(server: Server) {
    // This body omits empty fields. Go sends them, but the server does not require them.
    let metadata = b"\x0a\x03\x0a\x01p";
    let data = b"\x12\x06\x0a\x01k\x12\x01\xff";
    let raw = [&metadata[..], data].concat();
    let type_meta = b"\x0a\x0c\x0a\x02v1\x12\x06Secret";
    let body = [b"k8s\0", &type_meta[..], &[0x12, u8::try_from(raw.len()).expect("short")], &raw].concat();
    let headers = [("content-type", PROTOBUF)];
    let created = server.call(Method::POST, &server.secrets(), &headers, body).await.expect(201);
    assert_eq!((name(&created), &created["data"]), ("p", &json!({ "k": "/w==" })));
}

async fn time_in_protobuf_has_whole_seconds(server: Server) {
    let mut event = Vec::new();
    put_nested(&mut event, 1, |metadata| put_bytes(metadata, 1, b"a"));
    put_nested(&mut event, 2, |involved_object| put_bytes(involved_object, 2, server.namespace.as_bytes()));
    put_nested(&mut event, 6, |first_timestamp| {
        put_number(first_timestamp, 1, 5);
        put_number(first_timestamp, 2, 500_000_000);
    });
    let mut body = b"k8s\0".to_vec();
    put_nested(&mut body, 1, |type_meta| {
        put_bytes(type_meta, 1, b"v1");
        put_bytes(type_meta, 2, b"Event");
    });
    put_bytes(&mut body, 2, &event);
    let headers = [("content-type", PROTOBUF)];
    let created = server.call(Method::POST, &server.core("events"), &headers, body).await.expect(201);
    assert_eq!(created["firstTimestamp"], "1970-01-01T00:00:05Z");
}

async fn time_before_1970_in_protobuf_is_rounded_down(server: Server) {
    let path = server.group("coordination.k8s.io/v1", "leases");
    let spec = json!({ "renewTime": "1969-12-31T23:59:59.500000Z" });
    server.create(&path, &json!({ "metadata": { "name": "a" }, "spec": spec })).await;
    let document = get(&server, &format!("{path}/a"), PROTOBUF).await;
    let time = document.object.message(2).message(4);
    assert_eq!((time.number(1).cast_signed(), time.number(2)), (-1, 500_000_000));
}

async fn null_in_a_map_of_strings_is_an_empty_string(server: Server) {
    let path = server.core("configmaps");
    let map = json!({ "metadata": { "name": "a" }, "data": { "a": "1", "b": null } });
    let created = server.create(&path, &map).await;
    assert_eq!(created["data"], json!({ "a": "1", "b": "" }));
    let map = get(&server, &format!("{path}/a"), PROTOBUF).await;
    let entries = map.object.all(2);
    let entries: Vec<Message> = entries.into_iter().map(Message::read).collect();
    let entries: Vec<_> = entries.iter().map(|entry| (entry.text(1), entry.text(2))).collect();
    assert_eq!(entries, [("a", "1"), ("b", "")].map(|(key, value)| (key.to_owned(), value.to_owned())));

    let path = server.core("services");
    let spec = json!({ "ports": [{ "port": 80 }], "selector": { "x": null } });
    server.create(&path, &json!({ "metadata": { "name": "a" }, "spec": spec })).await;
    let service = get(&server, &format!("{path}/a"), PROTOBUF).await;
    let selector = service.object.message(2).message(2);
    assert_eq!((selector.text(1).as_str(), selector.text(2).as_str()), ("x", ""));
}

async fn schema_of_additional_properties_allows_them(server: Server) {
    let widgets = Widgets::of(&server);
    let mut definition = widgets.definition();
    let tags = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
        let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["properties"]["tags"] = tags.clone();
    }
    server.create(DEFINITIONS, &definition).await;
    let document = get(&server, &widgets.definition_path(), PROTOBUF).await;
    let version = Message::read(document.object.message(2).all(7)[0]);
    let property = |schema: &Message, index: usize| Message::read(schema.all(29)[index]).message(2);
    // The properties are sorted by their names.
    let spec = property(&version.message(4).message(1), 0);
    let of_tags = property(&spec, 2).message(30);
    assert_eq!((of_tags.number(1), of_tags.message(2).text(5).as_str()), (1, "string"));
}
