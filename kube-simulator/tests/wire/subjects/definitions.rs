//! Custom resource definitions: resources that are added and removed while the server runs.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::custom::{DEFINITIONS, Widgets};
use crate::objects::names;
use crate::scenario::{Scenario, scenario};
use crate::server::{MERGE, POLL_INTERVAL, Server};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(an_undefined_resource_is_not_found),
        scenario(a_definition_becomes_established),
        scenario(definition_gets_default_names),
        scenario(null_fields_of_a_definition_are_absent),
        scenario(definition_must_be_named_after_its_resource),
        scenario(definition_must_have_one_storage_version),
        scenario(definition_must_have_different_version_names),
        scenario(definition_must_have_a_known_scope),
        scenario(update_of_a_definition_needs_a_version),
        scenario(kind_of_a_definition_cannot_be_changed),
        scenario(stored_version_cannot_be_removed),
        scenario(a_defined_resource_is_in_discovery),
        scenario(a_new_definition_has_an_empty_list),
        scenario(a_deleted_definition_removes_its_resource),
        scenario(a_deleted_definition_ends_the_watches_of_its_resource),
        scenario(a_recreated_definition_has_no_objects),
        scenario(unserved_version_is_not_found),
        scenario(a_version_can_stop_being_served),
        scenario(objects_are_kept_without_a_served_version),
        scenario(definition_being_deleted_accepts_no_new_objects),
        scenario(definition_being_deleted_is_terminating),
        scenario(definition_held_by_a_finalizer_stays_served),
        scenario(first_delete_of_a_definition_ignores_the_policy),
        scenario(changed_definition_ends_watches_of_all_versions),
        scenario(list_has_the_list_kind_of_the_definition),
        scenario(objects_are_the_same_in_each_version),
    ]
}

async fn an_undefined_resource_is_not_found(server: Server) {
    let widgets = Widgets::of(&server);
    let answer = server.get(&widgets.path()).await;
    assert_eq!((answer.code, answer.text().as_str()), (404, "404 page not found\n"));
}

/// Returns the type and the status of each condition of a custom resource definition.
fn conditions(definition: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().map(|condition| (text(&condition["type"]), text(&condition["status"]))).collect()
}

async fn a_definition_becomes_established(server: Server) {
    let widgets = Widgets::of(&server);
    let selector = format!("metadata.name={}", widgets.name());
    let mut watch = server.watch_path(DEFINITIONS, &[("fieldSelector", &selector)]).await;
    server.create(DEFINITIONS, &widgets.definition()).await;
    let wanted = ["NamesAccepted", "Established"].map(|name| (name.to_owned(), "True".to_owned()));
    loop {
        let event = watch.event().await.expect("the stream continues");
        let given = conditions(&event["object"]);
        if wanted.iter().all(|condition| given.contains(condition)) {
            assert_eq!(event["object"]["status"]["storedVersions"], json!(["v1"]));
            return;
        }
    }
}

async fn definition_gets_default_names(server: Server) {
    let widgets = Widgets::of(&server);
    let mut definition = widgets.definition();
    definition["spec"]["names"] = json!({ "plural": "widgets", "kind": "Widget" });
    let created = server.create(DEFINITIONS, &definition).await;
    let names = &created["spec"]["names"];
    assert_eq!((&names["singular"], &names["listKind"]), (&json!("widget"), &json!("WidgetList")));
    assert_eq!(created["spec"]["conversion"], json!({ "strategy": "None" }));
    assert_eq!(created["metadata"]["generation"], 1);
}

async fn null_fields_of_a_definition_are_absent(server: Server) {
    let mut definition = Widgets::of(&server).definition();
    for field in ["singular", "shortNames", "categories"] {
        definition["spec"]["names"][field] = Value::Null;
    }
    for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
        version["subresources"] = Value::Null;
        version["additionalPrinterColumns"] = Value::Null;
    }
    let created = server.create(DEFINITIONS, &definition).await;
    assert_eq!(created["spec"]["names"]["singular"], "widget");
    assert!(created["spec"]["versions"][0].get("subresources").is_none(), "{created}");
}

async fn definition_must_be_named_after_its_resource(server: Server) {
    let widgets = Widgets::of(&server);
    let (mut definition, name) = (widgets.definition(), format!("gadgets.{}", widgets.group));
    definition["metadata"]["name"] = name.as_str().into();
    let message = format!(
        "CustomResourceDefinition.apiextensions.k8s.io \"{name}\" is invalid: metadata.name: Invalid value: \
         \"{name}\": must be spec.names.plural+\".\"+spec.group"
    );
    let refusal = server.post(DEFINITIONS, &definition).await.refused(422, "Invalid", &message);
    refusal.has_causes(&[("FieldValueInvalid", "metadata.name")]);
}

