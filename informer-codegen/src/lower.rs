//! Assigns Rust names to the modules, types and accessors that are generated from custom resource
//! definitions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use heck::ToSnakeCase;
use proc_macro2::Ident;
use quote::quote;

use crate::definition::Definition;
use crate::group_names;
use crate::shared::gate::Gate;
use crate::shared::model::{Group, Kind, Version, sort};
use crate::shared::names::{camel, ident, plural, title};
use crate::types::root_name;

/// The names of all generated groups, versions, kinds and files.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) groups: Vec<Group>,
    pub(crate) modules: Vec<TypesModule>,
}

/// A generated folder with the types of one version of a group.
#[derive(Debug)]
pub(crate) struct TypesModule {
    /// The name of the folder, for example `stable_v1`.
    pub(crate) name: Ident,
    pub(crate) api_version: String,
    pub(crate) version: String,
    pub(crate) kinds: Vec<TypesFile>,
}

/// A generated file with the types of a kind.
#[derive(Debug)]
pub(crate) struct TypesFile {
    /// The name of the file without `.rs`, for example `cron_tab`.
    pub(crate) file: Ident,
    /// The index of the definition in the list of all definitions.
    pub(crate) definition: usize,
}

impl Lowered {
    /// Returns the paths of all generated files in the output folder.
    pub(crate) fn files(&self) -> Vec<String> {
        let kinds = |module: &TypesModule| {
            let names: Vec<String> =
                module.kinds.iter().map(|kind| module.path(&kind.file.to_string())).collect();
            [vec![module.path("mod")], names].concat()
        };
        let files = self.modules.iter().flat_map(kinds);
        std::iter::once(crate::generator::ROOT.to_owned()).chain(files).collect()
    }
}

impl TypesModule {
    /// Returns the path of a file in this folder, relative to the output folder. `name` lacks the
    /// extension `.rs`.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}.rs", self.name)
    }
}

pub(crate) fn lower(definitions: &[Definition]) -> anyhow::Result<Lowered> {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for definition in definitions {
        let versions = definition.versions.iter().map(String::as_str);
        groups.entry(&definition.group).or_default().extend(versions);
    }
    let mut lowered = Lowered { groups: Vec::new(), modules: Vec::new() };
    for (name, accessor) in group_names::accessors(&groups)? {
        let mut versions: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, definition) in definitions.iter().enumerate().filter(|(_, other)| other.group == name) {
            for version in &definition.versions {
                versions.entry(version).or_default().push(index);
            }
        }
        let mut group = Group {
            accessor: ident(&accessor)?,
            type_name: ident(&camel(&accessor))?,
            title: title(name),
            gate: Gate::default(),
            versions: Vec::new(),
        };
        for (version, indexes) in versions {
            let kinds: Vec<_> = indexes.into_iter().map(|index| (index, &definitions[index])).collect();
            let (accessors, types) = self::version(name, &accessor, version, &kinds)
                .with_context(|| format!("cannot assign Rust names in `{name}/{version}`"))?;
            group.versions.push(accessors);
            lowered.modules.push(types);
        }
        lowered.groups.push(group);
    }
    Ok(lowered)
}

fn version(
    group: &str,
    accessor: &str,
    name: &str,
    definitions: &[(usize, &Definition)],
) -> anyhow::Result<(Version, TypesModule)> {
    let module = ident(&format!("{accessor}_{name}"))?;
    let (mut kinds, mut types) = (Vec::new(), Vec::new());
    for (index, definition) in definitions {
        let place =
            || format!("cannot find Rust names for `{}` in {}", definition.kind, definition.path.display());
        kinds.push(kind(definition, &module).with_context(place)?);
        let file = definition.kind.to_snake_case();
        // `mod` and other keywords cannot be names of modules.
        let file = ident(&file).or_else(|_| ident(&format!("{file}_kind")))?;
        types.push(TypesFile { file, definition: *index });
    }
    sort(&mut kinds, "accessor", |kind| &kind.accessor)?;
    sort(&mut types, "module", |types| &types.file)?;
    let api_version = format!("{group}/{name}");
    let version = Version {
        accessor: ident(name)?,
        type_name: ident(&group_names::version_type(accessor, name))?,
        api_version: api_version.clone(),
        gate: Gate::default(),
        kinds,
    };
    Ok((version, TypesModule { name: module, api_version, version: name.to_owned(), kinds: types }))
}

fn kind(definition: &Definition, module: &Ident) -> anyhow::Result<Kind> {
    let Definition { kind: name, plural: resource, .. } = definition;
    // If the name of the resource is not the plural of the kind, the accessor has the resource's name.
    let mut accessor = plural(name, resource).unwrap_or_else(|_| resource.clone()).replace('-', "_");
    // The generated type of the version already has this method.
    if accessor == "factory" {
        accessor += "_kind";
    }
    let type_name = ident(&root_name(name))?;
    Ok(Kind {
        accessor: ident(&accessor)?,
        path: quote!(#module::#type_name),
        name: name.clone(),
        namespaced: definition.namespaced,
        short: definition.short.clone(),
        what: None,
        derived: true,
        gate: Gate::default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::definition::tests::of_kind;

    #[test]
    fn accessor_is_not_the_method_factory() {
        let definition = Definition { plural: "factory".into(), ..of_kind("Factory", Value::Null) };
        let lowered = lower(&[definition]).unwrap();
        assert_eq!(lowered.groups[0].versions[0].kinds[0].accessor, "factory_kind");
    }
}
