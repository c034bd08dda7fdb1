//! The typed accessors and the facts about built-in kinds, against the server: kinds, names, verbs,
//! subresources, columns, selectable fields, and watches. To include every alpha and beta version,
//! start the server with `--runtime-config=api/all=true` and
//! `--feature-gates=AllAlpha=true,AllBeta=true`.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::within;

/// The data from which the accessors are generated.
const DATA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../xtask/groups.json"));

const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

#[derive(Deserialize)]
struct Data {
    /// The Kubernetes version that the data describes, as a feature of k8s-openapi.
    kubernetes: String,
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    group: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    kinds: Vec<Kind>,
}

/// The facts about a kind. The strings have the format of `groups.json`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Kind {
    kind: String,
    plural: String,
    namespaced: bool,
    short: BTreeSet<String>,
    features: Vec<String>,
    categories: BTreeSet<String>,
    verbs: Vec<String>,
    subresources: BTreeSet<String>,
    columns: Vec<String>,
    fields: Vec<String>,
}

/// The facts about each kind, by the name of the kind.
type Kinds = BTreeMap<String, Kind>;

/// Returns the kinds of the Kubernetes version that the data describes, by `apiVersion`.
fn expected() -> BTreeMap<String, Kinds> {
    let data: Data = serde_json::from_str(DATA).expect("xtask checks the file");
    let mut expected = BTreeMap::new();
    for Group { group, versions } in data.groups {
        for Version { version, kinds } in versions {
            let kinds = kinds.into_iter();
            let kinds = kinds.filter(|it| it.features.is_empty() || it.features.contains(&data.kubernetes));
            let kinds: Kinds = kinds.map(|it| (it.kind.clone(), it)).collect();
            if !kinds.is_empty() {
                let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
                expected.insert(api_version, kinds);
            }
        }
    }
    expected
}

/// Returns the kinds of a version that the server lists and watches. `features` and `fields` are
/// copied from `known`, because the server does not describe them.
async fn served(client: &Client, api_version: &str, known: &Kinds) -> Kinds {
    let resources = match api_version.contains('/') {
        true => client.list_api_group_resources(api_version).await,
        false => client.list_core_api_resources(api_version).await,
    };
    let resources = resources.expect("discovery succeeds").resources;
    let watched =
        |it: &&APIResource| ["list", "watch"].iter().all(|verb| it.verbs.iter().any(|had| had == verb));
    let mut kinds = Kinds::new();
    for it in resources.iter().filter(watched) {
        let set = |names: &Option<Vec<String>>| names.iter().flatten().cloned().collect();
        let known = known.get(&it.kind).cloned().unwrap_or_default();
        let kind = Kind {
            kind: it.kind.clone(),
            plural: it.name.clone(),
            namespaced: it.namespaced,
            short: set(&it.short_names),
            categories: set(&it.categories),
            verbs: if it.verbs == ALL_VERBS { Vec::new() } else { it.verbs.clone() },
            subresources: subresources(api_version, &it.name, &resources),
            columns: columns(client, api_version, &it.name).await,
            ..known
        };
        kinds.insert(it.kind.clone(), kind);
    }
    kinds
}

fn subresources(api_version: &str, plural: &str, resources: &[APIResource]) -> BTreeSet<String> {
    let named = |it: &APIResource| {
        let name = it.name.strip_prefix(plural)?.strip_prefix('/')?;
        let version = match (&it.group, &it.version) {
            (Some(group), Some(version)) => format!("{group}/{version}"),
            _ => api_version.to_owned(),
        };
        Some(format!("{name} {version} {} {}", it.kind, it.verbs.join(" ")))
    };
    resources.iter().filter_map(named).collect()
}

fn path(api_version: &str, plural: &str) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    format!("/{root}/{api_version}/{plural}?limit=1")
}

/// Returns the columns of a kind's table; an empty list if they are only the name and the time of
/// creation.
async fn columns(client: &Client, api_version: &str, plural: &str) -> Vec<String> {
    let request = http::Request::get(path(api_version, plural))
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .expect("the request is valid");
    let table: Value = client.request(request).await.expect("the server returns a table");
    let columns = table["columnDefinitions"].as_array().into_iter().flatten().map(|column| {
        let text = |field: &str| column[field].as_str().unwrap_or_default();
        let wide = if column["priority"] == 0 { "" } else { "wide " };
        format!("{wide}{} {}", text("type"), text("name"))
    });
    let columns: Vec<String> = columns.collect();
    if columns == ["string Name", "date Created At"] { Vec::new() } else { columns }
}