async fn a_defined_resource_is_in_discovery(server: Server) {
    let widgets = Widgets::define(&server).await;
    let path = format!("/apis/{}/v1", widgets.group);
    // The server serves widgets once it has accepted their names. The condition `Established`,
    // which discovery waits for, follows later.
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    while server.get(&path).await.code != 200 {
        ticks.tick().await;
    }
    // The newest version comes first.
    let group = server.get(&format!("/apis/{}", widgets.group)).await.expect(200);
    let versions = group["versions"].as_array().expect("versions").iter().map(|version| &version["version"]);
    assert_eq!(versions.collect::<Vec<_>>(), ["v2", "v1"]);
    assert_eq!(group["preferredVersion"]["version"], "v2");
    let list = server.get(&path).await.expect(200);
    assert_eq!(list["groupVersion"], format!("{}/v1", widgets.group));
    let resources = list["resources"].as_array().expect("resources");
    let widget = resources.iter().find(|resource| resource["name"] == "widgets").expect("widgets");
    assert_eq!((&widget["kind"], &widget["namespaced"]), (&json!("Widget"), &json!(true)));
    assert_eq!((&widget["singularName"], &widget["shortNames"]), (&json!("widget"), &json!(["wdg"])));
    for subresource in ["widgets/status", "widgets/scale"] {
        let found = resources.iter().find(|resource| resource["name"] == subresource).expect(subresource);
        assert_eq!(found["verbs"], json!(["get", "patch", "update"]), "{found}");
    }
}

async fn a_new_definition_has_an_empty_list(server: Server) {
    let widgets = Widgets::define(&server).await;
    let list = server.get(&widgets.path()).await.expect(200);
    assert_eq!((&list["kind"], &list["items"]), (&json!("WidgetList"), &json!([])));
    assert_eq!(list["apiVersion"], format!("{}/v1", widgets.group));
}

async fn a_deleted_definition_removes_its_resource(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let deleted = server.delete(&widgets.definition_path()).await.expect(200);
    assert!(deleted["metadata"]["deletionTimestamp"].is_string(), "{deleted}");
    assert_eq!(widgets.until_not_served().await.text(), "404 page not found\n");
}

async fn a_deleted_definition_ends_the_watches_of_its_resource(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let mut watch = server.watch_path(&widgets.path(), &[]).await;
    watch.expect("ADDED").await;
    server.delete(&widgets.definition_path()).await.expect(200);
    // The server deletes the object first, and usually sends the deletion to the watch. A real
    // server may end the stream before it sends the deletion.
    let rest = watch.rest().await;
    assert!(rest == ["DELETED a"] || (server.is_real() && rest.is_empty()), "{rest:?}");
}

async fn a_recreated_definition_has_no_objects(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    server.delete(&widgets.definition_path()).await.expect(200);
    widgets.until_not_served().await;
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    while server.post(DEFINITIONS, &widgets.definition()).await.code != 201 {
        ticks.tick().await;
    }
    assert_eq!(names(&widgets.served().await), [""; 0]);
}

async fn unserved_version_is_not_found(server: Server) {
    let widgets = Widgets::define(&server).await;
    let answer = server.get(&widgets.path_in("v3")).await;
    assert_eq!((answer.code, answer.text().as_str()), (404, "404 page not found\n"));
}

async fn a_version_can_stop_being_served(server: Server) {
    let widgets = Widgets::define(&server).await;
    // The server fills the watch cache of each version separately.
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    while server.get(&widgets.path_in("v2")).await.code != 200 {
        ticks.tick().await;
    }
    let mut versions = widgets.definition()["spec"]["versions"].clone();
    versions[1]["served"] = false.into();
    let change = json!({ "spec": { "versions": versions } });
    server.patch(&widgets.definition_path(), MERGE, &change).await.expect(200);
    while server.get(&widgets.path_in("v2")).await.code != 404 {
        ticks.tick().await;
    }
    widgets.served().await;
}

async fn objects_are_the_same_in_each_version(server: Server) {
    let widgets = Widgets::define(&server).await;
    let stored = widgets.create("a", "red").await;
    let path = format!("{}/a", widgets.path_in("v2"));
    let mut other = server.get(&path).await.expect(200);
    assert_eq!(other["apiVersion"], format!("{}/v2", widgets.group));
    assert_eq!((&other["spec"], &other["metadata"]["uid"]), (&stored["spec"], &stored["metadata"]["uid"]));
    let mut watch = server.watch_path(&widgets.path_in("v2"), &[]).await;
    assert_eq!(watch.expect("ADDED").await["apiVersion"], format!("{}/v2", widgets.group));
    let list = server.get(&widgets.path_in("v2")).await.expect(200);
    assert_eq!(list["items"][0]["apiVersion"], format!("{}/v2", widgets.group));
    other["spec"]["color"] = "blue".into();
    let written = server.put(&path, &other).await.expect(200);
    assert_eq!(written["apiVersion"], format!("{}/v2", widgets.group));
    let stored = server.get(&format!("{}/a", widgets.path())).await.expect(200);
    assert_eq!(
        (&stored["apiVersion"], &stored["spec"]["color"]),
        (&json!(format!("{}/v1", widgets.group)), &json!("blue"))
    );
}

