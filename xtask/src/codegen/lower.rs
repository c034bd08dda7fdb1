//! Converts the content of `xtask/groups.json` to the model of the generated Rust code.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use quote::quote;

use informer_codegen::__private::{Gate, Group, Kind, Version, capitalized, ident, plural, sort, title};

use super::data::{self, Data};

/// Converts the data to the model. Sorts the groups, versions and kinds by the names of their
/// generated methods, such as `core`, `v1` and `pods`.
pub(crate) fn lower(data: &Data) -> anyhow::Result<Vec<Group>> {
    let groups = data.groups.iter().map(|other| group(other, &data.features));
    let mut groups = groups.collect::<anyhow::Result<Vec<_>>>()?;
    sort(&mut groups, "group", |group| &group.accessor).with_context(in_file)?;
    Ok(groups)
}

fn in_file() -> String {
    format!("in {}", data::FILE)
}

fn group(group: &data::Group, features: &[String]) -> anyhow::Result<Group> {
    let versions = group.versions.iter().map(|other| version(group, other, features));
    let mut versions = versions.collect::<anyhow::Result<Vec<_>>>()?;
    let place = || format!("in the group `{}` of {}", group.name, data::FILE);
    sort(&mut versions, "version", |version| &version.accessor).with_context(place)?;
    let kinds = group.versions.iter().flat_map(|version| &version.kinds);
    Ok(Group {
        accessor: ident(&group.name)?,
        type_name: ident(&capitalized(&group.name))?,
        title: title(&group.group),
        gate: union(kinds, features).with_context(place)?,
        versions,
    })
}

fn version(group: &data::Group, version: &data::Version, features: &[String]) -> anyhow::Result<Version> {
    let name = &version.version;
    let api_version = if group.group.is_empty() { name.clone() } else { format!("{}/{name}", group.group) };
    let place = || format!("in `{api_version}` of {}", data::FILE);
    let module = module(version)?;
    let gate = union(version.kinds.iter(), features).with_context(place)?;
    let kinds = version.kinds.iter().map(|other| kind(other, &module, features));
    let mut kinds = kinds.collect::<anyhow::Result<Vec<_>>>().with_context(place)?;
    sort(&mut kinds, "kind", |kind| &kind.accessor).with_context(place)?;
    Ok(Version {
        accessor: ident(name)?,
        type_name: ident(&(capitalized(&group.name) + &capitalized(name)))?,
        gate,
        kinds,
        api_version,
    })
}

fn module(version: &data::Version) -> anyhow::Result<syn::Path> {
    let data::Version { version: name, module, .. } = version;
    match syn::parse_str::<syn::Path>(module) {
        Ok(path) if path.segments.last().is_some_and(|last| last.ident == name) => Ok(path),
        _ => bail!(
            "{}: version `{name}` has the module path `{module}`, but the path must end with `{name}`",
            data::FILE
        ),
    }
}

fn kind(kind: &data::Kind, module: &syn::Path, features: &[String]) -> anyhow::Result<Kind> {
    let data::Kind { kind: name, namespaced, short, what, .. } = kind;
    if what.is_empty() {
        bail!("{}: the kind `{name}` has no description; write one in its field `what`", data::FILE);
    }
    let type_name = ident(name)?;
    Ok(Kind {
        accessor: ident(&plural(name, &kind.plural)?)?,
        path: quote!(#module::#type_name),
        name: name.clone(),
        namespaced: *namespaced,
        short: short.clone(),
        what: Some(what.clone()),
        derived: false,
        gate: Gate::new(&kind.features, features)?,
    })
}

/// Returns the Kubernetes versions in which at least one of `kinds` exists, as a condition for
/// generated code. Returns no condition if there are no kinds. `all` is the list of all supported
/// versions, such as `v1_36`.
fn union<'a>(kinds: impl Iterator<Item = &'a data::Kind>, all: &[String]) -> anyhow::Result<Gate> {
    let mut present = BTreeSet::new();
    for kind in kinds {
        if kind.features.is_empty() {
            return Ok(Gate::default());
        }
        present.extend(kind.features.iter().cloned());
    }
    Gate::new(&Vec::from_iter(present), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"kind": "Pod", "plural": "pods", "namespaced": true, "what": "a"}"#;
    const NODE: &str = r#"{"kind": "Node", "plural": "nodes", "namespaced": false, "what": "b"}"#;

    fn lowered(module: &str, kinds: &[&str]) -> anyhow::Result<Vec<Group>> {
        let kinds = kinds.join(",");
        let version = format!(r#"{{"version": "v1", "module": "{module}", "kinds": [{kinds}]}}"#);
        let group = format!(r#"{{"group": "", "name": "core", "versions": [{version}]}}"#);
        let features = r#""features": ["v1_33", "v1_34", "v1_35"], "kubernetes": "v1_34", "not_watched": []"#;
        let data = format!(r#"{{"about": [], {features}, "groups": [{group}]}}"#);
        lower(&serde_json::from_str(&data).unwrap())
    }

    fn only(kind: &str, features: &str) -> String {
        format!(
            r#"{{"kind": "{kind}", "plural": "{}s", "namespaced": true, "what": "c", "features": [{features}]}}"#,
            kind.to_lowercase()
        )
    }

    #[test]
    fn kinds_come_out_sorted() {
        let groups = lowered("a::v1", &[POD, NODE]).unwrap();
        let version = &groups[0].versions[0];
        assert_eq!(version.type_name, "CoreV1");
        let accessors: Vec<String> = version.kinds.iter().map(|kind| kind.accessor.to_string()).collect();
        assert_eq!(accessors, ["nodes", "pods"]);
    }

    #[test]
    fn version_exists_where_any_of_its_kinds_exists() {
        let (job, task) = (only("Job", r#""v1_34""#), only("Task", r#""v1_35""#));
        let groups = lowered("a::v1", &[&job, &task]).unwrap();
        let version = &groups[0].versions[0];
        assert_eq!(groups[0].gate, version.gate);
        assert_eq!(version.gate.title.as_deref(), Some("`v1_34` and later"));
        assert_eq!(version.kinds[0].gate.title.as_deref(), Some("`v1_34`"));
        let groups = lowered("a::v1", &[&job, POD]).unwrap();
        assert_eq!(groups[0].versions[0].gate, Gate::default());
    }

    #[test]
    fn data_that_would_not_compile_is_refused() {
        let wordless = POD.replace(r#""a""#, r#""""#);
        let gap = only("Job", r#""v1_33", "v1_35""#);
        for (module, kinds, expected) in [
            ("a::v1", &[POD, POD][..], "`pods` exists twice"),
            ("a::v1", &[], "has no kind"),
            ("a::v2", &[POD], "version `v1` has the module path `a::v2`"),
            ("a:v1", &[POD], "version `v1` has the module path `a:v1`"),
            ("a::v1", &[wordless.as_str()], "`Pod` has no description"),
            ("a::v1", &[gap.as_str()], "not consecutive"),
        ] {
            let message = format!("{:#}", lowered(module, kinds).unwrap_err());
            assert!(message.contains(expected) && message.contains(data::FILE), "{message}");
        }
    }
}
