//! Reads and checks definitions. In this crate, a definition is a `CustomResourceDefinition`. A
//! version of a definition is usable if its name can be a name in Rust, and if its schema has a
//! `spec` with `properties`. They can be empty, unless the `spec` preserves unknown fields.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::shared::names::ident;

/// The parts of a `CustomResourceDefinition` that the generator needs.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) path: PathBuf,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) short: Vec<String>,
    pub(crate) namespaced: bool,
    /// The served and usable versions.
    pub(crate) versions: Vec<String>,
    /// The whole `CustomResourceDefinition`.
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

#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// The definitions with at least one version that is served and usable.
    pub(crate) usable: Vec<Definition>,
    /// The skipped definitions, versions and fields, each with the reason.
    pub(crate) left_out: Vec<String>,
}

/// Reads the definitions in these files. Skips a definition if none of its served versions is
/// usable. Fails if all definitions are skipped.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Definitions> {
    if paths.is_empty() {
        bail!("no definitions are given; name at least one file with a CustomResourceDefinition");
    }
    let mut definitions = Definitions::default();
    for path in paths {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        parse(path, &text, &mut definitions)?;
    }
    if definitions.usable.is_empty() {
        bail!(
            "no CustomResourceDefinition can be used, for these reasons:\n{}",
            definitions.left_out.join("\n")
        );
    }
    check_unique(&definitions.usable)?;
    Ok(definitions)
}

fn parse(path: &Path, text: &str, definitions: &mut Definitions) -> anyhow::Result<()> {
    // The default budget is for untrusted input. The definitions of a cluster can exceed it.
    let options = serde_saphyr::options! { budget: None };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| anyhow::anyhow!("{} is not YAML: {error}", path.display()))?;
    let mut is_empty = true;
    for document in documents.into_iter().filter(|document| !document.is_null()).flat_map(items) {
        is_empty = false;
        let found = definition(path, document, &mut definitions.left_out)?;
        definitions.usable.extend(found);
    }
    if is_empty {
        bail!("{} has no CustomResourceDefinition; do not pass this file", path.display());
    }
    Ok(())
}

/// Returns the items of the document if it is a list, as `kubectl get crds -o yaml` prints it;
/// otherwise the document itself.
fn items(mut document: Value) -> Vec<Value> {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => items,
        _ => vec![document],
    }
}

fn definition(path: &Path, value: Value, left_out: &mut Vec<String>) -> anyhow::Result<Option<Definition>> {
    let (kind, version) = (value["kind"].as_str(), value["apiVersion"].as_str());
    let found = format!(
        "an object with kind `{}` and apiVersion `{}`",
        kind.unwrap_or("(none)"),
        version.unwrap_or("(none)")
    );
    if kind != Some("CustomResourceDefinition") {
        bail!(
            "{} has {found}, but only CustomResourceDefinitions are allowed; remove this object",
            path.display()
        );
    }
    if version != Some("apiextensions.k8s.io/v1") {
        bail!("{} has {found}; convert it to apiVersion `apiextensions.k8s.io/v1`", path.display());
    }
    let name = value["metadata"]["name"].as_str().unwrap_or("without a name").to_owned();
    let place = || format!("the CustomResourceDefinition {name} in {}", path.display());
    let spec: Spec = serde_json::from_value(value["spec"].clone())
        .with_context(|| format!("{} has an invalid `spec`", place()))?;
    let namespaced = match spec.scope.as_str() {
        "Namespaced" => true,
        "Cluster" => false,
        other => bail!("{} has the scope `{other}`; write `Namespaced` or `Cluster`", place()),
    };
    let mut versions = Vec::new();
    let mut is_served = false;
    for version in spec.versions.into_iter().filter(|version| version.served) {
        is_served = true;
        match check_version(&version) {
            Ok(fields) => {
                left_out.extend(fields.into_iter().map(|field| {
                    let why = match field.as_str() {
                        "status" => "its schema has no properties",
                        _ => "generated types have only `spec` and `status`",
                    };
                    format!("the field `{field}` of `{}` in {}: {why}", version.name, place())
                }));
                versions.push(version.name);
            }
            Err(why) => left_out.push(format!("`{}` of {}: {why}", version.name, place())),
        }
    }
    if !is_served {
        left_out.push(format!("{}: it has no served version; set `served: true` for one", place()));
    }
    if versions.is_empty() {
        return Ok(None);
    }
    let Names { kind, plural, short_names: short } = spec.names;
    Ok(Some(Definition {
        path: path.to_owned(),
        group: spec.group,
        kind,
        plural,
        short,
        namespaced,
        versions,
        value,
    }))
}

