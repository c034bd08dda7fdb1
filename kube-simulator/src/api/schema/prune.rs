//! Removes fields of custom resources that their schema does not contain.

use serde_json::Value;

use super::place::Place;
use super::{OF_EVERY_OBJECT, keeps_unknown, of_field};

/// Maximum number of reported unknown fields. A real server reports all of them.
const MAX_NAMED: usize = 100;

/// Removes unknown fields, and returns the paths of the first 100 removed fields.
pub(crate) fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut pruned = Vec::new();
    walk(schema, object, &Place::Root, &mut pruned);
    pruned
}

fn walk(schema: &Value, value: &mut Value, path: &Place<'_>, pruned: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let keeps = keeps_unknown(schema);
            let is_object = path.is_root() || schema["x-kubernetes-embedded-resource"] == true;
            fields.retain(|name, inner| {
                if is_object && OF_EVERY_OBJECT.contains(&name.as_str()) {
                    return true;
                }
                match of_field(schema, name) {
                    Some(schema) => walk(schema, inner, &path.field(name), pruned),
                    None if keeps => {}
                    None => {
                        if pruned.len() < MAX_NAMED {
                            pruned.push(path.field(name).to_string());
                        }
                        return false;
                    }
                }
                true
            });
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter_mut().enumerate() {
                walk(&schema["items"], element, &path.element(at), pruned);
            }
        }
        _ => {}
    }
}
