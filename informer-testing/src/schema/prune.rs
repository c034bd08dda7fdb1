//! Taking out what the schema does not know.

use serde_json::Value;

use super::{OF_EVERY_OBJECT, join, keeps_unknown, of_field};

/// Removes unknown fields from an object, and gives their paths.
pub(crate) fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut pruned = Vec::new();
    walk(schema, object, "", true, &mut pruned);
    pruned
}

fn walk(schema: &Value, value: &mut Value, path: &str, is_object: bool, pruned: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let keeps = keeps_unknown(schema);
            let is_object = is_object || schema["x-kubernetes-embedded-resource"] == true;
            fields.retain(|name, inner| {
                if is_object && OF_EVERY_OBJECT.contains(&name.as_str()) {
                    return true;
                }
                match of_field(schema, name) {
                    Some(schema) => walk(schema, inner, &join(path, name), false, pruned),
                    None if keeps => {}
                    None => {
                        pruned.push(join(path, name));
                        return false;
                    }
                }
                true
            });
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter_mut().enumerate() {
                walk(&schema["items"], element, &format!("{path}[{at}]"), false, pruned);
            }
        }
        _ => {}
    }
}
