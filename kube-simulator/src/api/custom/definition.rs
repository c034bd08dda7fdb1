//! Parses and validates custom resource definitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::status::FieldError;
use crate::api::writes::{Body, object_mut};
use crate::kinds::{Column, ResourceKind, Scale};

#[derive(Debug)]
pub(crate) struct Definition {
    /// The resource in each version that has `served: true`.
    pub(crate) served: Vec<ResourceKind>,
    /// The resource in the version that has `storage: true`. This version can have `served: false`.
    /// A table that was created with another version keeps that version.
    pub(crate) stored: ResourceKind,
    /// The whole `spec`, with its [defaults](fill_defaults).
    pub(crate) spec: Value,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    plural: String,
    #[serde(default)]
    singular: String,
    kind: String,
    list_kind: Option<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    storage: bool,
    schema: Option<Schema>,
    #[serde(default)]
    subresources: Subresources,
    #[serde(default)]
    additional_printer_columns: Vec<PrinterColumn>,
    #[serde(default)]
    selectable_fields: Vec<SelectableField>,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(rename = "openAPIV3Schema")]
    open_api: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
struct Subresources {
    status: Option<Value>,
    scale: Option<ScalePaths>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScalePaths {
    spec_replicas_path: String,
    status_replicas_path: String,
    label_selector_path: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PrinterColumn {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: i64,
    json_path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelectableField {
    json_path: String,
}

/// Adds the defaults of a definition's `spec`. As in Go, null fields count as absent: this function
/// removes them, except in schemas.
pub(crate) fn fill_defaults(spec: &mut Body) {
    remove_nulls(spec);
    spec.entry("conversion").or_insert_with(|| json!({ "strategy": "None" }));
    let names = object_mut(spec, "names");
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
    names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
}

/// Removes null fields, except those of schemas, in which a default can contain null fields.
fn remove_nulls(fields: &mut Body) {
    fields.retain(|name, value| {
        match value {
            Value::Object(inner) if name != "schema" => remove_nulls(inner),
            Value::Array(elements) => {
                elements.iter_mut().filter_map(Value::as_object_mut).for_each(remove_nulls);
            }
            _ => {}
        }
        !value.is_null()
    });
}

impl Definition {
    pub(crate) fn read(definition: &Value) -> Result<Self, FieldError> {
        // A test can store a definition without defaults.
        let mut filled = definition["spec"].clone();
        if let Value::Object(spec) = &mut filled {
            fill_defaults(spec);
        }
        let spec = Spec::deserialize(&filled)
            .map_err(|error| FieldError::invalid("spec", "\"\"", &error.to_string()))?;
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let expected = format!("{}.{}", spec.names.plural, spec.group);
        if name != expected {
            let why = "must be spec.names.plural+\".\"+spec.group";
            return Err(FieldError::invalid("metadata.name", &format!("{name:?}"), why));
        }
        let [stored] = spec.versions.iter().filter(|version| version.storage).collect::<Vec<_>>()[..] else {
            let why = "must have exactly one version marked as storage version";
            return Err(FieldError::invalid("spec.versions", "\"\"", why));
        };
        spec.check_scope()?;
        let names: BTreeSet<&str> = spec.versions.iter().map(|version| version.name.as_str()).collect();
        if names.len() < spec.versions.len() {
            let why = "must contain unique version names";
            return Err(FieldError::invalid("spec.versions", "\"\"", why));
        }
        if let Some(at) = spec.versions.iter().position(|version| version.open_api().is_none()) {
            return Err(FieldError::required(format!("spec.versions[{at}].schema.openAPIV3Schema"), ""));
        }
        let served = spec.versions.iter().filter(|version| version.served);
        Ok(Self {
            served: served.map(|version| spec.describe(version)).collect(),
            stored: spec.describe(stored),
            spec: filled,
        })
    }
}

impl Spec {
    fn check_scope(&self) -> Result<(), FieldError> {
        match self.scope.as_str() {
            "Cluster" | "Namespaced" => Ok(()),
            "" => Err(FieldError::required("spec.scope", "")),
            other => Err(FieldError::unsupported("spec.scope", other, "\"Cluster\", \"Namespaced\"")),
        }
    }

    fn describe(&self, version: &Version) -> ResourceKind {
        let names = &self.names;
        let mut kind = ResourceKind::namespaced(&self.group, &version.name, &names.kind, &names.plural);
        kind.namespaced = self.scope == "Namespaced";
        kind.status_subresource = version.subresources.status.is_some();
        kind.short_names = names.short_names.clone();
        kind.categories = names.categories.clone();
        kind.list_kind = names.list_kind.clone().filter(|name| !name.is_empty());
        if !names.singular.is_empty() {
            kind.singular.clone_from(&names.singular);
        }
        // Objects are indexed in their stored form, so each version has the selectable fields of
        // all versions.
        let fields = self.versions.iter().flat_map(|version| &version.selectable_fields);
        kind.selectable_fields =
            fields.map(|field| field.json_path.trim_start_matches('.').to_owned()).collect();
        kind.selectable_fields.sort();
        kind.selectable_fields.dedup();
        kind.scale = version.subresources.scale.as_ref().map(ScalePaths::paths);
        if !version.additional_printer_columns.is_empty() {
            let columns = version.additional_printer_columns.iter().map(PrinterColumn::column);
            kind.columns = std::iter::once(Column::new("Name", "string")).chain(columns).collect();
        }
        kind.schema = version.open_api().cloned().map(|schema| Arc::new(Value::Object(schema)));
        kind
    }
}

impl Version {
    fn open_api(&self) -> Option<&Map<String, Value>> {
        self.schema.as_ref()?.open_api.as_ref()
    }
}

impl ScalePaths {
    fn paths(&self) -> Scale {
        let path = |text: &String| text.trim_start_matches('.').to_owned();
        Scale {
            spec_replicas: path(&self.spec_replicas_path),
            status_replicas: path(&self.status_replicas_path),
            selector: self.label_selector_path.as_ref().map(path),
        }
    }
}

impl PrinterColumn {
    fn column(&self) -> Column {
        Column {
            name: self.name.clone(),
            type_name: self.type_name.clone(),
            format: self.format.clone(),
            description: self.description.clone(),
            priority: self.priority,
            json_path: Some(self.json_path.clone()),
        }
    }
}
