//! Admission: checks and completes objects before they are stored. The metadata of all objects is
//! checked; custom resources are checked by their schema, and custom resource definitions by rules
//! of their own.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::{Body, limits, metadata, metadata_str, object_mut};
use crate::api::custom::Definition;
use crate::api::schema;
use crate::api::status::{self, FieldError, Refusal};
use crate::kinds::ResourceKind;

/// Prunes and validates an object and applies defaults.
pub(super) fn admit(kind: &ResourceKind, body: &mut Body) -> Result<(), Refusal> {
    limits::check_depth(body)?;
    if kind.is_built_in() && kind.scale.is_some() {
        // Of the defaults of scalable built-in kinds, the simulator applies only this one: `/scale`
        // needs `replicas`.
        let replicas = object_mut(body, "spec").entry("replicas").or_insert(Value::Null);
        if replicas.is_null() {
            *replicas = 1.into();
        }
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
    if errors.is_empty() {
        return Ok(());
    }
    let name = metadata_str(body, "name").unwrap_or_default();
    Err(status::invalid(&kind.group, &kind.kind, name, errors))
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
    let spec = object_mut(body, "spec");
    spec.entry("conversion").or_insert_with(|| json!({ "strategy": "None" }));
    let names = object_mut(spec, "names");
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
    names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    Definition::read(&Value::Object(body.clone())).err().into_iter().collect()
}

/// Moves a secret's `stringData` into `data`, and sets the default type of the secret.
fn encode_secret(body: &mut Body) {
    if let Some(Value::Object(plain)) = body.remove("stringData") {
        let data = object_mut(body, "data");
        for (name, value) in plain {
            data.insert(name, BASE64_STANDARD.encode(value.as_str().unwrap_or_default()).into());
        }
    }
    body.entry("type").or_insert_with(|| "Opaque".into());
}
