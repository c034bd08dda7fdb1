//! Reading the definitions of custom resources, and what can be wrong with them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

/// What codegen needs of a definition.
#[derive(Debug)]
pub(crate) struct Definition {
    /// Where it was read, for messages.
    pub(crate) path: PathBuf,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) short: Vec<String>,
    pub(crate) namespaced: bool,
    /// The versions that the server serves, each with a schema.
    pub(crate) versions: Vec<String>,
    /// All of it.
    pub(crate) value: Value,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
    scope: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    kind: String,
    plural: String,
    #[serde(default)]
    short_names: Vec<String>,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    served: bool,
    schema: Option<Schema>,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(rename = "openAPIV3Schema")]
    open_api: Option<Value>,
}

/// Reads all definitions in the files.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Definition>> {
    let mut definitions = Vec::new();
    for path in paths {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        definitions.extend(parse(path, &text)?);
    }
    unlike(&definitions)?;
    Ok(definitions)
}

fn parse(path: &Path, text: &str) -> anyhow::Result<Vec<Definition>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| anyhow::anyhow!("{} is not YAML: {error}", path.display()))?;
    let mut definitions = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()).flat_map(items) {
        definitions.push(definition(path, document)?);
    }
    if definitions.is_empty() {
        bail!("{} has no CustomResourceDefinition; take it out of `--crd`", path.display());
    }
    Ok(definitions)
}

/// What is in a list, as `kubectl get crds -o yaml` prints it; or the document itself.
fn items(mut document: Value) -> Vec<Value> {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => items,
        _ => vec![document],
    }
}

fn definition(path: &Path, value: Value) -> anyhow::Result<Definition> {
    let (kind, version) = (value["kind"].as_str(), value["apiVersion"].as_str());
    let found = format!("{} of {}", kind.unwrap_or("no kind"), version.unwrap_or("no `apiVersion`"));
    if kind != Some("CustomResourceDefinition") {
        bail!("{} has {found}, where only CustomResourceDefinitions belong; take it out", path.display());
    }
    if version != Some("apiextensions.k8s.io/v1") {
        bail!("{} has {found}; write it as apiextensions.k8s.io/v1", path.display());
    }
    let name = value["metadata"]["name"].as_str().unwrap_or("without a name").to_owned();
    let place = || format!("the CustomResourceDefinition {name} in {}", path.display());
    let spec: Spec = serde_json::from_value(value["spec"].clone())
        .with_context(|| format!("{} is not complete; correct its `spec`", place()))?;
    let namespaced = match spec.scope.as_str() {
        "Namespaced" => true,
        "Cluster" => false,
        other => bail!("{} has the scope `{other}`; write `Namespaced` or `Cluster`", place()),
    };
    let mut versions = Vec::new();
    for version in spec.versions.into_iter().filter(|version| version.served) {
        let name = version.name;
        let schema = version.schema.and_then(|schema| schema.open_api);
        let Some(schema) = schema.filter(|schema| schema["properties"].is_object()) else {
            bail!("{} has no schema for `{name}`; give it `schema.openAPIV3Schema.properties`", place());
        };
        if !schema["properties"]["spec"]["properties"].is_object() {
            bail!(
                "{} has no `spec` with properties in `{name}`, of which types could be made; \
                 use kube's DynamicObject for it",
                place()
            );
        }
        versions.push(name);
    }
    if versions.is_empty() {
        bail!("{} has no served version; set `served: true` for one of `spec.versions`", place());
    }
    let Names { kind, plural, short_names: short } = spec.names;
    Ok(Definition {
        path: path.to_owned(),
        group: spec.group,
        kind,
        plural,
        short,
        namespaced,
        versions,
        value,
    })
}

/// Fails if two definitions are of one kind or of one resource.
fn unlike(definitions: &[Definition]) -> anyhow::Result<()> {
    let mut seen: BTreeMap<(&str, &str, &str), &Definition> = BTreeMap::new();
    for definition in definitions {
        let names = [("kind", &definition.kind), ("resource", &definition.plural)];
        for (what, name) in names {
            if let Some(other) = seen.insert((&definition.group, what, name), definition) {
                bail!(
                    "the {what} `{name}` of `{}` is defined twice, in {} and in {}; take one out",
                    definition.group,
                    other.path.display(),
                    definition.path.display()
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDGET: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  names: { kind: Widget, plural: widgets, shortNames: [w] }
  scope: Namespaced
  versions:
  - { name: v1, served: true, schema: { openAPIV3Schema: { properties: { spec: { properties: {} } } } } }
  - { name: v0, served: false }
";

    fn error(text: &str) -> String {
        format!("{:#}", parse(Path::new("a.yaml"), text).unwrap_err())
    }

    #[test]
    fn a_definition_is_read_with_the_versions_that_are_served() {
        let found = parse(Path::new("a.yaml"), WIDGET).unwrap();
        let [widget] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((widget.kind.as_str(), widget.plural.as_str()), ("Widget", "widgets"));
        assert_eq!(
            (widget.versions.as_slice(), widget.short.as_slice()),
            (&["v1".into()][..], &["w".into()][..])
        );
        assert!(widget.namespaced);
    }

    #[test]
    fn documents_and_lists_of_them_are_read_alike() {
        let gadget = WIDGET.replace("idget", "adget");
        let documents = format!("---\n{WIDGET}---\n# Nothing.\n---\n{gadget}");
        assert_eq!(parse(Path::new("a.yaml"), &documents).unwrap().len(), 2);
        let indented = WIDGET.replace('\n', "\n  ");
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {indented}");
        assert_eq!(parse(Path::new("a.yaml"), &list).unwrap().len(), 1);
    }

    #[test]
    fn each_mistake_is_named_with_its_file_and_what_to_do() {
        for (from, to, expected) in [
            ("spec:", "spec: [", "is not YAML"),
            ("CustomResourceDefinition", "Pod", "only CustomResourceDefinitions belong"),
            ("io/v1", "io/v1beta1", "write it as apiextensions.k8s.io/v1"),
            ("plural: widgets,", "", "missing field `plural`"),
            ("Namespaced", "namespaced", "write `Namespaced` or `Cluster`"),
            ("served: true", "served: false", "no served version"),
            ("schema: {", "other: {", "no schema for `v1`"),
            ("spec: { properties: {} }", "status: {}", "no `spec` with properties in `v1`"),
        ] {
            let message = error(&WIDGET.replacen(from, to, 1));
            assert!(message.contains(expected) && message.contains("a.yaml"), "{from}: {message}");
        }
        assert!(error("# Nothing.\n").contains("has no CustomResourceDefinition"));
    }

    #[test]
    fn a_kind_or_a_resource_that_is_there_twice_is_named_with_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let other = WIDGET.replace("kind: Widget", "kind: Other");
        for (second, expected) in [(WIDGET, "kind `Widget`"), (other.as_str(), "resource `widgets`")] {
            let paths = [folder.path().join("one.yaml"), folder.path().join("two.yaml")];
            fs::write(&paths[0], WIDGET).unwrap();
            fs::write(&paths[1], second).unwrap();
            let message = read(&paths).unwrap_err().to_string();
            let named = message.contains("one.yaml") && message.contains("two.yaml");
            assert!(named && message.contains(expected), "{message}");
        }
        let message = format!("{:#}", read(&[folder.path().join("none.yaml")]).unwrap_err());
        assert!(message.contains("cannot read") && message.contains("none.yaml"), "{message}");
    }
}
