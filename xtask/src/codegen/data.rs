//! The facts about Kubernetes' kinds, as `xtask/groups.json` holds them.

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The file with the facts, relative to the workspace's root.
pub(crate) const FILE: &str = "xtask/groups.json";

/// All of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    /// For readers: JSON has no comments.
    #[serde(rename = "about")]
    _about: IgnoredAny,
    pub(crate) groups: Vec<Group>,
}

/// An API group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// As in an `apiVersion`; empty for the core group.
    pub(crate) group: String,
    /// What Rust code calls it.
    pub(crate) name: String,
    pub(crate) versions: Vec<Version>,
}

/// A version of a group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Version {
    pub(crate) version: String,
    /// The path of the module with the types.
    pub(crate) module: String,
    pub(crate) kinds: Vec<Kind>,
}

/// A kind that can be listed and watched.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kind {
    pub(crate) kind: String,
    /// The name of the resource, as in URLs.
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// The features of k8s-openapi with the kind; empty where all of them have it.
    #[serde(default)]
    pub(crate) features: Vec<String>,
}

/// Reads the file.
pub(crate) fn read(root: &Path) -> anyhow::Result<Data> {
    let text = std::fs::read_to_string(root.join(FILE))
        .with_context(|| format!("cannot read {FILE}; restore it from git"))?;
    parse(&text)
}

fn parse(text: &str) -> anyhow::Result<Data> {
    serde_json::from_str(text)
        .with_context(|| format!("{FILE} is not what codegen understands; correct it at the place named"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_field_is_found_with_its_place() {
        let text = "{\"about\": [],\n \"groups\": [{\"group\": \"\", \"nam\": \"core\", \"versions\": []}]}";
        let message = format!("{:#}", parse(text).unwrap_err());
        assert!(
            message.contains(FILE) && message.contains("`nam`") && message.contains("line 2"),
            "{message}"
        );
    }

    #[test]
    fn features_can_be_left_out() {
        let kind = r#"{"kind": "Pod", "plural": "pods", "namespaced": true}"#;
        let kind: Kind = serde_json::from_str(kind).unwrap();
        assert!(kind.features.is_empty());
    }
}