/// Returns the top-level fields of the schema that the generated types lack. The error is the
/// reason why no types can be generated.
fn check_version(version: &Version) -> Result<Vec<String>, &'static str> {
    if ident(&version.name).is_err() {
        return Err("its name cannot be a name in Rust; use kube's DynamicObject");
    }
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api.as_ref());
    let Some(fields) = schema.and_then(|schema| schema["properties"].as_object()) else {
        return Err("the version has no schema; add `schema.openAPIV3Schema.properties`");
    };
    // kopium generates no type for a schema without properties that preserves unknown fields.
    let is_usable = |spec: &Value| {
        let is_open = spec["x-kubernetes-preserve-unknown-fields"] == true;
        spec["properties"].as_object().is_some_and(|properties| !is_open || !properties.is_empty())
    };
    if !fields.get("spec").is_some_and(is_usable) {
        return Err(
            "its schema has no `spec` with properties, so no types can be generated; use kube's DynamicObject",
        );
    }
    let is_generated = |field: &str, schema: &Value| match field {
        "apiVersion" | "kind" | "metadata" | "spec" => true,
        "status" => schema["properties"].as_object().is_some_and(|properties| !properties.is_empty()),
        _ => false,
    };
    let lacking = fields.iter().filter(|(field, schema)| !is_generated(field, schema));
    Ok(lacking.map(|(field, _)| field.clone()).collect())
}

