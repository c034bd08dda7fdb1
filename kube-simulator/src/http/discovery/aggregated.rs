//! Aggregated discovery (KEP-3352): the `APIGroupDiscoveryList` documents (`apidiscovery.k8s.io`)
//! of `/api` and `/apis`.

use serde_json::{Value, json};

use super::group::{GroupVersion, by_group, group_versions, subresources, verbs};
use crate::http::server::Server;
use crate::kinds::ResourceKind;

/// Returns the document of `/api` if `core` is true, otherwise that of `/apis`.
pub(crate) fn aggregated(server: &Server, core: bool) -> Value {
    let all = group_versions(server);
    let groups = by_group(&all).filter(|versions| versions[0].group.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|versions| {
            json!({
                "metadata": { "name": versions[0].group, "creationTimestamp": null },
                "versions": versions.iter().map(describe).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn describe(version: &GroupVersion) -> Value {
    let served = version.served.iter().map(|served| resource(&served.kind));
    let reviews = version.reviews.iter().map(|review| {
        json!({
            "resource": review.plural,
            "responseKind": { "group": review.group, "version": "v1", "kind": review.kind },
            "scope": scope(review.namespaced),
            "singularResource": review.kind.to_lowercase(),
            "verbs": ["create"],
        })
    });
    let resources: Vec<Value> = served.chain(reviews).collect();
    json!({ "version": version.version, "resources": resources, "freshness": "Current" })
}

fn resource(kind: &ResourceKind) -> Value {
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response_kind(kind, &kind.group, &kind.version, &kind.kind),
        "scope": scope(kind.namespaced),
        "singularResource": kind.singular,
        "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = kind.short_names.clone().into();
    }
    if !kind.categories.is_empty() {
        resource["categories"] = kind.categories.clone().into();
    }
    let parts: Vec<Value> = subresources(kind)
        .into_iter()
        .map(|part| {
            json!({
                "subresource": part.name,
                "responseKind": response_kind(kind, &part.group, &part.version, &part.kind),
                "verbs": part.verbs,
            })
        })
        .collect();
    if !parts.is_empty() {
        resource["subresources"] = parts.into();
    }
    resource
}

/// Returns the discovery field `responseKind`: the group, version and kind of the responses.
/// `resource` is the described resource, or the resource of the described subresource. For example,
/// `resource` is `deployments` for the subresource `scale`, whose responses have the group
/// `autoscaling`, the version `v1` and the kind `Scale`.
fn response_kind(resource: &ResourceKind, group: &str, version: &str, kind: &str) -> Value {
    // As on a real server, the group and version are empty if they are those of a built-in
    // `resource` itself.
    let is_own = resource.is_built_in() && group == resource.group && version == resource.version;
    let (group, version) = if is_own { ("", "") } else { (group, version) };
    json!({ "group": group, "version": version, "kind": kind })
}

fn scope(namespaced: bool) -> &'static str {
    if namespaced { "Namespaced" } else { "Cluster" }
}