async fn definition_must_have_one_storage_version(server: Server) {
    for (first, second) in [(false, false), (true, true)] {
        let mut definition = Widgets::of(&server).definition();
        definition["spec"]["versions"][0]["storage"] = first.into();
        definition["spec"]["versions"][1]["storage"] = second.into();
        let message = "must have exactly one version marked as storage version";
        let refusal = server.post(DEFINITIONS, &definition).await.refused_with(422, "Invalid", message);
        let causes = refusal.details()["causes"].as_array().expect("causes");
        assert!(causes.iter().any(|cause| cause["field"] == "spec.versions"), "{}", refusal.0);
    }
}

async fn definition_must_have_different_version_names(server: Server) {
    let mut definition = Widgets::of(&server).definition();
    definition["spec"]["versions"][1]["name"] = "v1".into();
    let message = "must contain unique version names";
    let refusal = server.post(DEFINITIONS, &definition).await.refused_with(422, "Invalid", message);
    let causes = refusal.details()["causes"].as_array().expect("causes");
    assert!(causes.iter().any(|cause| cause["field"] == "spec.versions"), "{}", refusal.0);
}

async fn definition_must_have_a_known_scope(server: Server) {
    let mut definition = Widgets::of(&server).definition();
    definition["spec"]["scope"] = "Everywhere".into();
    let message =
        "spec.scope: Unsupported value: \"Everywhere\": supported values: \"Cluster\", \"Namespaced\"";
    let refusal = server.post(DEFINITIONS, &definition).await.refused_with(422, "Invalid", message);
    refusal.has_causes(&[("FieldValueNotSupported", "spec.scope")]);
}

async fn update_of_a_definition_needs_a_version(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut definition = widgets.definition();
    for version in [None, Some("0")] {
        definition["metadata"]["resourceVersion"] = version.into();
        let answer = server.put(&widgets.definition_path(), &definition).await;
        let message = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
        let refusal = answer.refused_with(422, "Invalid", message);
        refusal.is_about("apiextensions.k8s.io", "customresourcedefinitions", &widgets.name());
        refusal.has_causes(&[("FieldValueInvalid", "metadata.resourceVersion")]);
    }
}

async fn patch_definition(widgets: &Widgets<'_>, server: &Server, spec: &Value) -> Answer {
    server.patch(&widgets.definition_path(), MERGE, &json!({ "spec": spec })).await
}

async fn kind_of_a_definition_cannot_be_changed(server: Server) {
    let widgets = Widgets::define(&server).await;
    let established = ("Established".to_owned(), "True".to_owned());
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    while !conditions(&server.get(&widgets.definition_path()).await.body).contains(&established) {
        ticks.tick().await;
    }
    let answer = patch_definition(&widgets, &server, &json!({ "names": { "kind": "Gadget" } })).await;
    let message = "spec.names.kind: Invalid value: \"Gadget\": field is immutable";
    answer.refused_with(422, "Invalid", message).has_causes(&[("FieldValueInvalid", "spec.names.kind")]);
}

async fn stored_version_cannot_be_removed(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut version = widgets.definition()["spec"]["versions"][1].clone();
    version["storage"] = true.into();
    let answer = patch_definition(&widgets, &server, &json!({ "versions": [version] })).await;
    let message = "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions";
    let refusal = answer.refused_with(422, "Invalid", message);
    refusal.has_causes(&[("FieldValueInvalid", "status.storedVersions[0]")]);
}

/// Changes whether the versions of widgets are served.
async fn serve(widgets: &Widgets<'_>, server: &Server, served: bool) {
    let mut versions = widgets.definition()["spec"]["versions"].clone();
    for version in versions.as_array_mut().expect("versions") {
        version["served"] = served.into();
    }
    patch_definition(widgets, server, &json!({ "versions": versions })).await.expect(200);
}

async fn objects_are_kept_without_a_served_version(server: Server) {
    let widgets = Widgets::define(&server).await;
    let created = widgets.create("a", "red").await;
    serve(&widgets, &server, false).await;
    widgets.until_not_served().await;
    serve(&widgets, &server, true).await;
    assert_eq!(widgets.served().await["items"], json!([created]));
}

