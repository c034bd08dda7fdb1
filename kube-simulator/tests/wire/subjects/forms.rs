//! Forms of responses: content types, and metadata-only objects.

use serde_json::json;

use crate::answer::Refusal;
use crate::custom::Widgets;
use crate::objects::{labelled, names, secret, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON, PROTOBUF, Server, TABLE};

/// The media types of a metadata-only object and list.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(json_is_the_default_form),
        scenario(json_is_selected_after_unsupported_media_types),
        scenario(an_unsupported_form_is_not_acceptable),
        scenario(unacceptable_form_is_refused_before_the_watch),
        scenario(an_unknown_form_of_object_is_not_acceptable),
        scenario(metadata_alone_of_an_object),
        scenario(metadata_alone_of_a_list),
        scenario(metadata_alone_of_a_watch),
        scenario(metadata_alone_of_a_new_object),
        scenario(metadata_alone_is_paged_like_any_list),
        scenario(metadata_alone_has_the_requested_version),
        scenario(a_refusal_is_a_status_in_any_form),
        scenario(answer_to_a_delete_is_a_status_in_any_form),
        scenario(delete_options_of_an_unknown_type_are_refused),
        scenario(an_error_within_a_watch_is_a_status_in_any_form),
        scenario(an_error_within_a_watch_of_etcd_is_a_status_in_any_form).alone(),
        scenario(list_as_single_metadata_object_is_not_acceptable),
        scenario(object_as_metadata_list_is_not_acceptable),
        scenario(protobuf_is_preferred_to_json_if_both_are_accepted),
        scenario(yaml_is_supported),
        scenario(numbers_in_yaml_can_be_octal_or_have_a_fraction_of_zero),
        scenario(watches_in_yaml_are_not_acceptable),
    ]
}

async fn json_is_the_default_form(server: Server) {
    server.create_secrets(&["a"]).await;
    for accept in [
        "*/*",
        "",
        "application/json;charset=utf-8",
        "application/json;pretty=1",
        "application/json;drop=metadata.managedFields",
    ] {
        let answer = server.get_as(&server.secret_path("a"), accept).await;
        assert_eq!(answer.header("content-type"), JSON, "{accept}");
        assert_eq!(answer.expect(200)["kind"], "Secret", "{accept}");
    }
}

async fn json_is_selected_after_unsupported_media_types(server: Server) {
    server.create_secrets(&["a"]).await;
    let accept = "text/html, application/xml;q=0.9, application/json;q=0.5";
    assert_eq!(server.get_as(&server.secret_path("a"), accept).await.expect(200)["kind"], "Secret");
    let accept = format!("text/html;as=Table,{METADATA}");
    let object = server.get_as(&server.secret_path("a"), &accept).await.expect(200);
    assert_eq!(object["kind"], "PartialObjectMetadata");
}

async fn an_unsupported_form_is_not_acceptable(server: Server) {
    server.create_secrets(&["a"]).await;
    for accept in ["text/html", "application/xml", "application/*"] {
        let refusal = server.get_as(&server.secret_path("a"), accept).await;
        refusal.refused_with(406, "NotAcceptable", "application/json");
    }
}

async fn unacceptable_form_is_refused_before_the_watch(server: Server) {
    let path = format!("{}?watch=true", server.secrets());
    server.get_as(&path, "text/html").await.refused_with(406, "NotAcceptable", "application/json");
}

async fn an_unknown_form_of_object_is_not_acceptable(server: Server) {
    server.create_secrets(&["a"]).await;
    for form in ["as=Summary;g=meta.k8s.io;v=v1", "as=PartialObjectMetadata;g=meta.k8s.io;v=v9"] {
        let answer = server.get_as(&server.secret_path("a"), &format!("application/json;{form}")).await;
        let message = "only the following media types are accepted: application/json";
        answer.refused_with(406, "NotAcceptable", message);
    }
}

