//! Applies the defaults of a schema to custom resources.

use serde_json::Value;

use super::of_field;

/// Applies the defaults of `schema` to `value`, and to all values within it. A null field counts as
/// absent unless the schema allows null.
pub(crate) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, inner| {
                // A forbidden null with a default is kept here: the default replaces it below.
                let may_be_null = |schema: &Value| schema["nullable"] == true || !schema["default"].is_null();
                !inner.is_null() || of_field(schema, name).is_none_or(may_be_null)
            });
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if !fields.contains_key(name) && !schema["default"].is_null() {
                    fields.insert(name.clone(), schema["default"].clone());
                }
            }
            for (name, inner) in fields.iter_mut() {
                if let Some(schema) = of_field(schema, name) {
                    fill_element(schema, inner);
                }
            }
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| fill_element(&schema["items"], element));
        }
        _ => {}
    }
}

/// Replaces a null `value` by the default if `schema` forbids null, and then calls [`fill`].
fn fill_element(schema: &Value, value: &mut Value) {
    if value.is_null() && schema["nullable"] != true && !schema["default"].is_null() {
        *value = schema["default"].clone();
    }
    fill(schema, value);
}
