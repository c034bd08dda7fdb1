//! Strategic merge patches, which can contain directives and merge lists by key.
//!
//! Counterpart: apimachinery's `strategicpatch`.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::Body;
use crate::api::ownership::ListKind;
use crate::api::status::{self, Refusal};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_SET: &str = "$deleteFromPrimitiveList/";

/// Merges a patch into an object or into a part of it. `schema` determines how lists are merged.
pub(super) fn merge(schema: Option<&Value>, object: &mut Body, mut patch: Body) -> Result<(), Refusal> {
    match patch.remove(DIRECTIVE).as_ref().and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            *object = plain(patch);
            return Ok(());
        }
        Some("delete") => {
            object.clear();
            return Ok(());
        }
        Some(other) => return Err(status::bad_request(format!("unknown patch type: {other}"))),
    }
    if let Some(Value::Array(kept)) = patch.remove(RETAIN_KEYS) {
        let kept: HashSet<&str> = kept.iter().filter_map(Value::as_str).collect();
        object.retain(|name, _| kept.contains(name.as_str()));
    }
    let (directives, fields): (Body, Body) = patch.into_iter().partition(|(name, _)| name.starts_with('$'));
    for (name, value) in &directives {
        if let (Some(field), Value::Array(gone)) = (name.strip_prefix(DELETE_FROM_SET), value)
            && let Some(Value::Array(elements)) = object.get_mut(field)
        {
            let gone: HashSet<String> = gone.iter().map(Value::to_string).collect();
            elements.retain(|element| !gone.contains(&element.to_string()));
        }
    }
    for (name, value) in fields {
        merge_field(field(schema, &name), object, name, value)?;
    }
    for (name, value) in &directives {
        if let (Some(field), Value::Array(order)) = (name.strip_prefix(SET_ORDER), value)
            && let Some(Value::Array(elements)) = object.get_mut(field)
        {
            reorder(&ListKind::of_patch(self::field(schema, field)), elements, order);
        }
    }
    Ok(())
}

fn field<'s>(schema: Option<&'s Value>, name: &str) -> Option<&'s Value> {
    schema?.get("properties")?.get(name)
}

fn merge_field(schema: Option<&Value>, object: &mut Body, name: String, value: Value) -> Result<(), Refusal> {
    match (object.get_mut(&name), value) {
        (_, Value::Null) => {
            object.remove(&name);
        }
        (Some(Value::Object(inner)), Value::Object(patch)) => merge(schema, inner, patch)?,
        (Some(Value::Array(elements)), Value::Array(patch)) => {
            merge_list(schema, elements, patch)?;
        }
        (_, value) => {
            object.extend(without_directives(value).map(|value| (name, value)));
        }
    }
    Ok(())
}

fn merge_list(schema: Option<&Value>, elements: &mut Vec<Value>, patch: Vec<Value>) -> Result<(), Refusal> {
    let of_elements = schema.and_then(|schema| schema.get("items"));
    let list = ListKind::of_patch(schema);
    let replaces = patch.iter().any(|element| element[DIRECTIVE] == "replace");
    let key = match &list {
        _ if replaces => None,
        ListKind::Atomic => None,
        ListKind::Set => {
            let mut known: HashSet<String> = elements.iter().map(Value::to_string).collect();
            elements.extend(patch.into_iter().filter(|value| known.insert(value.to_string())));
            return Ok(());
        }
        ListKind::Map(keys) => keys.first(),
    };
    let Some(key) = key else {
        *elements = patch.into_iter().filter_map(without_directives).collect();
        return Ok(());
    };
    let mut places = HashMap::new();
    for (place, element) in elements.iter().enumerate() {
        places.entry(element.get(key).map(Value::to_string)).or_insert(place);
    }
    let mut gone = HashSet::new();
    for value in patch {
        let (Some(wanted), Value::Object(change)) = (value.get(key).map(Value::to_string), value) else {
            let why = format!("map: an element does not contain declared merge key: {key}");
            return Err(status::bad_request(why));
        };
        let is_deleted = change.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
        match places.entry(Some(wanted)) {
            Entry::Occupied(place) if is_deleted => {
                gone.insert(place.remove());
            }
            Entry::Occupied(place) => match &mut elements[*place.get()] {
                Value::Object(element) => merge(of_elements, element, change)?,
                other => *other = Value::Object(plain(change)),
            },
            Entry::Vacant(_) if is_deleted => {}
            Entry::Vacant(place) => {
                place.insert(elements.len());
                elements.push(Value::Object(plain(change)));
            }
        }
    }
    let mut place = 0..;
    elements.retain(|_| place.next().is_none_or(|place| !gone.contains(&place)));
    Ok(())
}

