//! Discovery of groups, versions and resources.

use serde_json::{Value, json};

use crate::scenario::{Scenario, scenario};
use crate::server::Server;

/// The media types of aggregated discovery, as client-go requests them.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(the_core_has_one_version),
        scenario(the_groups_are_listed_with_their_versions),
        scenario(one_group_can_be_discovered),
        scenario(the_resources_of_the_core),
        scenario(the_resources_of_a_group),
        scenario(cluster_scoped_resource_is_not_namespaced),
        scenario(subresources_are_listed_too),
        scenario(namespaces_have_no_deletecollection),
        scenario(aggregated_discovery_of_groups_on_request),
        scenario(aggregated_discovery_of_the_core_on_request),
        scenario(aggregated_discovery_has_no_beta_version),
        scenario(openapi_v3_has_an_index),
        scenario(schemas_of_built_in_kinds_name_their_fields),
        scenario(openapi_v2_is_served_in_protobuf),
        scenario(discovery_is_read_only),
        scenario(the_root_lists_paths),
        scenario(access_reviews_are_answered),
    ]
}

/// Finds a resource in a list of resources.
fn resource<'a>(list: &'a Value, name: &str) -> &'a Value {
    let resources = list["resources"].as_array().expect("resources");
    resources.iter().find(|resource| resource["name"] == name).unwrap_or_else(|| panic!("{name} in {list}"))
}

async fn the_core_has_one_version(server: Server) {
    let versions = server.get("/api").await.expect(200);
    assert_eq!((&versions["kind"], &versions["versions"]), (&json!("APIVersions"), &json!(["v1"])));
}

const APPS: [(&str, &str); 2] = [("groupVersion", "apps/v1"), ("version", "v1")];

fn is_apps(group: &Value) {
    let version = json!({ APPS[0].0: APPS[0].1, APPS[1].0: APPS[1].1 });
    assert_eq!(group["name"], "apps");
    assert_eq!((&group["versions"], &group["preferredVersion"]), (&json!([version]), &version));
}

async fn the_groups_are_listed_with_their_versions(server: Server) {
    let list = server.get("/apis").await.expect(200);
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("APIGroupList"), &json!("v1")));
    let groups = list["groups"].as_array().expect("groups");
    is_apps(groups.iter().find(|group| group["name"] == "apps").expect("the group `apps`"));
    assert!(groups.iter().all(|group| group["name"] != ""), "the core group must not be listed: {list}");
}

async fn one_group_can_be_discovered(server: Server) {
    for path in ["/apis/apps", "/apis/apps/"] {
        let group = server.get(path).await.expect(200);
        assert_eq!((&group["kind"], &group["apiVersion"]), (&json!("APIGroup"), &json!("v1")));
        is_apps(&group);
    }
}

