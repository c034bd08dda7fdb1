//! Validation of metadata for all kinds: labels, annotations, finalizers and owners.
//!
//! The rules and messages are those of `k8s.io/apimachinery/pkg/api/validation`.

use serde_json::Value;

use super::{Body, finalizers};
use crate::api::naming;
use crate::api::status::{FieldError, FieldErrors};

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
