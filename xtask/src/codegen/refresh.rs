//! `--refresh`: updates `xtask/groups.json` from the sources of k8s-openapi and of Kubernetes. Data
//! that comes from neither (accessors of groups, descriptions, and the list of kinds without
//! watches) is kept. The accessor of a group is a method of the factory, such as `apps` in
//! `factory.apps()`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

use super::data::{Data, Group, Kind, Version};
use super::kubernetes::Kubernetes;
use crate::{process, workspace};

const CRATE: &str = "k8s-openapi";

/// A type of k8s-openapi whose objects can be listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fact {
    group: String,
    version: String,
    module: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

/// Returns the content of `xtask/groups.json`, updated from the sources. `old` is the content
/// before the update. If `kubernetes` is `None`, the data that come from Kubernetes do not change.
pub(crate) fn refresh(old: &Data, kubernetes: Option<&Kubernetes>) -> anyhow::Result<Data> {
    let (folder, features) = sources()?;
    let mut facts: BTreeMap<Fact, Vec<String>> = BTreeMap::new();
    for feature in &features {
        for fact in scan(&folder.join("src").join(feature))? {
            facts.entry(fact).or_default().push(feature.clone());
        }
    }
    if facts.is_empty() {
        bail!(
            "found no listable type of {CRATE} in {}; adapt xtask/src/codegen/refresh.rs to these sources",
            folder.display()
        );
    }
    let mut data = assemble(old, features, facts);
    if let Some(kubernetes) = kubernetes {
        add_facts(&mut data, kubernetes);
    }
    Ok(data)
}

