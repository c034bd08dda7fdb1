//! The typed accessors against the server's discovery: which kinds there are, what they are called, and that they can be
//! followed. To see every alpha and beta, too, turn on all APIs, as `xtask/groups.json` says.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use serde::Deserialize;

use crate::cluster::Cluster;
use crate::within;

/// The facts that the accessors are generated from.
const DATA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../xtask/groups.json"));

/// The version feature of k8s-openapi that is that of the server.
const FEATURE: &str = "v1_36";

#[derive(Deserialize)]
struct Data {
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

#[derive(Deserialize)]
struct Kind {
    kind: String,
    plural: String,
    namespaced: bool,
    #[serde(default)]
    short: BTreeSet<String>,
    #[serde(default)]
    features: Vec<String>,
}

/// Plural, whether it is in namespaces, short names; by kind.
type Kinds = BTreeMap<String, (String, bool, BTreeSet<String>)>;

/// What the data has for the version of the server, by `apiVersion`.
fn expected() -> BTreeMap<String, Kinds> {
    let data: Data = serde_json::from_str(DATA).expect("xtask checks it");
    let mut expected = BTreeMap::new();
    for Group { group, versions } in data.groups {
        for Version { version, kinds } in versions {
            let there =
                |kind: &Kind| kind.features.is_empty() || kind.features.iter().any(|it| it == FEATURE);
            let kinds = kinds.into_iter().filter(there);
            let kinds: Kinds = kinds.map(|it| (it.kind, (it.plural, it.namespaced, it.short))).collect();
            if !kinds.is_empty() {
                let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
                expected.insert(api_version, kinds);
            }
        }
    }
    expected
}

/// What the server lists and watches of a version.
async fn served(client: &Client, api_version: &str) -> Kinds {
    let resources = match api_version.contains('/') {
        true => client.list_api_group_resources(api_version).await,
        false => client.list_core_api_resources(api_version).await,
    };
    let watched =
        |it: &APIResource| ["list", "watch"].iter().all(|verb| it.verbs.iter().any(|had| had == verb));
    let resources = resources.expect("what is served can be described").resources.into_iter();
    let short = |it: &APIResource| it.short_names.iter().flatten().cloned().collect();
    resources
        .filter(watched)
        .map(|it| (it.kind.clone(), (it.name.clone(), it.namespaced, short(&it))))
        .collect()
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn accessors_equal_the_kinds_of_the_server() {
    let client = Cluster::connect("groups").await.client;
    let groups = client.list_api_groups().await.expect("discovery").groups;
    let versions = groups.into_iter().flat_map(|group| group.versions).map(|version| version.group_version);
    let on_server: BTreeSet<String> = versions.chain(["v1".to_owned()]).collect();
    let expected = expected();
    let groups: BTreeSet<_> = expected.keys().map(|api_version| api_version.split('/').next()).collect();
    let mut compared = 0;
    // Other groups are custom resources, of other tests.
    for api_version in on_server.iter().filter(|it| groups.contains(&it.split('/').next())) {
        let served = served(&client, api_version).await;
        let none = Kinds::new();
        let expected = expected.get(api_version).unwrap_or(&none);
        for (kind, facts) in &served {
            assert_eq!(expected.get(kind), Some(facts), "{kind} of {api_version}");
            compared += 1;
        }
        // Of alphas and betas, a server may serve only some.
        let stable = !api_version.contains("alpha") && !api_version.contains("beta");
        let missing: Vec<_> = expected.keys().filter(|kind| !served.contains_key(*kind)).collect();
        assert!(!stable || missing.is_empty(), "{api_version} lacks {missing:?}");
    }
    println!("{compared} kinds compared, of {}", expected.values().map(BTreeMap::len).sum::<usize>());
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
    within(factory.wait_for_cache_sync()).await.expect("they sync");
    // A server makes these for itself.
    for (what, count) in [
        ("cluster roles", roles.indexer().len()),
        ("API services", services.indexer().len()),
        ("flow schemas", schemas.indexer().len()),
        ("priority levels", levels.indexer().len()),
        ("priority classes", classes.indexer().len()),
        ("namespaces", namespaces.indexer().len()),
    ] {
        assert!(count > 0, "there are {what}");
    }
    for status in [roles.status(), services.status(), schemas.status(), levels.status(), classes.status()] {
        assert!(status.quarantined().is_empty(), "{}", status.description());
    }
    factory.shutdown().await;
}
