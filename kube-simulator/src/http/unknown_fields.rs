//! `fieldValidation`: the check for unknown fields in custom resources. Built-in kinds are not
//! checked and keep unknown fields, because the simulator has no schemas for these kinds.

use serde_json::Value;

use super::call::Call;
use crate::api::schema;
use crate::api::status::{self, Refusal};
use crate::api::writes::Body;
use crate::kinds::ResourceKind;

/// Returns warnings about unknown fields or, if the client requests strict validation, an error.
pub(super) fn check(call: &Call, kind: &ResourceKind, body: &Body) -> Result<Vec<String>, Refusal> {
    let wanted = call.recorded.parameter("fieldValidation").unwrap_or_default();
    let Some(schema) = kind.schema.as_ref().filter(|_| wanted != "Ignore") else {
        return Ok(Vec::new());
    };
    let unknown = schema::prune(schema, &mut Value::Object(body.clone()));
    let complaints: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    if wanted == "Strict" && !complaints.is_empty() {
        let message = format!(
            "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
            kind.kind,
            kind.version,
            kind.kind,
            complaints.join(", ")
        );
        return Err(status::bad_request(message));
    }
    Ok(complaints)
}