/// Sorts the list elements that are named in `order` by their position in `order`. All other
/// elements keep their index. For example, `a, x, b` with the order `b, a` becomes `b, x, a`. If
/// the list has a merge key, `order` contains objects with this key, such as `{ "name": "b" }`.
fn reorder(list: &ListKind, elements: &mut [Value], order: &[Value]) {
    let name = |element: &Value| match list {
        ListKind::Map(keys) => keys.first().and_then(|key| element.get(key)).map(Value::to_string),
        ListKind::Set | ListKind::Atomic => Some(element.to_string()),
    };
    let mut ranks = HashMap::new();
    for (rank, element) in order.iter().enumerate() {
        ranks.entry(name(element)).or_insert(rank);
    }
    let ranked =
        elements.iter().enumerate().filter_map(|(at, element)| Some((*ranks.get(&name(element))?, at)));
    let mut ranked: Vec<(usize, usize)> = ranked.collect();
    let places: Vec<usize> = ranked.iter().map(|(_, at)| *at).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let named: Vec<Value> = ranked.iter().map(|(_, at)| elements[*at].clone()).collect();
    for (at, element) in places.into_iter().zip(named) {
        elements[at] = element;
    }
}

/// Returns the value that a patch gives to a missing field: the patch without directives and null
/// fields.
fn plain(patch: Body) -> Body {
    let kept = patch.into_iter().filter(|(name, value)| !name.starts_with('$') && !value.is_null());
    kept.filter_map(|(name, value)| Some((name, without_directives(value)?))).collect::<Map<_, _>>()
}

/// Returns `None` for an object with the directive `$patch`, and for other values the value without
/// such objects.
fn without_directives(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(object) if object.contains_key(DIRECTIVE) => return None,
        Value::Object(object) => Value::Object(plain(object)),
        Value::Array(elements) => elements.into_iter().filter_map(without_directives).collect(),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    //! The effects of patches with the schema of a pod's spec.

    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::merge;
    use crate::kinds::ResourceKind;

    fn merged(before: Value, patch: Value) -> Value {
        let kind = ResourceKind::of::<Pod>();
        let (Value::Object(mut object), Value::Object(patch)) = (before, patch) else {
            panic!("`before` and `patch` must be JSON objects");
        };
        merge(kind.merging_of("spec"), &mut object, patch).expect("the patch is valid");
        Value::Object(object)
    }

    #[test]
    fn lists_with_keys_are_merged_element_by_element() {
        let before = json!({ "containers": [{ "name": "a", "image": "1", "tty": true }, { "name": "b" }] });
        let patch = json!({ "containers": [{ "name": "a", "image": "2", "tty": null }, { "name": "c" }] });
        let after =
            json!({ "containers": [{ "name": "a", "image": "2" }, { "name": "b" }, { "name": "c" }] });
        assert_eq!(merged(before, patch), after);
    }

    #[test]
    fn lists_without_keys_are_replaced() {
        let before = json!({ "tolerations": [{ "key": "a" }], "args": ["x", "y"] });
        let patch = json!({ "tolerations": [{ "key": "b" }], "args": ["z"] });
        assert_eq!(merged(before, patch.clone()), patch);
    }

    #[test]
    fn directives_delete_replace_and_retain() {
        let before = json!({
            "containers": [{ "name": "a" }, { "name": "b" }],
            "labels": { "x": "1", "y": "2" },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } },
            "finalizers": ["p", "q"],
        });
        let patch = json!({
            "containers": [{ "name": "a", "$patch": "delete" }],
            "labels": { "$patch": "replace", "z": "3" },
            "strategy": { "$retainKeys": ["type"], "type": "Recreate" },
            "$deleteFromPrimitiveList/finalizers": ["p"],
        });
        let after = json!({
            "containers": [{ "name": "b" }],
            "labels": { "z": "3" },
            "strategy": { "type": "Recreate" },
            "finalizers": ["q"],
        });
        assert_eq!(merged(before, patch), after);
    }

    #[test]
    fn set_element_order_sorts_the_named_elements() {
        let before = json!({ "containers": [{ "name": "a" }, { "name": "x" }, { "name": "b" }] });
        let patch = json!({ "$setElementOrder/containers": [{ "name": "b" }, { "name": "a" }] });
        let after = json!({ "containers": [{ "name": "b" }, { "name": "x" }, { "name": "a" }] });
        assert_eq!(merged(before, patch), after);
    }
}