async fn definition_being_deleted_accepts_no_new_objects(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut held = widgets.widget("a", "red");
    held["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&widgets.path(), &held).await;
    server.delete(&widgets.definition_path()).await.expect(200);
    let probe = format!("{}?dryRun=All", widgets.path());
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    // A real server observes the deletion a little later.
    let answer = loop {
        let answer = server.post(&probe, &widgets.widget("b", "red")).await;
        if answer.code == 403 {
            break answer;
        }
        ticks.tick().await;
    };
    let message = format!(
        "widgets.{} \"b\" is forbidden: create not allowed while custom resource definition is terminating",
        widgets.group
    );
    answer.refused(403, "Forbidden", &message).is_about(&widgets.group, "widgets", "b");
    let released = json!({ "metadata": { "finalizers": null } });
    server.patch(&format!("{}/a", widgets.path()), MERGE, &released).await.expect(200);
}

/// Returns the status and the reason of the condition `Terminating`.
fn terminating(definition: &Value) -> String {
    let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == "Terminating");
    let text = |field: &str| found.and_then(|condition| condition[field].as_str()).unwrap_or_default();
    format!("{} {}", text("status"), text("reason"))
}

async fn definition_being_deleted_is_terminating(server: Server) {
    let widgets = Widgets::define(&server).await;
    let mut held = widgets.widget("a", "red");
    held["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(&widgets.path(), &held).await;
    let deleted = server.delete(&widgets.definition_path()).await.expect(200);
    assert_eq!(terminating(&deleted), "True InstanceDeletionPending", "{deleted}");
    let metadata = &deleted["metadata"];
    assert_eq!(metadata["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!((&metadata["generation"], metadata.get("deletionGracePeriodSeconds")), (&json!(1), None));
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    loop {
        let definition = server.get(&widgets.definition_path()).await.expect(200);
        if terminating(&definition) == "True InstanceDeletionInProgress" {
            break;
        }
        ticks.tick().await;
    }
    let released = json!({ "metadata": { "finalizers": null } });
    server.patch(&format!("{}/a", widgets.path()), MERGE, &released).await.expect(200);
}

async fn definition_held_by_a_finalizer_stays_served(server: Server) {
    let widgets = Widgets::of(&server);
    let mut definition = widgets.definition();
    definition["metadata"]["finalizers"] = json!(["wire.test/hold"]);
    server.create(DEFINITIONS, &definition).await;
    widgets.served().await;
    widgets.create("a", "red").await;
    server.delete(&widgets.definition_path()).await.expect(200);
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    let cleaned = loop {
        let definition = server.get(&widgets.definition_path()).await.expect(200);
        if definition["metadata"]["finalizers"] == json!(["wire.test/hold"]) {
            break definition;
        }
        ticks.tick().await;
    };
    assert_eq!(terminating(&cleaned), "False InstanceDeletionCompleted", "{cleaned}");
    // New objects are accepted again.
    assert_eq!(names(&widgets.served().await), [""; 0]);
    let released = json!({ "metadata": { "finalizers": null } });
    server.patch(&widgets.definition_path(), MERGE, &released).await.expect(200);
    widgets.until_not_served().await;
}

async fn first_delete_of_a_definition_ignores_the_policy(server: Server) {
    let widgets = Widgets::define(&server).await;
    let options = json!({ "propagationPolicy": "Foreground" });
    let deleted = server.delete_with(&widgets.definition_path(), &options).await.expect(200);
    let finalizers = &deleted["metadata"]["finalizers"];
    assert_eq!(finalizers, &json!(["customresourcecleanup.apiextensions.k8s.io"]));
}

async fn changed_definition_ends_watches_of_all_versions(server: Server) {
    let widgets = Widgets::define(&server).await;
    widgets.create("a", "red").await;
    let mut watch = server.watch_path(&widgets.path_in("v2"), &[]).await;
    watch.expect("ADDED").await;
    // This change concerns only the other version.
    let mut versions = widgets.definition()["spec"]["versions"].clone();
    versions[0]["additionalPrinterColumns"] =
        json!([{ "name": "Color", "type": "string", "jsonPath": ".spec.color" }]);
    patch_definition(&widgets, &server, &json!({ "versions": versions })).await.expect(200);
    watch.ends().await;
}

async fn list_has_the_list_kind_of_the_definition(server: Server) {
    let widgets = Widgets::of(&server);
    let mut definition = widgets.definition();
    definition["spec"]["names"]["listKind"] = "WidgetCollection".into();
    server.create(DEFINITIONS, &definition).await;
    assert_eq!(widgets.served().await["kind"], "WidgetCollection");
}
