//! The content of `xtask/groups.json`, the properties of Kubernetes' kinds: reads it from the file,
//! and formats it as text.
//!
//! Accessors are the generated methods that lead to an informer, such as `core`, `v1` and `pods` in
//! `factory.core().v1().pods()`.

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use serde_json::json;

pub(crate) const FILE: &str = "xtask/groups.json";

/// The content of `xtask/groups.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    /// A comment for readers, as a field, because JSON has no comments.
    pub(crate) about: Vec<String>,
    /// The version features of k8s-openapi, such as `v1_36`, from the oldest to the newest.
    pub(crate) features: Vec<String>,
    /// The Kubernetes version, such as `v1_36`, from which the verbs, columns and other properties
    /// come.
    pub(crate) kubernetes: String,
    pub(crate) not_watched: Vec<NotWatched>,
    pub(crate) groups: Vec<Group>,
}

/// A kind that can be listed, but not watched.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotWatched {
    pub(crate) group: String,
    pub(crate) kind: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// The group as in an `apiVersion`; empty for the core group.
    pub(crate) group: String,
    /// The name of the group's accessor and module in Rust.
    pub(crate) name: String,
    pub(crate) versions: Vec<Version>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Version {
    pub(crate) version: String,
    /// The module of k8s-openapi with the types of this version.
    pub(crate) module: String,
    pub(crate) kinds: Vec<Kind>,
}

/// A kind that can be listed and watched. If the Kubernetes version [`Data::kubernetes`] lacks the
/// kind, the fields from `categories` on are empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kind {
    pub(crate) kind: String,
    /// The name of the resource, as in URLs.
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// The short names of the resource in kubectl, such as `po` for pods.
    #[serde(default)]
    pub(crate) short: Vec<String>,
    /// A description of the kind, for the documentation of the kind's accessor.
    pub(crate) what: String,
    /// The version features of k8s-openapi that have the kind; empty if all have it.
    #[serde(default)]
    pub(crate) features: Vec<String>,
    #[serde(default)]
    pub(crate) categories: Vec<String>,
    /// The verbs of the resource; empty if the resource supports all eight verbs.
    /// [`Facts`](super::kubernetes::Facts) describes the format of `verbs`, `subresources` and
    /// `columns`.
    #[serde(default)]
    pub(crate) verbs: Vec<String>,
    #[serde(default)]
    pub(crate) subresources: Vec<String>,
    /// The fields that field selectors can use, besides name and namespace.
    #[serde(default)]
    pub(crate) fields: Vec<String>,
    /// The columns of the kind's table in `kubectl get`; empty if these are only the name and the
    /// creation time.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
}

pub(crate) fn read(root: &Path) -> anyhow::Result<Data> {
    parse(&read_text(root)?)
}

pub(crate) fn read_text(root: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(root.join(FILE))
        .with_context(|| format!("cannot read {FILE}; restore it from git"))
}

fn parse(text: &str) -> anyhow::Result<Data> {
    serde_json::from_str(text).with_context(|| format!("{FILE} is invalid; correct it"))
}

impl Data {
    /// Returns the data as JSON. Each kind begins on a new line, so that diffs are easy to read.
    pub(crate) fn text(&self) -> String {
        let lines = self.about.iter().map(|line| format!("    {}", json!(line)));
        let excepted = self.not_watched.iter().map(|NotWatched { group, kind }| {
            format!(r#"{{ "group": {}, "kind": {} }}"#, json!(group), json!(kind))
        });
        format!(
            "{{\n  \"about\": [\n{}\n  ],\n  \"features\": {},\n  \"kubernetes\": {},\n  \"not_watched\": [{}],\n  \"groups\": [\n{}\n  ]\n}}\n",
            joined(lines, ",\n"),
            list(&self.features),
            json!(self.kubernetes),
            joined(excepted, ", "),
            joined(self.groups.iter().map(Group::text), ",\n"),
        )
    }
}

impl Group {
    fn text(&self) -> String {
        let versions = joined(self.versions.iter().map(Version::text), ",\n");
        let (group, name) = (json!(self.group), json!(self.name));
        format!(
            "    {{\n      \"group\": {group},\n      \"name\": {name},\n      \"versions\": [\n{versions}\n      ]\n    }}"
        )
    }
}

impl Version {
    fn text(&self) -> String {
        let kinds = joined(self.kinds.iter().map(Kind::text), ",\n");
        let (version, module) = (json!(self.version), json!(self.module));
        let head = format!("          \"version\": {version},\n          \"module\": {module},\n");
        format!("        {{\n{head}          \"kinds\": [\n{kinds}\n          ]\n        }}")
    }
}

impl Kind {
    /// Returns whether the kind exists in the Kubernetes version `feature`, such as `v1_36`.
    pub(crate) fn is_in(&self, feature: &str) -> bool {
        self.features.is_empty() || self.features.iter().any(|known| known == feature)
    }

    fn text(&self) -> String {
        let (kind, plural) = (json!(self.kind), json!(self.plural));
        let mut line = format!(r#"{{ "kind": {kind}, "plural": {plural}, "namespaced": {}"#, self.namespaced);
        if !self.short.is_empty() {
            line.push_str(&format!(r#", "short": {}"#, list(&self.short)));
        }
        line.push_str(&format!(r#", "what": {}"#, json!(self.what)));
        if !self.features.is_empty() {
            line.push_str(&format!(r#", "features": {}"#, list(&self.features)));
        }
        let facts = [
            ("categories", &self.categories),
            ("verbs", &self.verbs),
            ("subresources", &self.subresources),
            ("fields", &self.fields),
            ("columns", &self.columns),
        ];
        for (name, values) in facts.into_iter().filter(|(_, values)| !values.is_empty()) {
            line.push_str(&format!(",\n              \"{name}\": {}", list(values)));
        }
        format!("            {line} }}")
    }
}

fn list(names: &[String]) -> String {
    format!("[{}]", joined(names.iter().map(|name| json!(name).to_string()), ", "))
}

fn joined(texts: impl Iterator<Item = String>, between: &str) -> String {
    texts.collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

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
    fn features_and_short_names_can_be_left_out() {
        let kind = r#"{"kind": "Pod", "plural": "pods", "namespaced": true, "what": "containers"}"#;
        let kind: Kind = serde_json::from_str(kind).unwrap();
        assert!(kind.features.is_empty() && kind.short.is_empty());
    }

    #[test]
    fn data_is_written_as_it_was_read() {
        let text = read_text(&workspace::root()).unwrap();
        assert_eq!(parse(&text).unwrap().text(), text.replace("\r\n", "\n"));
    }
}