/// Fails if two definitions of a group have the same kind or the same resource.
fn check_unique(definitions: &[Definition]) -> anyhow::Result<()> {
    let mut seen: BTreeMap<(&str, &str, &str), &Definition> = BTreeMap::new();
    for definition in definitions {
        let names = [("kind", &definition.kind), ("resource", &definition.plural)];
        for (what, name) in names {
            if let Some(other) = seen.insert((&definition.group, what, name), definition) {
                bail!(
                    "the {what} `{name}` of `{}` is defined twice, in {} and in {}; remove one definition",
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
pub(crate) mod tests {
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

    /// Returns a definition with the version `v1`, whose file would be `a.yaml`.
    pub(crate) fn of_kind(kind: &str, value: Value) -> Definition {
        Definition {
            path: "a.yaml".into(),
            group: "example.com".into(),
            kind: kind.to_owned(),
            plural: kind.to_lowercase() + "s",
            short: Vec::new(),
            namespaced: true,
            versions: vec!["v1".into()],
            value,
        }
    }

    fn parsed(text: &str) -> anyhow::Result<Definitions> {
        let mut definitions = Definitions::default();
        parse(Path::new("a.yaml"), text, &mut definitions)?;
        Ok(definitions)
    }

    fn error(text: &str) -> String {
        format!("{:#}", parsed(text).unwrap_err())
    }

    #[test]
    fn definition_is_read_with_its_served_versions() {
        let found = parsed(WIDGET).unwrap();
        let [widget] = found.usable.as_slice() else { panic!("{found:?}") };
        assert_eq!((widget.kind.as_str(), widget.plural.as_str()), ("Widget", "widgets"));
        assert_eq!(
            (widget.versions.as_slice(), widget.short.as_slice()),
            (&["v1".into()][..], &["w".into()][..])
        );
        assert!(widget.namespaced);
    }

    #[test]
    fn documents_and_lists_of_documents_are_read() {
        let gadget = WIDGET.replace("idget", "adget");
        let documents = format!("---\n{WIDGET}---\n# Nothing.\n---\n{gadget}");
        assert_eq!(parsed(&documents).unwrap().usable.len(), 2);
        let indented = WIDGET.replace('\n', "\n  ");
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {indented}");
        assert_eq!(parsed(&list).unwrap().usable.len(), 1);
    }

    #[test]
    fn file_with_thousands_of_documents_is_read() {
        let text = "---\nnull\n".repeat(2_000) + "---\n" + WIDGET;
        assert_eq!(parsed(&text).unwrap().usable.len(), 1);
    }

    #[test]
    fn each_mistake_names_its_file_and_the_remedy() {
        for (from, to, expected) in [
            ("spec:", "spec: [", "is not YAML"),
            ("CustomResourceDefinition", "Pod", "only CustomResourceDefinitions are allowed"),
            ("io/v1", "io/v1beta1", "convert it to apiVersion `apiextensions.k8s.io/v1`"),
            ("plural: widgets,", "", "missing field `plural`"),
            ("Namespaced", "namespaced", "write `Namespaced` or `Cluster`"),
        ] {
            let message = error(&WIDGET.replacen(from, to, 1));
            assert!(message.contains(expected) && message.contains("a.yaml"), "{from}: {message}");
        }
        assert!(error("# Nothing.\n").contains("has no CustomResourceDefinition"));
    }

    #[test]
    fn definition_without_usable_spec_is_left_out_and_reported() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("good.yaml"), folder.path().join("bad.yaml")];
        for (from, to, expected) in [
            ("served: true", "served: false", "no served version"),
            ("schema: {", "other: {", "no schema"),
            ("spec: { properties: {} }", "status: {}", "no `spec` with properties"),
            (
                "spec: { properties: {} }",
                "spec: { properties: {}, x-kubernetes-preserve-unknown-fields: true }",
                "no `spec` with properties",
            ),
            ("name: v1,", "name: v1-beta,", "its name cannot be a name in Rust"),
        ] {
            fs::write(&paths[0], WIDGET.replace("idget", "adget")).unwrap();
            fs::write(&paths[1], WIDGET.replacen(from, to, 1)).unwrap();
            let found = read(&paths).unwrap();
            assert_eq!(found.usable.len(), 1);
            let [why] = found.left_out.as_slice() else { panic!("{found:?}") };
            assert!(why.contains(expected) && why.contains("bad.yaml") && why.contains("widgets"), "{why}");
            let message = read(&paths[1..]).unwrap_err().to_string();
            assert!(message.contains(expected), "nothing is left: {message}");
        }
    }

    #[test]
    fn field_beside_spec_and_status_is_reported() {
        let found = parsed(&WIDGET.replace("{ spec: {", "{ operation: {}, specs: {}, spec: {")).unwrap();
        assert_eq!(found.usable.len(), 1);
        let reported = ["operation", "specs"].map(|field| format!("the field `{field}` of `v1` in "));
        assert_eq!(found.left_out.len(), 2);
        assert!(
            found.left_out.iter().zip(&reported).all(|(said, expected)| said.starts_with(expected)),
            "{found:?}"
        );
    }

    #[test]
    fn status_without_properties_is_reported() {
        for (status, is_reported) in [
            ("status: { x-kubernetes-preserve-unknown-fields: true }", true),
            ("status: { properties: {} }", true),
            ("status: { properties: { a: {} } }", false),
        ] {
            let found = parsed(&WIDGET.replace("{ spec: {", &format!("{{ {status}, spec: {{"))).unwrap();
            let expected = "the field `status` of `v1` in ";
            let reported = found.left_out.iter().filter(|reason| reason.starts_with(expected)).count();
            assert_eq!((found.usable.len(), reported == 1), (1, is_reported), "{found:?}");
        }
    }

    #[test]
    fn duplicate_kind_is_named_with_both_files() {
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
    }

    #[test]
    fn missing_files_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(&[]).unwrap_err().to_string().contains("name at least one file"));
        let message = format!("{:#}", read(&[folder.path().join("none.yaml")]).unwrap_err());
        assert!(message.contains("cannot read") && message.contains("none.yaml"), "{message}");
    }
}
