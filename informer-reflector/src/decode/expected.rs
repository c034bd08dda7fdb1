//! [`ExpectedType`]: what kind of object was asked for, and whether that is what comes.
//!
//! Types of k8s-openapi look at `kind` and `apiVersion` themselves; dynamic, metadata-only and custom ones take whatever
//! has a name. The fact people get wrong: in a list of a built-in type only the list says what it is, in a watch every
//! object does. So a mistake in a plural or a kind can pass for a list and stop the watch.

use kube::Resource;
use serde::Deserialize;

use super::prune_paths::PrunePaths;

/// What the server calls an object of which only metadata was asked for.
const METADATA_ONLY: (&str, &str) = ("PartialObjectMetadata", "meta.k8s.io/v1");

/// What the objects of a list or watch have to be.
#[derive(Debug, Clone)]
pub(crate) struct ExpectedType {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    metadata_only: bool,
}

/// What an object says of itself.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stated {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
}

impl ExpectedType {
    pub(crate) fn of<K: Resource>(dynamic_type: &K::DynamicType) -> Self {
        Self {
            api_version: K::api_version(dynamic_type).into_owned(),
            kind: K::kind(dynamic_type).into_owned(),
            metadata_only: K::metadata_api(),
        }
    }

    /// The same resource, of which only metadata is asked for.
    pub(crate) fn metadata_only(self) -> Self {
        Self { metadata_only: true, ..self }
    }

    /// Returns paths for objects of this type: any other fails to decode, and where only metadata was asked for, all
    /// else is stepped over if the server sends it nevertheless.
    pub(crate) fn paths(&self, paths: &PrunePaths) -> PrunePaths {
        let (mut kinds, mut versions) = (vec![self.kind.as_str()], vec![self.api_version.as_str()]);
        if self.metadata_only {
            kinds.push(METADATA_ONLY.0);
            versions.push(METADATA_ONLY.1);
        }
        let paths = paths.checking("kind", &kinds).checking("apiVersion", &versions);
        if self.metadata_only { paths.keeping_only("metadata") } else { paths }
    }

    /// Says what is wrong with an object that isn't of this type; nothing of one that may be.
    pub(super) fn refusal(&self, object: &Stated) -> Option<String> {
        let kind = object.kind.as_deref().unwrap_or_default();
        let api_version = object.api_version.as_deref().unwrap_or_default();
        let is = |stated: &str, expected: &str, metadata_only: &str| {
            stated.is_empty() || stated == expected || (self.metadata_only && stated == metadata_only)
        };
        let is_expected =
            is(kind, &self.kind, METADATA_ONLY.0) && is(api_version, &self.api_version, METADATA_ONLY.1);
        (!is_expected).then(|| self.instead(kind, api_version))
    }

    /// Says what is wrong with a list that calls itself so, as far as that can be told: custom resources choose what
    /// their lists are called.
    pub(super) fn refusal_of_list(&self, kind: &str, api_version: &str) -> Option<String> {
        let item = kind.strip_suffix("List").unwrap_or(kind);
        let is_metadata = item == METADATA_ONLY.0 && api_version.starts_with("meta.k8s.io/");
        let is_any = item.is_empty() && ["", "v1"].contains(&api_version);
        let is_free_in_kind = kind.is_empty() || self.api_version.contains('.');
        let is_expected = (is_free_in_kind || item == self.kind)
            && (api_version.is_empty() || api_version == self.api_version);
        let is_possible = is_expected || is_any || (self.metadata_only && is_metadata);
        (!is_possible).then(|| self.instead(kind, api_version))
    }

    fn instead(&self, kind: &str, api_version: &str) -> String {
        format!(
            "it has kind {} ({}), and {} ({}) was asked for; check group, version, kind and plural",
            plain(kind),
            plain(api_version),
            self.kind,
            self.api_version
        )
    }
}

/// A name as it may be shown: what is none may be anything.
fn plain(name: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./-".contains(&byte);
    match name {
        "" => "unstated",
        name if name.len() <= 253 && name.bytes().all(is_plain) => name,
        _ => "unreadable",
    }
}
