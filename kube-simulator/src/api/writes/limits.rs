//! The limits on the size and the depth of objects.

use serde_json::Value;

use super::Body;
use crate::api::status::{self, Refusal};

/// Maximum nesting, in levels, of an object without its metadata, and of `metadata` without
/// `managedFields`. The simulator's JSON parser accepts 127 levels, and a real server accepts
/// 10,000.
// Less than 127, because `managedFields` is nested deeper than the fields that it describes.
pub(super) const MAX_DEPTH: usize = 100;

/// Maximum nesting of `metadata` with its `managedFields`, in levels. Only clients and tests can
/// exceed this limit: the `managedFields` that the server computes are never that deep.
const MAX_MANAGED_DEPTH: usize = 120;

/// Maximum size of an object's JSON, in bytes: etcd's default `--max-request-bytes`.
const MAX_STORED: usize = 1536 * 1024;

pub(super) fn check_depth(body: &Body) -> Result<(), Refusal> {
    let limit = |name: &str| if name == "managedFields" { MAX_MANAGED_DEPTH } else { MAX_DEPTH };
    let is_too_deep = body.iter().any(|(name, value)| match value {
        Value::Object(metadata) if name == "metadata" => {
            metadata.iter().any(|(name, value)| depth(value) >= limit(name))
        }
        value => depth(value) >= MAX_DEPTH,
    });
    if is_too_deep { Err(too_deep()) } else { Ok(()) }
}

/// Returns an error if an object is too large for etcd.
///
/// `metadata.managedFields` does not count: a real server drops this field if it makes the object
/// too large.
pub(super) fn check_size(body: &Body) -> Result<(), Refusal> {
    let size = |(name, value): (&String, &Value)| match value {
        Value::Object(metadata) if name == "metadata" => metadata
            .iter()
            .filter(|(name, _)| *name != "managedFields")
            .map(|(_, value)| json_size(value))
            .sum(),
        value => json_size(value),
    };
    let total: usize = body.iter().map(size).sum();
    if total > MAX_STORED { Err(status::internal("etcdserver: request is too large")) } else { Ok(()) }
}

pub(super) fn too_deep() -> Refusal {
    status::bad_request(format!(
        "the object is nested more than {MAX_DEPTH} levels deep, which is more than the simulator can store"
    ))
}

/// Returns the number of nesting levels. A scalar has one level.
pub(super) fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(elements) => elements.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => None,
    };
    1 + inner.unwrap_or(0)
}

/// Returns the approximate length of a value's JSON in bytes, without escapes.
pub(super) fn json_size(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(value) => value.to_string().len(),
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(elements) => elements.iter().map(|element| json_size(element) + 1).sum::<usize>() + 1,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + json_size(value) + 4).sum::<usize>() + 1
        }
    }
}

#[cfg(test)]
mod tests {
    //! Tests of the limit on the depth.

    use serde_json::{Value, json};

    use super::{Body, MAX_DEPTH, MAX_MANAGED_DEPTH, check_depth};

    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn objects_that_cannot_be_parsed_are_too_deep() {
        for (field, managed, is_accepted) in [
            (MAX_DEPTH - 1, MAX_MANAGED_DEPTH - 2, true),
            (MAX_DEPTH, 1, false),
            (1, MAX_MANAGED_DEPTH - 1, false),
        ] {
            let mut body = Body::new();
            body.insert("data".to_owned(), nested(field));
            body.insert("metadata".to_owned(), json!({ "managedFields": [nested(managed)] }));
            assert_eq!(check_depth(&body).is_ok(), is_accepted, "{field} {managed}");
            let text = Value::Object(body).to_string();
            assert!(!is_accepted || serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
