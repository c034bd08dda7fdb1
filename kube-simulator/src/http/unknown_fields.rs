//! `fieldValidation`: the check for unknown fields in custom resources. Built-in kinds are not
//! checked and keep unknown fields, because only custom resources have a structural schema.

use serde_json::Value;

use super::call::Call;
use crate::api::schema;
use crate::api::status::{self, Refusal};
use crate::api::writes::{Body, invalid_patch};
use crate::kinds::ResourceKind;

/// Returns a warning for each unknown field of `body`, at most 100. If the client requests strict
/// validation, returns an error instead. Checks nothing if the client requests `Ignore`, or if the
/// kind has no schema.
pub(super) fn check(call: &Call, kind: &ResourceKind, body: &Body) -> Result<Vec<String>, Refusal> {
    check_or(call, kind, body, |why| {
        let (name, version) = (&kind.kind, &kind.version);
        status::bad_request(format!("{name} in version \"{version}\" cannot be handled as a {name}: {why}"))
    })
}

/// Checks a patched object as [`check`] does. An error says that the patch is invalid.
pub(super) fn check_patched(call: &Call, kind: &ResourceKind, body: &Body) -> Result<Vec<String>, Refusal> {
    check_or(call, kind, body, |why| invalid_patch(body, why))
}

fn check_or(
    call: &Call,
    kind: &ResourceKind,
    body: &Body,
    refuse: impl FnOnce(&str) -> Refusal,
) -> Result<Vec<String>, Refusal> {
    let wanted = call.recorded.parameter("fieldValidation").unwrap_or_default();
    let Some(schema) = kind.schema.as_ref().filter(|_| wanted != "Ignore") else {
        return Ok(Vec::new());
    };
    let unknown = schema::prune(schema, &mut Value::Object(body.clone()));
    let complaints: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    if wanted == "Strict" && !complaints.is_empty() {
        return Err(refuse(&format!("strict decoding error: {}", complaints.join(", "))));
    }
    Ok(complaints)
}
