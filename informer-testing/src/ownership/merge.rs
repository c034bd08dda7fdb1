//! Merging what a manager applies into what is there, and taking out what it no longer applies.

use serde_json::{Map, Value};

use super::Body;
use super::leaves::{Form, Path, form, key_of};
use super::list_kind::ListKind;
use crate::resource::ResourceKind;
use crate::schema;

/// Merges an applied configuration into an object.
pub(super) fn merge(kind: &ResourceKind, object: &mut Body, applied: &Body) {
    for (name, value) in applied {
        let schema = kind.schema.as_deref().filter(|_| name != "metadata");
        let schema = schema.and_then(|schema| schema::of_field(schema, name));
        merge_field(kind, name, schema, object, value);
    }
}

fn merge_field(kind: &ResourceKind, name: &str, schema: Option<&Value>, object: &mut Body, value: &Value) {
    match object.get_mut(name) {
        Some(there) => merge_value(kind, name, schema, there, value),
        None => {
            object.insert(name.to_owned(), value.clone());
        }
    }
}

fn merge_value(kind: &ResourceKind, field: &str, schema: Option<&Value>, there: &mut Value, applied: &Value) {
    match (form(kind, field, schema, applied), there, applied) {
        (Form::Map, Value::Object(there), Value::Object(applied)) => {
            for (name, value) in applied {
                let schema = schema.and_then(|schema| schema::of_field(schema, name));
                merge_field(kind, name, schema, there, value);
            }
        }
        (Form::List(ListKind::Set), Value::Array(there), Value::Array(applied)) => {
            for value in applied {
                if !there.contains(value) {
                    there.push(value.clone());
                }
            }
        }
        (Form::List(ListKind::Map(keys)), Value::Array(there), Value::Array(applied)) => {
            let schema = schema.and_then(|schema| schema.get("items"));
            for value in applied {
                let key = key_of(value, &keys);
                match there.iter_mut().find(|element| key_of(element, &keys) == key) {
                    Some(element) => merge_value(kind, field, schema, element, value),
                    None => there.push(value.clone()),
                }
            }
        }
        (_, there, applied) => *there = applied.clone(),
    }
}

/// Takes a leaf out of an object, and with it the maps that are empty then.
pub(super) fn remove(object: &mut Body, path: &[String]) {
    let Some((step, rest)) = path.split_first() else {
        return;
    };
    let Some(field) = step.strip_prefix("f:") else {
        return;
    };
    if rest.is_empty() {
        object.remove(field);
        return;
    }
    let emptied = match object.get_mut(field) {
        Some(Value::Object(inner)) => {
            remove(inner, rest);
            inner.is_empty()
        }
        Some(Value::Array(elements)) => {
            remove_from_list(elements, rest);
            elements.is_empty()
        }
        _ => false,
    };
    if emptied {
        object.remove(field);
    }
}

fn remove_from_list(elements: &mut Vec<Value>, path: &[String]) {
    let Some((step, rest)) = path.split_first() else {
        return;
    };
    if let Some(value) = step.strip_prefix("v:") {
        let gone: Option<Value> = serde_json::from_str(value).ok();
        elements.retain(|element| Some(element) != gone.as_ref());
        return;
    }
    let Some(keys) = element_keys(step) else {
        return;
    };
    let Some(at) = elements.iter().position(|element| is_element(element, &keys)) else {
        return;
    };
    match rest {
        [last] if last == "." => {
            elements.remove(at);
        }
        rest => {
            if let Value::Object(element) = &mut elements[at] {
                remove(element, rest);
            }
        }
    }
}

/// Tells whether a path leads to a field by which an element of a list is known.
pub(super) fn is_key(path: &Path) -> bool {
    let [.., element, field] = path.as_slice() else {
        return false;
    };
    let keys = element_keys(element);
    keys.zip(field.strip_prefix("f:")).is_some_and(|(keys, field)| keys.contains_key(field))
}

fn element_keys(step: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(step.strip_prefix("k:")?).ok()
}

fn is_element(element: &Value, keys: &Map<String, Value>) -> bool {
    let names: Vec<String> = keys.keys().cloned().collect();
    key_of(element, &names) == format!("k:{}", Value::Object(keys.clone()))
}
