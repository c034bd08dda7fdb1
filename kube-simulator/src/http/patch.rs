//! Parses the body of a PATCH by its media type.

use serde_json::Value;

use super::encoding::{cbor, parse_yaml};
use crate::api::status::{self, Refusal};
use crate::api::writes::{Body, Patch, rejected};
use crate::kinds::ResourceKind;

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json-patch+json";

pub(super) fn parse(
    kind: &ResourceKind,
    content_type: &str,
    body: &[u8],
    takes_cbor: bool,
) -> Result<Patch, Refusal> {
    let undecodable =
        |error: serde_json::Error| status::bad_request(format!("error decoding patch: {error}"));
    match content_type {
        MERGE => Ok(Patch::Merge(Value::Object(serde_json::from_slice(body).map_err(undecodable)?))),
        STRATEGIC if kind.is_built_in() => {
            Ok(Patch::Strategic(serde_json::from_slice(body).map_err(undecodable)?))
        }
        APPLY => Ok(Patch::Apply(configuration(body)?)),
        cbor::APPLY if takes_cbor => {
            let applied = cbor::read(body).map(Patch::Apply);
            applied
                .ok_or_else(|| status::bad_request("error decoding patch: the body is not an object in CBOR"))
        }
        JSON => {
            let operations: Vec<Value> = serde_json::from_slice(body).map_err(undecodable)?;
            let operations = serde_json::from_value(operations.into());
            Ok(Patch::Json(operations.map_err(|_| rejected())?))
        }
        _ => {
            let all = [JSON, MERGE, APPLY, cbor::APPLY];
            Err(status::unsupported_media_type(&all[..if takes_cbor { 4 } else { 3 }].join(", ")))
        }
    }
}

/// Parses a configuration for server-side apply, in JSON or YAML.
fn configuration(body: &[u8]) -> Result<Body, Refusal> {
    if let Ok(Value::Object(configuration)) = serde_json::from_slice(body) {
        return Ok(configuration);
    }
    parse_yaml(body).map_err(|error| status::bad_request(format!("error decoding YAML: {error}")))
}
