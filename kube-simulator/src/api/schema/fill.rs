//! Applies the defaults of a schema to custom resources.

use serde_json::Value;

use super::of_field;

/// Applies defaults to absent fields, and to null fields that are not nullable. Removes null fields
/// that are neither nullable nor have a default.
pub(crate) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, inner| {
                let may_be_null = |schema: &Value| schema["nullable"] == true || !schema["default"].is_null();
                !inner.is_null() || of_field(schema, name).is_none_or(may_be_null)
            });
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                let Some(default) = schema.get("default") else {
                    continue;
                };
                let absent = match fields.get(name) {
                    None => true,
                    Some(found) => found.is_null() && schema["nullable"] != true,
                };
                if absent {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, inner) in fields.iter_mut() {
                if let Some(schema) = of_field(schema, name) {
                    fill(schema, inner);
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| fill(&schema["items"], element)),
        _ => {}
    }
}
