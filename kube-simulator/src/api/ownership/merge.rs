//! Merges an applied configuration into an object, and removes fields that are no longer applied.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::Body;
use super::leaves::{Form, Path, form, key_of};
use super::list_kind::ListKind;
use crate::api::schema;
use crate::kinds::ResourceKind;

pub(super) fn merge(kind: &ResourceKind, object: &mut Body, applied: &Body) {
    for (name, value) in applied {
        merge_field(name, kind.merging_of(name), object, value);
    }
}

fn merge_field(name: &str, schema: Option<&Value>, object: &mut Body, value: &Value) {
    match object.get_mut(name) {
        Some(there) => merge_value(schema, there, value),
        None => {
            object.insert(name.to_owned(), value.clone());
        }
    }
}

fn merge_value(schema: Option<&Value>, there: &mut Value, applied: &Value) {
    match (form(schema, applied), there, applied) {
        (Form::Map, Value::Object(there), Value::Object(applied)) => {
            for (name, value) in applied {
                let schema = schema.and_then(|schema| schema::of_field(schema, name));
                merge_field(name, schema, there, value);
            }
        }
        (Form::List(ListKind::Set), Value::Array(there), Value::Array(applied)) => {
            let mut known: HashSet<String> = there.iter().map(Value::to_string).collect();
            there.extend(applied.iter().filter(|value| known.insert(value.to_string())).cloned());
        }
        (Form::List(ListKind::Map(keys)), Value::Array(there), Value::Array(applied)) => {
            let schema = schema.and_then(|schema| schema.get("items"));
            let mut places = HashMap::new();
            for (place, element) in there.iter().enumerate() {
                places.entry(key_of(element, &keys)).or_insert(place);
            }
            for value in applied {
                match places.entry(key_of(value, &keys)) {
                    Entry::Occupied(place) => {
                        merge_value(schema, &mut there[*place.get()], value);
                    }
                    Entry::Vacant(place) => {
                        place.insert(there.len());
                        there.push(value.clone());
                    }
                }
            }
        }
        (_, there, applied) => *there = applied.clone(),
    }
}

/// Removes the fields and list elements in `leaves`, which has the format `FieldsV1`. Maps and
/// lists that become empty are removed too.
pub(super) fn remove_all(object: &mut Body, leaves: &Body) {
    for (step, inner) in leaves {
        let (Some(field), Value::Object(inner)) = (step.strip_prefix("f:"), inner) else {
            continue;
        };
        let is_gone = match object.get_mut(field) {
            _ if inner.is_empty() => true,
            Some(Value::Object(fields)) => {
                remove_all(fields, inner);
                fields.is_empty()
            }
            Some(Value::Array(elements)) => {
                remove_from_list(elements, inner);
                elements.is_empty()
            }
            _ => false,
        };
        if is_gone {
            object.remove(field);
        }
    }
}

fn remove_from_list(elements: &mut Vec<Value>, leaves: &Body) {
    // All elements of a list have the same key names, except that optional keys, and keys with a
    // default, can be absent.
    let keys: BTreeSet<Vec<String>> = leaves.keys().filter_map(|step| key_names(step)).collect();
    elements.retain_mut(|element| {
        if leaves.contains_key(&format!("v:{element}")) {
            return false;
        }
        for names in &keys {
            match leaves.get(&key_of(element, names)) {
                Some(Value::Object(inner)) if inner.contains_key(".") => return false,
                Some(Value::Object(inner)) => {
                    if let Value::Object(element) = element {
                        remove_all(element, inner);
                    }
                }
                _ => {}
            }
        }
        true
    });
}

/// Returns whether a path is a key field of a list element.
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

fn key_names(step: &str) -> Option<Vec<String>> {
    element_keys(step).map(|keys| keys.into_iter().map(|(name, _)| name).collect())
}
