//! Validation of metadata for all kinds: labels, annotations, finalizers and owners.
//!
//! The rules and messages are those of `k8s.io/apimachinery/pkg/api/validation`.

use serde_json::Value;

use super::{Body, finalizers};
use crate::api::naming;
use crate::api::status::{self, FieldError, FieldErrors, Refusal};
use crate::kinds::ResourceKind;

/// Finalizers that need no domain, because the server itself sets them.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "foregroundDeletion", "orphan"];

/// Maximum total length of all annotations, including keys, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

pub(super) fn check(body: &Body) -> Vec<FieldError> {
    let Some(metadata) = body.get("metadata") else {
        return Vec::new();
    };
    let mut errors = FieldErrors::default();
    for (name, value) in entries(metadata, "labels") {
        errors.extend(invalid("metadata.labels", name, naming::label_name(name)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid("metadata.labels", value, naming::label_value(value)));
    }
    for (name, _) in entries(metadata, "annotations") {
        errors.extend(invalid("metadata.annotations", name, naming::label_name(&name.to_lowercase())));
    }
    let length = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if entries(metadata, "annotations").map(length).sum::<usize>() > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long("metadata.annotations", MAX_ANNOTATIONS));
    }
    errors.extend(check_finalizers(&finalizers(body)));
    if let Some(Value::Array(owners)) = metadata.get("ownerReferences") {
        check_owners(owners, &mut errors);
    }
    errors.into_vec()
}

/// Returns an error if the labels or the annotations are not a map of strings.
pub(super) fn check_types(kind: &ResourceKind, body: &Body) -> Result<(), Refusal> {
    let Some(why) = wrong_type(body) else {
        return Ok(());
    };
    let (name, version) = (&kind.kind, &kind.version);
    Err(status::bad_request(format!("{name} in version \"{version}\" cannot be handled as a {name}: {why}")))
}

/// Returns an error message if the labels or the annotations are not a map of strings.
pub(super) fn wrong_type(body: &Body) -> Option<String> {
    let metadata = body.get("metadata")?;
    ["labels", "annotations"].into_iter().find_map(|field| {
        // As in Go, null is valid instead of the map and instead of a string.
        let (given, wanted) = match metadata.get(field)? {
            Value::Object(entries) => (entries.values().find_map(not_a_string)?, "string"),
            other => (go_name(other)?, "map[string]string"),
        };
        Some(format!(
            "json: cannot unmarshal {given} into Go struct field ObjectMeta.metadata.{field} of type {wanted}"
        ))
    })
}

/// Returns the errors of server-side apply for labels and annotations that are neither strings nor
/// null.
pub(super) fn untyped(applied: &Body) -> Vec<String> {
    let Some(metadata) = applied.get("metadata") else {
        return Vec::new();
    };
    let fields = ["labels", "annotations"].into_iter();
    let wrong = fields.flat_map(|field| entries(metadata, field).map(move |entry| (field, entry)));
    let wrong = wrong.filter(|(_, (_, value))| not_a_string(value).is_some());
    let errors = wrong.map(|(field, (name, value))| {
        format!(".metadata.{field}.{name}: expected string, got &value.valueUnstructured{{Value:{value}}}")
    });
    errors.collect()
}

fn not_a_string(value: &Value) -> Option<&'static str> {
    if value.is_string() { None } else { go_name(value) }
}

/// Returns Go's name of the type of a JSON value; `None` for null.
fn go_name(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some("bool"),
        Value::Number(_) => Some("number"),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("array"),
        Value::Object(_) => Some("object"),
    }
}

fn entries<'m>(metadata: &'m Value, field: &str) -> impl Iterator<Item = (&'m String, &'m Value)> {
    metadata.get(field).and_then(Value::as_object).into_iter().flatten()
}

/// Returns one error for each of the `reasons` why a value is invalid.
pub(super) fn invalid<'v>(
    field: &'static str,
    value: &'v str,
    reasons: Vec<String>,
) -> impl Iterator<Item = FieldError> + 'v {
    reasons.into_iter().map(move |why| FieldError::invalid(field, &format!("{value:?}"), &why))
}

fn check_finalizers(finalizers: &[&str]) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = finalizers
        .iter()
        .flat_map(|finalizer| invalid("metadata.finalizers", finalizer, naming::label_name(finalizer)))
        .collect();
    for (index, finalizer) in finalizers.iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            let field = format!("metadata.finalizers[{index}]");
            errors.push(FieldError::invalid(field, &format!("{finalizer:?}"), why));
        }
    }
    errors
}

fn check_owners(owners: &[Value], errors: &mut FieldErrors) {
    let mut controller: Option<String> = None;
    for owner in owners {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(field).is_empty() {
                errors.push(FieldError::invalid(format!("metadata.ownerReferences.{field}"), "\"\"", why));
            }
        }
        if owner.get("controller") != Some(&Value::Bool(true)) || errors.is_full() {
            continue;
        }
        let this = format!("{}/{}", text("kind"), text("name"));
        match &controller {
            None => controller = Some(this),
            Some(first) => {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                let all = Value::Array(owners.to_vec()).to_string();
                errors.push(FieldError::invalid("metadata.ownerReferences", &all, &why));
            }
        }
    }
}