async fn metadata_alone_of_an_object(server: Server) {
    let created = server.create(&server.secrets(), &labelled("a", "x", "1")).await;
    let object = server.get_as(&server.secret_path("a"), METADATA).await.expect(200);
    let expected = json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": created["metadata"],
    });
    assert_eq!(object, expected);
}

async fn metadata_alone_of_a_list(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let list = server.get_as(&server.secrets(), METADATA_LIST).await.expect(200);
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!(names(&list), ["a", "b"]);
    // Unlike the items of other lists, these have a kind.
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert!(list["items"][0].get("type").is_none(), "{list}");
}

async fn metadata_alone_of_a_watch(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut watch = server.watch_as(&server.secrets(), METADATA, &[("allowWatchBookmarks", "true")]).await;
    let added = watch.expect("ADDED").await;
    assert_eq!((&added["kind"], added.get("type")), (&json!("PartialObjectMetadata"), None));
    let bookmark = watch.expect("BOOKMARK").await;
    let expected = json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {
            "resourceVersion": version(&bookmark).to_string(),
            "annotations": { "k8s.io/initial-events-end": "true" },
        },
    });
    assert_eq!(bookmark, expected);
    server.delete(&server.secret_path("a")).await.expect(200);
    assert_eq!(watch.expect("DELETED").await["kind"], "PartialObjectMetadata");
}

async fn metadata_alone_of_a_new_object(server: Server) {
    let headers = [("accept", METADATA), ("content-type", JSON)];
    let body = secret("a").to_string();
    let answer = server.call(http::Method::POST, &server.secrets(), &headers, &body).await;
    assert_eq!(answer.expect(201)["kind"], "PartialObjectMetadata");
}

