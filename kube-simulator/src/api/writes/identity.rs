//! Checks that a body matches its URL.

use serde_json::Value;

use super::{Body, metadata_mut, metadata_str};
use crate::api::autoscaling;
use crate::api::status::{self, FieldError, Refusal};
use crate::kinds::ResourceKind;
use crate::storage::Object;

/// Checks that the type and the namespace of a body match the request. Sets the namespace, and
/// converts the body to the stored version.
pub(super) fn check_type_and_namespace(
    kind: &ResourceKind,
    namespace: Option<&str>,
    body: &mut Body,
) -> Result<(), Refusal> {
    check_type(kind, body)?;
    check_namespace(namespace, body)?;
    let metadata = metadata_mut(body);
    match namespace {
        None => metadata.remove("namespace"),
        Some(namespace) => metadata.insert("namespace".to_owned(), namespace.into()),
    };
    if autoscaling::is_converted(kind) {
        autoscaling::to_v2(body);
    }
    Ok(())
}

pub(super) fn check_name(body: &Body, name: &str) -> Result<(), Refusal> {
    let Some(given) = metadata_str(body, "name") else {
        return Err(status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    };
    if given == name {
        return Ok(());
    }
    Err(status::bad_request(format!(
        "the name of the object ({given}) does not match the name on the URL ({name})"
    )))
}

/// Returns an error if a patch changes the UID.
pub(super) fn check_same_uid(kind: &ResourceKind, old: &Object, after: &Body) -> Result<(), Refusal> {
    match metadata_str(after, "uid") {
        Some(uid) if uid != &*old.uid => {
            let error = FieldError::immutable("metadata.uid", uid);
            Err(status::invalid(&kind.group, &kind.kind, old.name(), vec![error]))
        }
        _ => Ok(()),
    }
}

fn check_type(kind: &ResourceKind, body: &Body) -> Result<(), Refusal> {
    let expected = kind.api_version();
    let api_version = body.get("apiVersion").and_then(Value::as_str).unwrap_or(&expected);
    let given = body.get("kind").and_then(Value::as_str).unwrap_or(&kind.kind);
    if api_version == expected && given == kind.kind {
        return Ok(());
    }
    if kind.is_built_in() {
        return Err(another_type(kind, api_version, given));
    }
    if api_version != expected {
        return Err(status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    let error = FieldError::invalid("kind", &format!("{given:?}"), &format!("must be {}", kind.kind));
    let name = metadata_str(body, "name").unwrap_or_default();
    Err(status::invalid(&kind.group, given, name, vec![error]))
}

/// Returns the error for a body of another type than the built-in `kind`.
fn another_type(kind: &ResourceKind, api_version: &str, given: &str) -> Refusal {
    let version = api_version.rsplit('/').next().unwrap_or(api_version);
    let why = if api_version == kind.api_version() {
        format!("converting ({version}.{given}) to ({}): unknown conversion", kind.go_type())
    } else {
        unknown_kind(given, api_version)
    };
    let message = format!("{given} in version \"{version}\" cannot be handled as a {}: {why}", kind.kind);
    status::bad_request(message)
}

/// Returns the error message for a kind that does not exist in this API version.
pub(super) fn unknown_kind(kind: &str, api_version: &str) -> String {
    format!(
        "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
    )
}

/// Returns an error if a body and the request have different namespaces. Does nothing if one of
/// them has no namespace.
pub(super) fn check_namespace(namespace: Option<&str>, body: &Body) -> Result<(), Refusal> {
    match (namespace, metadata_str(body, "namespace")) {
        (Some(wanted), Some(given)) if given != wanted => Err(status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
        _ => Ok(()),
    }
}
