//! Checks that a body is what its URL says it is.

use serde_json::Value;

use super::{Body, metadata_mut, metadata_str};
use crate::resource::ResourceKind;
use crate::status::{self, Refusal};

/// Checks `apiVersion` and `kind`, which a body may leave out, and settles the namespace.
pub(super) fn check_type_and_namespace(
    kind: &ResourceKind,
    namespace: Option<&str>,
    body: &mut Body,
) -> Result<(), Refusal> {
    check_type(kind, body)?;
    settle_namespace(namespace, body)
}

/// Checks that a body that is to replace an object bears that object's name.
pub(super) fn check_name(body: &Body, name: &str) -> Result<(), Refusal> {
    let given = metadata_str(body, "name").unwrap_or_default();
    if given == name {
        return Ok(());
    }
    Err(status::bad_request(format!(
        "the name of the object ({given}) does not match the name on the URL ({name})"
    )))
}

fn check_type(kind: &ResourceKind, body: &Body) -> Result<(), Refusal> {
    let expected = kind.api_version();
    let api_version = body.get("apiVersion").and_then(Value::as_str).unwrap_or(&expected);
    if api_version != expected {
        return Err(status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    match body.get("kind").and_then(Value::as_str) {
        Some(other) if other != kind.kind => Err(status::bad_request(format!(
            "{other} in version \"{}\" cannot be handled as a {}",
            kind.version, kind.kind
        ))),
        _ => Ok(()),
    }
}

fn settle_namespace(namespace: Option<&str>, body: &mut Body) -> Result<(), Refusal> {
    let metadata = metadata_mut(body);
    let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    match namespace {
        None => {
            metadata.remove("namespace");
        }
        Some(namespace) if given.is_empty() => {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        Some(namespace) if given == namespace => {}
        Some(_) => {
            return Err(status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}