/// Returns the folder of the crate k8s-openapi, and its version features, such as `v1_36`.
pub(crate) fn sources() -> anyhow::Result<(PathBuf, Vec<String>)> {
    let output = workspace::cargo().args(["metadata", "--format-version", "1", "--locked"]).output()?;
    let metadata = process::stdout(output, "cargo metadata")?;
    let metadata: Value =
        serde_json::from_slice(&metadata).context("`cargo metadata` printed invalid JSON")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut packages = packages.filter(|package| package["name"] == CRATE);
    let (Some(package), None) = (packages.next(), packages.next()) else {
        bail!(
            "the workspace does not have exactly one version of {CRATE}; `cargo tree --duplicates` shows which crates need which version"
        );
    };
    let manifest = package["manifest_path"].as_str().map(Path::new).and_then(Path::parent);
    let folder = manifest.context("`cargo metadata` printed no manifest path of k8s-openapi")?.to_path_buf();
    let names = package["features"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let features: BTreeSet<String> = names.filter(|name| name.starts_with("v1_")).collect();
    Ok((folder, features.into_iter().collect()))
}

/// Finds the listable types in `root`, a folder such as `src/v1_36`, whose modules k8s-openapi
/// re-exports.
fn scan(root: &Path) -> anyhow::Result<Vec<Fact>> {
    let mut facts = Vec::new();
    for path in workspace::files_below(root)? {
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let module = path.parent().unwrap_or(root).strip_prefix(root)?;
        let segments = module.iter().map(|name| name.to_string_lossy());
        let module = segments.fold("k8s_openapi".to_owned(), |path, name| path + "::" + &name);
        facts.extend(
            fact(&text, module).with_context(|| format!("{} has an unexpected form", path.display()))?,
        );
    }
    Ok(facts)
}

/// Returns the listable type that a source file of k8s-openapi defines, or `None` if the file
/// defines no listable type. `text` is the content of the file.
fn fact(text: &str, module: String) -> anyhow::Result<Option<Fact>> {
    if !text.contains("impl crate::ListableResource for ") {
        return Ok(None);
    }
    let constant = |name: &str| {
        let start = format!("const {name}: &'static str = \"");
        let value = text.split_once(&start).and_then(|(_, rest)| rest.split_once('"'));
        value.map(|(value, _)| value.to_owned()).with_context(|| format!("the constant `{name}` is missing"))
    };
    let namespaced = match text.split_once("type Scope = crate::").and_then(|(_, rest)| rest.split_once(';'))
    {
        Some(("NamespaceResourceScope", _)) => true,
        Some(("ClusterResourceScope", _)) => false,
        _ => bail!(
            "a listable type of k8s-openapi has no `type Scope`, or one that is neither \
             `NamespaceResourceScope` nor `ClusterResourceScope`; adapt xtask/src/codegen/refresh.rs"
        ),
    };
    Ok(Some(Fact {
        group: constant("GROUP")?,
        version: constant("VERSION")?,
        module,
        kind: constant("KIND")?,
        plural: constant("URL_PATH_SEGMENT")?,
        namespaced,
    }))
}

/// Creates the new data for `groups.json`. Data that the sources lack, such as descriptions, comes
/// from `old`.
///
/// `facts` maps each type to the version features of k8s-openapi, such as `v1_36`, that have it.
fn assemble(old: &Data, features: Vec<String>, facts: BTreeMap<Fact, Vec<String>>) -> Data {
    let mut groups: Vec<Group> = Vec::new();
    for (fact, present) in facts {
        if old.not_watched.iter().any(|other| (&other.group, &other.kind) == (&fact.group, &fact.kind)) {
            continue;
        }
        if groups.last().is_none_or(|group| group.group != fact.group) {
            groups.push(Group {
                name: accessor_name(old, &fact.group),
                group: fact.group.clone(),
                versions: Vec::new(),
            });
        }
        let Some(group) = groups.last_mut() else { continue };
        if group.versions.last().is_none_or(|version| version.version != fact.version) {
            let Fact { version, module, .. } = &fact;
            group.versions.push(Version {
                version: version.clone(),
                module: module.clone(),
                kinds: Vec::new(),
            });
        }
        let Some(version) = group.versions.last_mut() else { continue };
        let kept = old_kind(old, &fact).cloned().unwrap_or_default();
        version.kinds.push(Kind {
            features: if present == features { Vec::new() } else { present },
            kind: fact.kind,
            plural: fact.plural,
            namespaced: fact.namespaced,
            ..kept
        });
    }
    Data { features, groups, ..old.clone() }
}

/// Copies properties of kinds, such as verbs and columns, from `kubernetes` to `data`.
fn add_facts(data: &mut Data, kubernetes: &Kubernetes) {
    data.kubernetes.clone_from(&kubernetes.feature);
    for group in &mut data.groups {
        for version in &mut group.versions {
            for kind in &mut version.kinds {
                let facts = kubernetes.facts(&group.group, &version.version, &kind.kind);
                // A kind that is not in `kubernetes` keeps its short names.
                if let Some(facts) = facts {
                    kind.short.clone_from(&facts.short);
                }
                let facts = facts.cloned().unwrap_or_default();
                kind.categories = facts.categories;
                kind.verbs = facts.verbs;
                kind.subresources = facts.subresources;
                kind.fields = facts.fields;
                kind.columns = facts.columns;
            }
        }
    }
}

/// Returns the name of the group's accessor. If `old` lacks the group, the name is the first label
/// of `group`, with `_` for `-`.
fn accessor_name(old: &Data, group: &str) -> String {
    let known = old.groups.iter().find(|known| known.group == group).map(|known| known.name.clone());
    known.unwrap_or_else(|| group.split('.').next().unwrap_or_default().replace('-', "_"))
}

/// Returns the kind in `old` with the group and name of `fact`. Prefers the kind in the same
/// version.
fn old_kind<'a>(old: &'a Data, fact: &Fact) -> Option<&'a Kind> {
    let groups = old.groups.iter().filter(|group| group.group == fact.group);
    let versions = groups.flat_map(|group| &group.versions);
    let kinds = versions.flat_map(|version| version.kinds.iter().map(move |kind| (version, kind)));
    let mut kinds: Vec<_> = kinds.filter(|(_, kind)| kind.kind == fact.kind).collect();
    kinds.sort_by_key(|(version, _)| version.version != fact.version);
    kinds.first().map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::data;

    #[test]
    fn data_equals_the_sources_of_k8s_openapi() {
        let data = data::read(&workspace::root()).unwrap();
        let refreshed = refresh(&data, None).unwrap().text();
        assert!(refreshed == data.text(), "run `cargo xtask codegen --refresh`, and review the change");
    }

    #[test]
    fn unparsable_file_is_named_with_the_missing_part() {
        let text = "impl crate::ListableResource for A {}\ntype Scope = crate::ClusterResourceScope;";
        let message = format!("{:#}", fact(text, String::new()).unwrap_err());
        assert!(message.contains("`GROUP`"), "{message}");
        assert!(fact("impl crate::Resource for A {}", String::new()).unwrap().is_none());
        let text = "impl crate::ListableResource for A {}\ntype Scope = crate::SubResourceScope;";
        assert!(fact(text, String::new()).is_err());
    }

    #[test]
    fn hand_written_data_is_kept_for_other_versions() {
        let mut old = data::read(&workspace::root()).unwrap();
        let fact = Fact {
            group: "apps".into(),
            version: "v2".into(),
            module: "k8s_openapi::api::apps::v2".into(),
            kind: "Deployment".into(),
            plural: "deployments".into(),
            namespaced: true,
        };
        let other = Fact { group: "brand-new.k8s.io".into(), kind: "Other".into(), ..fact.clone() };
        let gone = Fact { kind: "ComponentStatus".into(), group: String::new(), ..fact.clone() };
        let features = std::mem::take(&mut old.features);
        let facts = [fact, other, gone].map(|fact| (fact, vec!["v1_37".to_owned()]));
        let data = assemble(&old, features, facts.into());
        let names: Vec<_> = data.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["apps", "brand_new"]);
        let kind = &data.groups[0].versions[0].kinds[0];
        assert_eq!(
            (kind.short.as_slice(), kind.features.as_slice()),
            (&["deploy".into()][..], &["v1_37".into()][..])
        );
    }
}
