//! Validates values against a schema, with the server's messages.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::place::Place;
use super::{OF_EVERY_OBJECT, of_field};
use crate::api::ownership::ListKind;
use crate::api::status::{FieldError, FieldErrors};

pub(crate) fn check(schema: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = FieldErrors::default();
    walk(schema, object, &Place::Root, &mut errors);
    errors.into_vec()
}

fn walk(schema: &Value, value: &Value, path: &Place<'_>, errors: &mut FieldErrors) {
    if errors.is_full() {
        return;
    }
    if !has_type(schema, value) {
        let (given, wanted) = (type_of(value), schema["type"].as_str().unwrap_or("integer or string"));
        let why = format!("{path} in body must be of type {wanted}: \"{given}\"");
        errors.push(FieldError::wrong_type(path.to_string(), &format!("\"{given}\""), &why));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let listed: Vec<String> = allowed.iter().map(|allowed| format!("{:?}", text(allowed))).collect();
        errors.push(FieldError::unsupported(path.to_string(), value.clone(), &listed.join(", ")));
    }
    match value {
        Value::Object(fields) => walk_fields(schema, fields, path, errors),
        Value::Array(elements) => {
            check_size(schema, elements.len(), path, errors);
            unique(&ListKind::of(Some(schema)), elements, path, errors);
            for (at, element) in elements.iter().enumerate() {
                walk(&schema["items"], element, &path.element(at), errors);
            }
        }
        Value::String(text) => check_length(schema, text, path, errors),
        Value::Number(_) => within_range(schema, value, path, errors),
        _ => {}
    }
}

fn walk_fields(schema: &Value, fields: &Map<String, Value>, path: &Place<'_>, errors: &mut FieldErrors) {
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(required) {
            errors.push(FieldError::required(path.field(required).to_string(), ""));
        }
    }
    for (name, inner) in fields {
        // `writes::metadata` and `writes::identity` validate these fields.
        if path.is_root() && OF_EVERY_OBJECT.contains(&name.as_str()) {
            continue;
        }
        if let Some(schema) = of_field(schema, name) {
            walk(schema, inner, &path.field(name), errors);
        }
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    if value.is_null() {
        return schema["nullable"] == true || schema.get("type").is_none();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_string() || is_whole(value);
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => is_whole(value),
        Some("number") => value.is_number(),
        _ => true,
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_whole(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns a limit on the size of lists or strings, such as `maxItems`.
fn limit(schema: &Value, name: &str) -> Option<usize> {
    usize::try_from(schema[name].as_u64()?).ok()
}

fn check_size(schema: &Value, size: usize, path: &Place<'_>, errors: &mut FieldErrors) {
    if let Some(least) = limit(schema, "minItems").filter(|least| size < *least) {
        let why = format!("{path} in body should have at least {least} items");
        errors.push(FieldError::invalid(path.to_string(), &size.to_string(), &why));
    }
    if let Some(most) = limit(schema, "maxItems").filter(|most| size > *most) {
        errors.push(FieldError::too_many(path.to_string(), size, most));
    }
}

fn check_length(schema: &Value, text: &str, path: &Place<'_>, errors: &mut FieldErrors) {
    let length = text.chars().count();
    if let Some(least) = limit(schema, "minLength").filter(|least| length < *least) {
        let why = format!("{path} in body should be at least {least} chars long");
        errors.push(FieldError::invalid(path.to_string(), &format!("{text:?}"), &why));
    }
    if let Some(most) = limit(schema, "maxLength").filter(|most| length > *most) {
        // The limit counts characters, but the message of a real server has the unit bytes.
        errors.push(FieldError::too_long(path.to_string(), most));
    }
}

/// Adds one error for each element that a set or keyed list contains more than once.
fn unique(list: &ListKind, elements: &[Value], path: &Place<'_>, errors: &mut FieldErrors) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (at, element) in elements.iter().enumerate() {
        let identity = match list {
            ListKind::Atomic => return,
            ListKind::Set => element.clone(),
            ListKind::Map(keys) => {
                let given = keys.iter().filter_map(|key| Some((key.clone(), element.get(key)?.clone())));
                Value::Object(given.collect())
            }
        };
        let identity = identity.to_string();
        let count = counts.entry(identity.clone()).or_default();
        *count += 1;
        // A third occurrence adds no error.
        if *count == 2 {
            errors.push(FieldError::duplicate(path.element(at).to_string(), &identity));
        }
    }
}

fn within_range(schema: &Value, value: &Value, path: &Place<'_>, errors: &mut FieldErrors) {
    let given = value.as_f64().unwrap_or_default();
    if schema["minimum"].as_f64().is_some_and(|least| given < least) {
        let why = format!("{path} in body should be greater than or equal to {}", schema["minimum"]);
        errors.push(FieldError::invalid(path.to_string(), &value.to_string(), &why));
    }
    if schema["maximum"].as_f64().is_some_and(|most| given > most) {
        let why = format!("{path} in body should be less than or equal to {}", schema["maximum"]);
        errors.push(FieldError::invalid(path.to_string(), &value.to_string(), &why));
    }
}