async fn the_resources_of_the_core(server: Server) {
    let list = server.get("/api/v1").await.expect(200);
    assert_eq!((&list["kind"], &list["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    let secrets = resource(&list, "secrets");
    assert_eq!((&secrets["kind"], &secrets["singularName"]), (&json!("Secret"), &json!("secret")));
    assert_eq!(secrets["namespaced"], true);
    let verbs = json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
    assert_eq!(secrets["verbs"], verbs);
    let pods = resource(&list, "pods");
    assert_eq!((&pods["shortNames"], &pods["categories"]), (&json!(["po"]), &json!(["all"])));
}

async fn the_resources_of_a_group(server: Server) {
    let list = server.get("/apis/apps/v1").await.expect(200);
    assert_eq!((&list["groupVersion"], &list["apiVersion"]), (&json!("apps/v1"), &json!("v1")));
    let deployments = resource(&list, "deployments");
    assert_eq!(
        (&deployments["kind"], &deployments["shortNames"]),
        (&json!("Deployment"), &json!(["deploy"]))
    );
}

async fn cluster_scoped_resource_is_not_namespaced(server: Server) {
    let list = server.get("/api/v1").await.expect(200);
    assert_eq!(resource(&list, "nodes")["namespaced"], false);
    assert_eq!(resource(&list, "namespaces")["shortNames"], json!(["ns"]));
}

async fn subresources_are_listed_too(server: Server) {
    let list = server.get("/apis/apps/v1").await.expect(200);
    let status = resource(&list, "deployments/status");
    assert_eq!(
        (&status["kind"], &status["verbs"]),
        (&json!("Deployment"), &json!(["get", "patch", "update"]))
    );
    let scale = resource(&list, "deployments/scale");
    assert_eq!(
        (&scale["kind"], &scale["group"], &scale["version"]),
        (&json!("Scale"), &json!("autoscaling"), &json!("v1"))
    );
    let list = server.get("/api/v1").await.expect(200);
    assert_eq!(resource(&list, "pods/binding")["verbs"], json!(["create"]));
    let eviction = resource(&list, "pods/eviction");
    assert_eq!((&eviction["kind"], &eviction["group"]), (&json!("Eviction"), &json!("policy")));
}

async fn namespaces_have_no_deletecollection(server: Server) {
    let list = server.get("/api/v1").await.expect(200);
    let verbs = json!(["create", "delete", "get", "list", "patch", "update", "watch"]);
    assert_eq!(resource(&list, "namespaces")["verbs"], verbs);
}

/// Finds a resource in the only version of a group.
fn aggregated<'a>(list: &'a Value, group: &str, name: &str) -> &'a Value {
    let items = list["items"].as_array().expect("items");
    let is_it = |item: &&Value| item["metadata"]["name"].as_str().unwrap_or_default() == group;
    let version = &items.iter().find(is_it).expect("the group")["versions"][0];
    assert_eq!(version["version"], "v1");
    let resources = version["resources"].as_array().expect("resources");
    resources.iter().find(|resource| resource["resource"] == name).expect("the resource")
}

async fn aggregated_discovery_of_groups_on_request(server: Server) {
    let answer = server.get_as("/apis", AGGREGATED).await;
    assert_eq!(
        answer.header("content-type"),
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let list = answer.expect(200);
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
    );
    let deployments = aggregated(&list, "apps", "deployments");
    assert_eq!(
        (&deployments["scope"], &deployments["singularResource"]),
        (&json!("Namespaced"), &json!("deployment"))
    );
    // Built-in kinds omit their own group and version.
    let kind = json!({ "group": "", "version": "", "kind": "Deployment" });
    assert_eq!(deployments["responseKind"], kind);
    let subresources = deployments["subresources"].as_array().expect("subresources");
    for (name, group) in [("scale", "autoscaling"), ("status", "")] {
        let found = subresources.iter().find(|subresource| subresource["subresource"] == name).expect(name);
        assert_eq!(found["responseKind"]["group"], group);
    }
}

async fn aggregated_discovery_of_the_core_on_request(server: Server) {
    let list = server.get_as("/api", AGGREGATED).await.expect(200);
    assert_eq!(aggregated(&list, "", "nodes")["scope"], "Cluster");
}

async fn aggregated_discovery_has_no_beta_version(server: Server) {
    let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let only_beta = format!("{beta},application/json");
    assert_eq!(server.get_as("/apis", &only_beta).await.expect(200)["kind"], "APIGroupList");
    let also_beta = format!("{beta},application/json,{AGGREGATED}");
    let list = server.get_as("/apis", &also_beta).await.expect(200);
    assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
}

async fn openapi_v3_has_an_index(server: Server) {
    let index = server.get("/openapi/v3").await.expect(200);
    for group_version in ["api/v1", "apis/apps/v1"] {
        let path = index["paths"][group_version]["serverRelativeURL"].as_str().expect("a path");
        assert!(path.starts_with(&format!("/openapi/v3/{group_version}?hash=")), "{path}");
        assert!(server.get(path).await.expect(200)["openapi"].is_string());
    }
}

async fn discovery_is_read_only(server: Server) {
    for path in ["/api", "/api/v1", "/apis/apps/v1", "/version"] {
        let message = "the server does not allow this method on the requested resource";
        server.post(path, &json!({})).await.refused(405, "MethodNotAllowed", message);
    }
}

async fn the_root_lists_paths(server: Server) {
    let root = server.get("/").await.expect(200);
    let paths = root["paths"].as_array().expect("paths");
    for path in ["/api", "/api/v1", "/apis", "/apis/apps/v1", "/version"] {
        assert!(paths.contains(&json!(path)), "{path} in {root}");
    }
}

async fn access_reviews_are_answered(server: Server) {
    let question = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": { "verb": "get", "resource": "secrets", "namespace": server.namespace } },
    });
    let answer =
        server.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &question).await.expect(201);
    assert_eq!(
        (&answer["kind"], &answer["status"]["allowed"]),
        (&json!("SelfSubjectAccessReview"), &json!(true))
    );
    assert_eq!(answer["spec"], question["spec"]);
}

async fn schemas_of_built_in_kinds_name_their_fields(server: Server) {
    let document = server.get("/openapi/v3/apis/apps/v1").await.expect(200);
    let schemas = &document["components"]["schemas"];
    let field = |schema: &str, name: &str| schemas[schema]["properties"][name].clone();
    let reference = |value: &Value| {
        let found = value["allOf"][0]["$ref"].as_str().or(value["$ref"].as_str()).expect("a reference");
        found.trim_start_matches("#/components/schemas/").to_owned()
    };
    let spec = reference(&field("io.k8s.api.apps.v1.Deployment", "spec"));
    assert_eq!(spec, "io.k8s.api.apps.v1.DeploymentSpec");
    assert_eq!(field(&spec, "replicas")["type"], "integer");
    let generation = field("io.k8s.api.apps.v1.DeploymentStatus", "observedGeneration");
    assert_eq!((&generation["type"], &generation["format"]), (&json!("integer"), &json!("int64")));
    let pod = "io.k8s.api.core.v1.PodSpec";
    let containers = field(pod, "containers");
    assert_eq!(containers["type"], "array");
    assert_eq!(reference(&containers["items"]), "io.k8s.api.core.v1.Container");
    let labels = field(pod, "nodeSelector");
    assert_eq!(
        (&labels["type"], &labels["additionalProperties"]["type"]),
        (&json!("object"), &json!("string"))
    );
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(reference(&field("io.k8s.api.apps.v1.Deployment", "metadata")), meta);
    assert_eq!(field(meta, "name")["type"], "string");
}

async fn openapi_v2_is_served_in_protobuf(server: Server) {
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let answer = server.get_as("/openapi/v2", accept).await;
    assert_eq!(answer.code, 200);
    let media_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    assert_eq!(answer.header("content-type"), media_type);
    assert!(answer.bytes.starts_with(b"\x0a\x032.0"));
}
