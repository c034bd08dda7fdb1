//! Admission: checks and completes objects before they are stored.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::{
    Body, CUSTOM_RESOURCES, Writer, finalizers, limits, metadata, metadata_mut, metadata_str, namespace,
    object_mut,
};
use crate::api::custom::{self, DEFINITIONS, Definition};
use crate::api::schema;
use crate::api::status::{self, FieldError, Refusal};
use crate::kinds::ResourceKind;

/// Returns an error if a new object must not be created, for example because its namespace or its
/// custom resource definition is being deleted.
pub(super) fn check_open(writer: &Writer<'_>, body: &Body) -> Result<(), Refusal> {
    let kind = &*writer.served.kind;
    if !kind.is_built_in()
        && let Some(definitions) = writer.api.catalogue.at(DEFINITIONS)
        && let Some(definition) = definitions.table.get_nested(&kind.qualified_plural())
        && definition.terminating
        && finalizers(&definition.decode()).contains(&CUSTOM_RESOURCES)
    {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(status::forbidden(kind, metadata_str(body, "name").unwrap_or_default(), why));
    }
    namespace::check_open(writer, body)
}

/// Prunes and validates an object and applies defaults.
pub(super) fn admit(kind: &ResourceKind, body: &mut Body) -> Result<(), Refusal> {
    limits::check_depth(body)?;
    if kind.is_namespace() {
        namespace::set_name_label(body);
    }
    if kind.is_built_in() && kind.scale.is_some() {
        // Of the defaults of scalable built-in kinds, the simulator applies only this one: `/scale`
        // needs `replicas`.
        let replicas = object_mut(body, "spec").entry("replicas").or_insert(Value::Null);
        if replicas.is_null() {
            *replicas = 1.into();
        }
    }
    metadata::check_types(kind, body)?;
    fill_nulls(metadata_mut(body), ["labels", "annotations"]);
    if kind.is_built_in() && matches!(kind.kind.as_str(), "ConfigMap" | "Secret") {
        fill_nulls(body, ["data", "binaryData"]);
    }
    let mut errors = metadata::check(body);
    errors.extend(if kind.is_definition() {
        admit_definition(body)
    } else if kind.kind == "Secret" && kind.is_built_in() {
        encode_secret(body);
        Vec::new()
    } else if let Some(schema) = &kind.schema {
        admit_custom_resource(schema, body)
    } else {
        Vec::new()
    });
    let name = metadata_str(body, "name").unwrap_or_default();
    status::refuse(&kind.group, &kind.kind, name, errors)
}

/// Replaces null values in maps of strings by empty strings, as decoding in Go does. `maps` are the
/// names of the fields of `object` that contain the maps.
fn fill_nulls(object: &mut Body, maps: [&str; 2]) {
    for map in maps {
        let entries = object.get_mut(map).and_then(Value::as_object_mut).into_iter().flatten();
        for (_, value) in entries.filter(|(_, value)| value.is_null()) {
            *value = "".into();
        }
    }
}

fn admit_custom_resource(schema: &Value, body: &mut Body) -> Vec<FieldError> {
    let mut value = Value::Object(std::mem::take(body));
    schema::prune(schema, &mut value);
    schema::fill(schema, &mut value);
    let errors = schema::check(schema, &value);
    if let Value::Object(admitted) = value {
        *body = admitted;
    }
    errors
}

fn admit_definition(body: &mut Body) -> Vec<FieldError> {
    custom::fill_defaults(object_mut(body, "spec"));
    let definition = Value::Object(body.clone());
    match Definition::read(&definition) {
        Ok(_) => check_stored_versions(&definition),
        Err(error) => vec![error],
    }
}

/// Returns an error for each version in `status.storedVersions` that is missing from the spec.
fn check_stored_versions(definition: &Value) -> Vec<FieldError> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let names: Vec<&str> = versions.filter_map(|version| version["name"].as_str()).collect();
    let stored = definition["status"]["storedVersions"].as_array().into_iter().flatten();
    let stored = stored.filter_map(Value::as_str).enumerate();
    let missing = stored.filter(|(_, version)| !names.contains(version));
    let errors = missing.map(|(at, version)| {
        let why = format!(
            "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {version} and removes {version} from \
             status.storedVersions"
        );
        FieldError::invalid(format!("status.storedVersions[{at}]"), &format!("{version:?}"), &why)
    });
    errors.collect()
}

/// Returns an error if an update changes the scope or the kind of an established custom resource
/// definition.
pub(super) fn check_names(kind: &ResourceKind, before: &Body, after: &Body) -> Result<(), Refusal> {
    let conditions = before.get("status").and_then(|status| status.get("conditions")?.as_array());
    let is_established =
        |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
    if !conditions.into_iter().flatten().any(is_established) {
        return Ok(());
    }
    let mut errors = Vec::new();
    for (field, path) in [("spec.scope", "/scope"), ("spec.names.kind", "/names/kind")] {
        let text = |body: &Body| body.get("spec")?.pointer(path)?.as_str().map(str::to_owned);
        let changed = text(after).unwrap_or_default();
        if text(before).unwrap_or_default() != changed {
            errors.push(FieldError::immutable(field, &changed));
        }
    }
    let name = metadata_str(after, "name").unwrap_or_default();
    status::refuse(&kind.group, &kind.kind, name, errors)
}

/// Moves `stringData` into `data`, and sets the default type.
fn encode_secret(body: &mut Body) {
    if let Some(Value::Object(plain)) = body.remove("stringData") {
        let data = object_mut(body, "data");
        for (name, value) in plain {
            data.insert(name, BASE64_STANDARD.encode(value.as_str().unwrap_or_default()).into());
        }
    }
    if body.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        body.insert("type".to_owned(), "Opaque".into());
    }
}