/// Returns whether the server accepts a field in field selectors.
async fn is_selectable(client: &Client, api_version: &str, plural: &str, field: &str) -> bool {
    let path = format!("{}&fieldSelector={field}%3Dtrue", path(api_version, plural));
    let request = http::Request::get(path).body(Vec::new()).expect("the request is valid");
    client.request::<Value>(request).await.is_ok()
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn accessors_equal_the_kinds_of_the_server() {
    let client = Cluster::connect("groups").await.client;
    let groups = client.list_api_groups().await.expect("discovery succeeds").groups;
    let versions = groups.into_iter().flat_map(|group| group.versions).map(|version| version.group_version);
    let on_server: BTreeSet<String> = versions.chain(["v1".to_owned()]).collect();
    let expected = expected();
    let groups: BTreeSet<_> = expected.keys().map(|api_version| api_version.split('/').next()).collect();
    let (mut compared, mut differences) = (0, Vec::new());
    // Other groups are custom resources of other tests.
    for api_version in on_server.iter().filter(|it| groups.contains(&it.split('/').next())) {
        let none = Kinds::new();
        let expected = expected.get(api_version).unwrap_or(&none);
        let served = served(&client, api_version, expected).await;
        for (kind, facts) in &served {
            if expected.get(kind) != Some(facts) {
                differences
                    .push(format!("{api_version}: {:?}\n  on the server: {facts:?}", expected.get(kind)));
            }
            for field in &facts.fields {
                assert!(
                    is_selectable(&client, api_version, &facts.plural, field).await,
                    "the server does not accept {field} of {kind} as a field selector"
                );
            }
            compared += 1;
        }
        // A server need not serve all alpha and beta versions.
        let stable = !api_version.contains("alpha") && !api_version.contains("beta");
        let missing: Vec<_> = expected.keys().filter(|kind| !served.contains_key(*kind)).collect();
        assert!(!stable || missing.is_empty(), "{api_version} of the server lacks {missing:?}");
    }
    println!("compared {compared} kinds of {}", expected.values().map(BTreeMap::len).sum::<usize>());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 50, "{compared}");
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn accessors_of_every_stable_group_work() {
    let factory = Cluster::connect("accessors").await.factory();
    let roles = factory.rbac().v1().cluster_roles();
    let services = factory.apiregistration().v1().api_services();
    let schemas = factory.flowcontrol().v1().flow_schemas();
    let levels = factory.flowcontrol().v1().priority_level_configurations();
    let classes = factory.scheduling().v1().priority_classes();
    let namespaces = factory.core().v1().namespaces();
    drop((
        factory.admissionregistration().v1().validating_admission_policies(),
        factory.apiextensions().v1().custom_resource_definitions(),
        factory.apps().v1().controller_revisions(),
        factory.autoscaling().v2().horizontal_pod_autoscalers(),
        factory.batch().v1().cron_jobs(),
        factory.certificates().v1().certificate_signing_requests(),
        factory.coordination().v1().leases(),
        factory.discovery().v1().endpoint_slices(),
        factory.events().v1().events(),
    ));
    drop((
        factory.networking().v1().service_cidrs(),
        factory.node().v1().runtime_classes(),
        factory.policy().v1().pod_disruption_budgets(),
        factory.resource().v1().resource_slices(),
        factory.storage().v1().csi_storage_capacities(),
        factory.storage().v1().volume_attributes_classes(),
    ));
    factory.start();
    within(factory.wait_for_cache_sync()).await.expect("synced");
    // The server creates these objects itself.
    for (what, count) in [
        ("cluster roles", roles.indexer().len()),
        ("API services", services.indexer().len()),
        ("flow schemas", schemas.indexer().len()),
        ("priority levels", levels.indexer().len()),
        ("priority classes", classes.indexer().len()),
        ("namespaces", namespaces.indexer().len()),
    ] {
        assert!(count > 0, "the server has no {what}");
    }
    for status in [roles.status(), services.status(), schemas.status(), levels.status(), classes.status()] {
        assert!(status.quarantined().is_empty(), "{}", status.description());
    }
    factory.shutdown().await;
}
