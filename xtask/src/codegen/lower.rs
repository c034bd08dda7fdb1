//! From facts about Kubernetes to what the Rust code needs: every name made, checked and in order.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;

use super::data::{self, Data};
use super::names::{capitalized, ident, plural};

/// A group with its accessor on the factory.
#[derive(Debug)]
pub(crate) struct Group {
    /// `core`.
    pub(crate) accessor: Ident,
    /// `Core`.
    pub(crate) type_name: Ident,
    /// What documentation calls it.
    pub(crate) title: String,
    pub(crate) versions: Vec<Version>,
}

/// A version of a group, which has a file of its own.
#[derive(Debug)]
pub(crate) struct Version {
    /// `v1`; the types are in a module of the same name.
    pub(crate) accessor: Ident,
    /// `CoreV1`.
    pub(crate) type_name: Ident,
    /// `core_v1`.
    pub(crate) file: Ident,
    /// `k8s_openapi::api::core::v1`.
    pub(crate) module: TokenStream,
    /// As in an object's `apiVersion`: `v1`, `apps/v1`.
    pub(crate) api_version: String,
    pub(crate) kinds: Vec<Kind>,
}

/// A kind with its accessor on the version.
#[derive(Debug)]
pub(crate) struct Kind {
    /// `config_maps`.
    pub(crate) accessor: Ident,
    /// `ConfigMap`.
    pub(crate) type_name: Ident,
    pub(crate) namespaced: bool,
}

/// Names everything. The order of the data does not matter: what comes out is sorted by name.
pub(crate) fn lower(data: &Data) -> anyhow::Result<Vec<Group>> {
    let mut groups = data.groups.iter().map(group).collect::<anyhow::Result<Vec<_>>>()?;
    sort(&mut groups, "group", |group| &group.accessor)?;
    Ok(groups)
}

fn group(group: &data::Group) -> anyhow::Result<Group> {
    let mut versions =
        group.versions.iter().map(|other| version(group, other)).collect::<anyhow::Result<Vec<_>>>()?;
    sort(&mut versions, "version", |version| &version.accessor)
        .with_context(|| format!("in the group `{}`", group.name))?;
    let title = if group.group.is_empty() {
        "the core group".to_owned()
    } else {
        format!("the group `{}`", group.group)
    };
    let type_name = ident(&capitalized(&group.name))?;
    Ok(Group { accessor: ident(&group.name)?, type_name, title, versions })
}

fn version(group: &data::Group, version: &data::Version) -> anyhow::Result<Version> {
    let name = &version.version;
    let api_version = if group.group.is_empty() { name.clone() } else { format!("{}/{name}", group.group) };
    let kinds = version.kinds.iter().map(kind).collect::<anyhow::Result<Vec<_>>>();
    let mut kinds = kinds.with_context(|| format!("in `{api_version}`"))?;
    sort(&mut kinds, "kind", |kind| &kind.accessor).with_context(|| format!("in `{api_version}`"))?;
    Ok(Version {
        accessor: ident(name)?,
        type_name: ident(&(capitalized(&group.name) + &capitalized(name)))?,
        file: ident(&format!("{}_{name}", group.name))?,
        module: module(version)?,
        api_version,
        kinds,
    })
}

/// The generated code imports the module and says `v1::Pod`, so it must be called `v1`.
fn module(version: &data::Version) -> anyhow::Result<TokenStream> {
    let data::Version { version: name, module, .. } = version;
    match syn::parse_str::<syn::Path>(module) {
        Ok(path) if path.segments.last().is_some_and(|last| last.ident == name) => Ok(path.to_token_stream()),
        _ => bail!("{}: `{module}` is not the path of a module `{name}`; correct it", data::FILE),
    }
}

fn kind(kind: &data::Kind) -> anyhow::Result<Kind> {
    let name = &kind.kind;
    if !kind.features.is_empty() {
        // Leaving the field unread would make code that some versions of Kubernetes do not compile.
        bail!(
            "{}: `{name}` has `features`, and codegen cannot yet make an accessor for some versions only; \
             take the kind out, or teach `codegen::expand` to use the `k8s_if_*` macros of k8s-openapi",
            data::FILE
        );
    }
    let accessor = ident(&plural(name, &kind.plural)?)?;
    Ok(Kind { accessor, type_name: ident(name)?, namespaced: kind.namespaced })
}

/// Sorts by name, and finds what is there twice or not at all.
fn sort<T>(items: &mut [T], what: &str, name: impl Fn(&T) -> &Ident) -> anyhow::Result<()> {
    if items.is_empty() {
        bail!("{}: there is no {what}; add one, or take out what is empty", data::FILE);
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = items.iter().map(&name).find(|name| !seen.insert(*name)) {
        bail!("{}: the {what} `{twice}` is there twice; take one out", data::FILE);
    }
    items.sort_by(|a, b| name(a).cmp(name(b)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"kind": "Pod", "plural": "pods", "namespaced": true}"#;
    const NODE: &str = r#"{"kind": "Node", "plural": "nodes", "namespaced": false}"#;

    fn lowered(module: &str, kinds: &[&str]) -> anyhow::Result<Vec<Group>> {
        let kinds = kinds.join(",");
        let version = format!(r#"{{"version": "v1", "module": "{module}", "kinds": [{kinds}]}}"#);
        let group = format!(r#"{{"group": "", "name": "core", "versions": [{version}]}}"#);
        let data = format!(r#"{{"about": [], "groups": [{group}]}}"#);
        lower(&serde_json::from_str(&data).unwrap())
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
    fn what_would_not_compile_is_refused() {
        let some = r#"{"kind": "Job", "plural": "jobs", "namespaced": true, "features": ["v1_36"]}"#;
        for (module, kinds, expected) in [
            ("a::v1", &[POD, POD][..], "`pods` is there twice"),
            ("a::v1", &[], "there is no kind"),
            ("a::v2", &[POD], "`a::v2` is not the path"),
            ("a:v1", &[POD], "`a:v1` is not the path"),
            ("a::v1", &[some], "`Job` has `features`"),
        ] {
            let message = format!("{:#}", lowered(module, kinds).unwrap_err());
            assert!(message.contains(expected) && message.contains(data::FILE), "{message}");
        }
    }
}
