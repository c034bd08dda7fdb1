//! Applies the defaults of a schema to custom resources.

use serde_json::Value;

use super::of_field;

/// Applies the defaults of `schema` to `value`, and to all values within it:
/// - An absent field with a default gets the default.
/// - A null field stays null if it is nullable, or if the schema does not describe it.
/// - Any other null field gets its default; without a default, the field is removed.
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

/// Replaces a null `value` by the default of `schema`, unless `schema` is nullable or has no
/// default. Then applies the defaults of `schema` to all values within `value`.
fn fill_element(schema: &Value, value: &mut Value) {
    if value.is_null() && schema["nullable"] != true && !schema["default"].is_null() {
        *value = schema["default"].clone();
    }
    fill(schema, value);
}
