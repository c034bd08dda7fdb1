//! Finds the fields of custom resources that server-side apply refuses, because the schema does not
//! declare them.
//!
//! Counterpart: `validate.go` of structured-merge-diff (`typed`).

use serde_json::Value;

use super::place::Place;
use super::{OF_EVERY_OBJECT, of_field};

/// Maximum number of reported fields. A real server has another limit: it reports only one
/// undeclared field per JSON object.
const MAX_NAMED: usize = 100;

/// Returns one error for each undeclared field, up to [`MAX_NAMED`] errors.
pub(crate) fn undeclared(schema: &Value, object: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    walk(schema, object, &Place::Root, &mut errors);
    errors
}

fn walk(schema: &Value, value: &Value, path: &Place<'_>, errors: &mut Vec<String>) {
    // All values within this value are free, too.
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    match value {
        Value::Object(fields) => {
            let is_object = path.is_root() || schema["x-kubernetes-embedded-resource"] == true;
            for (name, inner) in fields {
                if is_object && OF_EVERY_OBJECT.contains(&name.as_str()) {
                    continue;
                }
                match of_field(schema, name) {
                    Some(schema) => walk(schema, inner, &path.field(name), errors),
                    None if (is_object || forbids_undeclared(schema)) && errors.len() < MAX_NAMED => {
                        errors.push(format!(".{}: field not declared in schema", path.field(name)));
                    }
                    None => {}
                }
            }
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                // A real server names an element of a keyed list by its keys, not by its index.
                walk(&schema["items"], element, &path.element(at), errors);
            }
        }
        _ => {}
    }
}

/// Returns whether a schema forbids undeclared fields: it has at least one property, but no
/// `additionalProperties`.
fn forbids_undeclared(schema: &Value) -> bool {
    let declared = schema["properties"].as_object();
    declared.is_some_and(|fields| !fields.is_empty()) && schema.get("additionalProperties").is_none()
}