async fn metadata_alone_is_paged_like_any_list(server: Server) {
    server.create_secrets(&["a", "b", "c"]).await;
    let list = server.get_as(&format!("{}?limit=2", server.secrets()), METADATA_LIST).await.expect(200);
    assert_eq!((names(&list), &list["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(1)));
}

async fn metadata_alone_has_the_requested_version(server: Server) {
    server.create_secrets(&["a"]).await;
    let old = |form: &str| form.replace("v=v1", "v=v1beta1");
    let object = server.get_as(&server.secret_path("a"), &old(METADATA)).await.expect(200);
    let list = server.get_as(&server.secrets(), &old(METADATA_LIST)).await.expect(200);
    let added = server.watch_as(&server.secrets(), &old(METADATA), &[]).await.expect("ADDED").await;
    for object in [&object, &list, &list["items"][0], &added] {
        assert_eq!(object["apiVersion"], "meta.k8s.io/v1beta1", "{object}");
    }
}

async fn a_refusal_is_a_status_in_any_form(server: Server) {
    server.get_as(&server.secret_path("a"), METADATA).await.refused(
        404,
        "NotFound",
        "secrets \"a\" not found",
    );
}

async fn answer_to_a_delete_is_a_status_in_any_form(server: Server) {
    server.create_secrets(&["a"]).await;
    let headers = [("accept", METADATA)];
    let answer = server.call(http::Method::DELETE, &server.secret_path("a"), &headers, "").await;
    assert_eq!(answer.expect(200)["kind"], "Status");
}

/// Asserts that a watch from an expired version gets a plain `Status`, whatever the form of its
/// objects.
async fn error_event_is_a_plain_status(server: &Server, path: &str, from: &str) {
    for form in [METADATA, TABLE] {
        let mut watch = server.watch_as(path, form, &[("resourceVersion", from)]).await;
        let refusal = Refusal(watch.expect("ERROR").await);
        refusal.is_status(410, "Expired");
        assert!(refusal.message().contains("too old"), "{}", refusal.message());
        watch.ends().await;
    }
}

async fn an_error_within_a_watch_is_a_status_in_any_form(server: Server) {
    let widgets = Widgets::define(&server).await;
    let then = version(&widgets.create("a", "red").await).to_string();
    widgets.create("b", "red").await;
    widgets.forget_history().await;
    error_event_is_a_plain_status(&server, &widgets.path(), &then).await;
}

async fn an_error_within_a_watch_of_etcd_is_a_status_in_any_form(server: Server) {
    let then = version(&server.create_secrets(&["a"]).await).to_string();
    let now = version(&server.create_secrets(&["b", "c"]).await);
    server.compact(now).await;
    error_event_is_a_plain_status(&server, &server.core("events"), &then).await;
}

async fn list_as_single_metadata_object_is_not_acceptable(server: Server) {
    let message =
        "you requested PartialObjectMetadata, but the requested object is a list (*core.SecretList)";
    server.get_as(&server.secrets(), METADATA).await.refused(406, "NotAcceptable", message);
    let events = server.group("events.k8s.io/v1", "events");
    let message = "you requested PartialObjectMetadata, but the requested object is a list (*core.EventList)";
    server.get_as(&events, METADATA).await.refused(406, "NotAcceptable", message);
}

async fn object_as_metadata_list_is_not_acceptable(server: Server) {
    server.create_secrets(&["a"]).await;
    let message =
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.Secret)";
    server.get_as(&server.secret_path("a"), METADATA_LIST).await.refused(406, "NotAcceptable", message);
}

async fn protobuf_is_preferred_to_json_if_both_are_accepted(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = server.get_as(&server.secret_path("a"), &format!("{PROTOBUF},application/json")).await;
    assert_eq!((answer.code, answer.header("content-type")), (200, PROTOBUF));
    assert!(answer.bytes.starts_with(b"k8s\0"));
}

async fn delete_options_of_an_unknown_type_are_refused(server: Server) {
    server.create_secrets(&["a"]).await;
    let delete = async |media_type: &str, options: &str| {
        let headers = [("content-type", media_type)];
        server.call(http::Method::DELETE, &server.secret_path("a"), &headers, options).await
    };
    let message =
        "the body of the request was in an unknown format - accepted media types include: application/json";
    let answer = delete("application/x-www-form-urlencoded", "{}").await;
    answer.refused_with(415, "UnsupportedMediaType", message);
    delete("application/yaml", "propagationPolicy: Background\n").await.expect(200);
}

async fn yaml_is_supported(server: Server) {
    server.create_secrets(&["a"]).await;
    let answer = server.get_as(&server.secret_path("a"), "application/yaml").await;
    assert_eq!((answer.code, answer.header("content-type")), (200, "application/yaml"));
    assert!(answer.text().starts_with("apiVersion: v1\nkind: Secret\n"));
    let list = server.get_as(&server.secrets(), "application/yaml").await;
    assert!(list.text().contains("\nkind: SecretList\n"), "{}", list.text());
}

async fn numbers_in_yaml_can_be_octal_or_have_a_fraction_of_zero(server: Server) {
    let yaml = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  paused: true
  replicas: 0
  revisionHistoryLimit: 5.0
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers: [{name: main, image: example.test/image}]
      volumes: [{name: files, secret: {secretName: none, defaultMode: 0400}}]
";
    let (path, headers) = (server.group("apps/v1", "deployments"), [("content-type", "application/yaml")]);
    let created = server.call(http::Method::POST, &path, &headers, yaml).await.expect(201);
    assert_eq!(created["spec"]["revisionHistoryLimit"], 5);
    let volume = &created["spec"]["template"]["spec"]["volumes"][0];
    assert_eq!(volume["secret"]["defaultMode"], 0o400);
}

async fn watches_in_yaml_are_not_acceptable(server: Server) {
    let path = format!("{}?watch=true", server.secrets());
    let message = "only the following media types are accepted: application/json;stream=watch, \
                   application/vnd.kubernetes.protobuf;stream=watch";
    let answer = server.get_as(&path, "application/yaml").await;
    assert_eq!(answer.code, 406);
    // The error is in YAML, too; Go wraps its long lines.
    assert!(answer.text().replace("\n  ", " ").contains(message), "{}", answer.text());
}
