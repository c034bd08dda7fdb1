//! The leaves of an object: the values and list elements that field managers can own.
//!
//! In a set, the value of an element identifies the element. In a keyed list
//! (`x-kubernetes-list-type: map`), some fields of an element identify it, such as `name`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Body;
use super::list_kind::ListKind;
use crate::api::schema;
use crate::kinds::ResourceKind;

/// The path of a leaf, in the steps of `FieldsV1`: `f:spec`, `k:{"name":"main"}`, `v:"x"` or `.`.
pub(super) type Path = Vec<Arc<str>>;

/// The path and the value of each leaf. A leaf that is a list element has the value `None`, because
/// its path identifies the element.
pub(super) type Leaves<'v> = BTreeMap<Path, Option<&'v Value>>;

/// The metadata fields that no field manager owns.
const UNOWNED: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// How a value is merged and owned: as a whole (`Scalar`), field by field, or element by element.
pub(super) enum Form {
    Scalar,
    Map,
    List(ListKind),
}

pub(super) fn form(schema: Option<&Value>, value: &Value) -> Form {
    match value {
        Value::Object(_) => {
            let is_atomic = schema.is_some_and(|schema| schema["x-kubernetes-map-type"] == "atomic");
            if is_atomic { Form::Scalar } else { Form::Map }
        }
        Value::Array(_) => match ListKind::of(schema) {
            ListKind::Atomic => Form::Scalar,
            list => Form::List(list),
        },
        _ => Form::Scalar,
    }
}

/// Returns the leaves, without the fields that no manager can own, such as `metadata.name`.
pub(super) fn leaves<'v>(kind: &ResourceKind, body: &'v Body) -> Leaves<'v> {
    collect_all(kind, body).leaves
}

/// Returns the paths of duplicate elements in sets and keyed lists.
pub(super) fn duplicates(kind: &ResourceKind, body: &Body) -> BTreeSet<Path> {
    collect_all(kind, body).duplicates
}

#[derive(Default)]
struct Found<'v> {
    leaves: Leaves<'v>,
    duplicates: BTreeSet<Path>,
}

fn collect_all<'v>(kind: &ResourceKind, body: &'v Body) -> Found<'v> {
    let mut found = Found::default();
    for (name, value) in body {
        let (path, schema) = (vec![format!("f:{name}").into()], kind.merging_of(name));
        match (name.as_str(), value) {
            ("apiVersion" | "kind", _) => {}
            ("metadata", Value::Object(metadata)) => {
                for (name, value) in metadata {
                    if !UNOWNED.contains(&name.as_str()) {
                        let schema = schema.and_then(|schema| schema::of_field(schema, name));
                        walk(schema, value, join(&path, format!("f:{name}")), &mut found);
                    }
                }
            }
            _ => walk(schema, value, path, &mut found),
        }
    }
    found
}

fn walk<'v>(schema: Option<&Value>, value: &'v Value, path: Path, found: &mut Found<'v>) {
    match (form(schema, value), value) {
        (Form::Map, Value::Object(fields)) if !fields.is_empty() => {
            for (name, value) in fields {
                let schema = schema.and_then(|schema| schema::of_field(schema, name));
                walk(schema, value, join(&path, format!("f:{name}")), found);
            }
        }
        (Form::List(_), Value::Array(elements)) if elements.is_empty() => {
            found.leaves.insert(path, Some(value));
        }
        (Form::List(ListKind::Set), Value::Array(elements)) => {
            for element in elements {
                let path = join(&path, format!("v:{element}"));
                if found.leaves.insert(path.clone(), None).is_some() {
                    found.duplicates.insert(path);
                }
            }
        }
        (Form::List(ListKind::Map(keys)), Value::Array(elements)) => {
            let schema = schema.and_then(|schema| schema.get("items"));
            for element in elements {
                let path = join(&path, key_of(element, &keys));
                // The step `.` means the element itself. The fields of the element are further
                // leaves.
                let is_again = found.leaves.insert(join(&path, ".".to_owned()), None).is_some();
                if is_again && keys.iter().all(|key| key == "protocol" || element.get(key).is_some()) {
                    found.duplicates.insert(path.clone());
                }
                walk(schema, element, path, found);
            }
        }
        _ => {
            found.leaves.insert(path, Some(value));
        }
    }
}

/// Returns the path step that identifies an element of a keyed list, such as `k:{"name":"main"}`.
/// `keys` are the names of the key fields.
pub(super) fn key_of(element: &Value, keys: &[String]) -> String {
    let mut named = Map::new();
    for key in keys {
        let value = match (element.get(key), key.as_str()) {
            (Some(value), _) => value.clone(),
            // Of the key fields of lists in built-in kinds, only `protocol` has a default other
            // than 0 and the empty string.
            (None, "protocol") => json!("TCP"),
            (None, _) => continue,
        };
        named.insert(key.clone(), value);
    }
    format!("k:{}", Value::Object(named))
}

fn join(path: &Path, step: String) -> Path {
    let mut joined = Path::with_capacity(path.len() + 1);
    // Copies only pointers: leaves with the same parent share the parent's steps.
    joined.extend_from_slice(path);
    joined.push(step.into());
    joined
}

/// Encodes paths as `FieldsV1`: nested objects, one level per step.
pub(super) fn to_fields_v1<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Body {
    let mut root = Map::new();
    for path in paths {
        let mut level = &mut root;
        for step in path {
            let next = level.entry(&**step).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = next else {
                unreachable!("all levels of `FieldsV1` are objects");
            };
            level = inner;
        }
    }
    root
}

pub(super) fn from_fields_v1(fields: &Value) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    collect(fields, &Path::new(), &mut found);
    found
}

fn collect(fields: &Value, path: &Path, found: &mut BTreeSet<Path>) {
    for (step, inner) in fields.as_object().into_iter().flatten() {
        let path = join(path, step.clone());
        if inner.as_object().is_none_or(Map::is_empty) {
            found.insert(path);
        } else {
            collect(inner, &path, found);
        }
    }
}
