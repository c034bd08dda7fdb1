//! Unaggregated discovery: `/api`, `/apis`, `/apis/GROUP` and the resources of each version.

use serde_json::{Value, json};

use super::group::{GroupVersion, by_group, group_versions, subresources, verbs};
use crate::http::server::Server;
use crate::kinds::ResourceKind;

/// Returns the document of `/`: the list of paths.
pub(crate) fn paths(server: &Server) -> Value {
    let mut paths: Vec<String> = vec!["/api".to_owned(), "/apis".to_owned()];
    for version in group_versions(server) {
        if !version.group.is_empty() {
            paths.push(format!("/apis/{}", version.group));
        }
        paths.push(format!("/{}", version.path()));
    }
    paths.extend(["/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version"].map(str::to_owned));
    paths.sort();
    paths.dedup();
    json!({ "paths": paths })
}

pub(crate) fn core_versions(server: &Server) -> Value {
    let core = group_versions(server).into_iter().filter(|version| version.group.is_empty());
    let versions: Vec<String> = core.map(|version| version.version).collect();
    json!({ "kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": [] })
}

pub(crate) fn groups(server: &Server) -> Value {
    let versions = group_versions(server);
    let named = by_group(&versions).filter(|versions| !versions[0].group.is_empty());
    let groups: Vec<Value> = named.map(describe).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

pub(crate) fn group(server: &Server, name: &str) -> Option<Value> {
    let versions = group_versions(server);
    let mut group = describe(by_group(&versions).find(|versions| versions[0].group == name)?);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

/// Returns the document of `/api/VERSION` or `/apis/GROUP/VERSION`, which lists the resources.
pub(crate) fn resources(server: &Server, path: &str) -> Option<Value> {
    let version = group_versions(server).into_iter().find(|version| version.path() == path)?;
    let mut resources: Vec<Value> = Vec::new();
    for served in &version.served {
        resources.push(resource(&served.kind));
        resources.extend(parts(&served.kind));
    }
    resources.extend(version.reviews.iter().map(|review| {
        json!({
            "name": review.plural,
            "singularName": review.kind.to_lowercase(),
            "namespaced": review.namespaced,
            "kind": review.kind,
            "verbs": ["create"],
        })
    }));
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version.name(),
        "resources": resources,
    }))
}

/// Describes one group. `versions` contains all versions of the group.
fn describe(versions: &[GroupVersion]) -> Value {
    let listed: Vec<Value> = versions
        .iter()
        .map(|version| json!({ "groupVersion": version.name(), "version": version.version }))
        .collect();
    json!({ "name": versions[0].group, "preferredVersion": listed.first(), "versions": listed })
}

fn resource(kind: &ResourceKind) -> Value {
    let mut resource = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = kind.short_names.clone().into();
    }
    if !kind.categories.is_empty() {
        resource["categories"] = kind.categories.clone().into();
    }
    resource
}

fn parts(kind: &ResourceKind) -> impl Iterator<Item = Value> {
    subresources(kind).into_iter().map(|part| {
        let mut resource = json!({
            "name": format!("{}/{}", kind.plural, part.name),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": part.kind,
            "verbs": part.verbs,
        });
        if part.group != kind.group {
            resource["group"] = part.group.into();
            resource["version"] = part.version.into();
        }
        resource
    })
}
