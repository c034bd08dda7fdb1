//! The data of all discovery documents: the versions of all API groups, and the resources of each
//! version.

use std::cmp::Reverse;
use std::sync::Arc;

use super::review::{self, Review};
use crate::api::catalogue::Served;
use crate::http::server::Server;
use crate::kinds::{ALL_VERBS, ResourceKind};

/// One version of one API group.
#[derive(Debug)]
pub(crate) struct GroupVersion {
    /// The API group, empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    /// The resources, sorted by plural name.
    pub(crate) served: Vec<Arc<Served>>,
    pub(super) reviews: Vec<&'static Review>,
}

pub(super) struct Subresource {
    pub(super) name: &'static str,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) verbs: Vec<&'static str>,
}

/// The subresources of built-in kinds that the simulator serves.
const SERVED: [&str; 5] = ["binding", "eviction", "finalize", "scale", "status"];

/// Returns the verbs of a resource; for built-in kinds, in the order of a real server.
pub(super) fn verbs(kind: &ResourceKind) -> &'static [&'static str] {
    kind.facts.map_or(ALL_VERBS, |facts| facts.verbs)
}

impl GroupVersion {
    /// Returns the group and version, such as `apps/v1`.
    pub(crate) fn name(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the path without the leading slash, such as `api/v1` or `apis/apps/v1`.
    pub(crate) fn path(&self) -> String {
        if self.group.is_empty() { format!("api/{}", self.version) } else { format!("apis/{}", self.name()) }
    }
}

/// Returns all versions of all groups, sorted by group name. Within each group, the preferred
/// version is first.
pub(crate) fn group_versions(server: &Server) -> Vec<GroupVersion> {
    let mut found: Vec<GroupVersion> = Vec::new();
    for served in server.api.catalogue.all() {
        entry(&mut found, &served.kind.group, &served.kind.version).served.push(served);
    }
    for review in review::ALL {
        entry(&mut found, review.group, "v1").reviews.push(review);
    }
    found.sort_by_cached_key(|version| (version.group.clone(), priority(&version.version)));
    found
}

/// Returns the entry of a group version, and adds the entry if `found` lacks it.
fn entry<'f>(found: &'f mut Vec<GroupVersion>, group: &str, version: &str) -> &'f mut GroupVersion {
    let known = found.iter().position(|known| known.group == group && known.version == version);
    let place = known.unwrap_or_else(|| {
        let (group, version) = (group.to_owned(), version.to_owned());
        found.push(GroupVersion { group, version, served: Vec::new(), reviews: Vec::new() });
        found.len() - 1
    });
    &mut found[place]
}

/// Splits the result of [`group_versions`] by group.
pub(super) fn by_group(versions: &[GroupVersion]) -> impl Iterator<Item = &[GroupVersion]> {
    versions.chunk_by(|left, right| left.group == right.group)
}

/// Returns whether the group version with this path, such as `apis/apps/v1`, is served.
pub(crate) fn is_served(server: &Server, path: &str) -> bool {
    group_versions(server).iter().any(|version| version.path() == path)
}

/// Returns the sort key of a version in Kubernetes' order: stable before beta before alpha, and
/// higher numbers first. Versions of any other form, or with numbers beyond `u32`, come last, by
/// name.
fn priority(version: &str) -> (Reverse<u8>, Reverse<u32>, Reverse<u32>, String) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u32 = rest[..digits].parse().ok()?;
        let (stability, minor) = match &rest[digits..] {
            "" => (3, "0"),
            beta if beta.starts_with("beta") => (2, &beta[4..]),
            alpha if alpha.starts_with("alpha") => (1, &alpha[5..]),
            _ => return None,
        };
        Some((stability, major, minor.parse().ok()?))
    };
    let (stability, major, minor) = parse().unwrap_or((0, 0, 0));
    (Reverse(stability), Reverse(major), Reverse(minor), version.to_owned())
}

pub(super) fn subresources(kind: &ResourceKind) -> Vec<Subresource> {
    if let Some(facts) = kind.facts {
        let parsed = facts.subresources.iter().filter_map(|text| Subresource::parse(text));
        return parsed.filter(|part| SERVED.contains(&part.name)).collect();
    }
    let of = |name, group: &str, version: &str, kind: &str| Subresource {
        name,
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: vec!["get", "patch", "update"],
    };
    let scale = kind.scale.is_some().then(|| of("scale", "autoscaling", "v1", "Scale"));
    let status = kind.status_subresource.then(|| of("status", &kind.group, &kind.version, &kind.kind));
    scale.into_iter().chain(status).collect()
}

impl Subresource {
    /// Parses the name, the `apiVersion`, the kind and the verbs of a subresource, separated by
    /// spaces, such as `status v1 Namespace get patch update`.
    fn parse(text: &'static str) -> Option<Self> {
        let mut words = text.split(' ');
        let (name, api_version, kind) = (words.next()?, words.next()?, words.next()?);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Some(Self {
            name,
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs: words.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    //! Tests of the order of versions.

    use super::priority;

    #[test]
    fn preferred_version_is_the_most_stable_then_the_highest() {
        let mut versions = ["v1alpha1", "foo", "v2beta2", "v1", "v2beta10", "v10", "v2"];
        versions.sort_by_key(|version| priority(version));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta10", "v2beta2", "v1alpha1", "foo"]);
    }
}
