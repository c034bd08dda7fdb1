//! Patching objects: merge patches and JSON patches.
//!
//! A strategic merge patch is applied as a plain merge patch, that is, lists are replaced and not merged by key. The
//! merge keys live in the Go types; patches to metadata, labels, annotations and single fields are not affected.

use serde_json::Value;

use super::identity::{check_name, check_type_and_namespace};
use super::update::{Part, replace};
use super::{Body, Outcome};
use crate::resource::ResourceKind;
use crate::status::{self, Refusal};
use crate::storage::Table;

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON: &str = "application/json-patch+json";

/// A parsed patch.
#[derive(Debug)]
pub(crate) enum Patch {
    Merge(Value),
    Json(json_patch::Patch),
}

impl Patch {
    /// Parses a patch by its media type.
    pub(crate) fn parse(kind: &ResourceKind, content_type: &str, body: &[u8]) -> Result<Self, Refusal> {
        let undecodable =
            |error: serde_json::Error| status::bad_request(format!("error decoding patch: {error}"));
        match content_type {
            MERGE => Ok(Self::Merge(serde_json::from_slice(body).map_err(undecodable)?)),
            STRATEGIC if kind.is_built_in() => {
                Ok(Self::Merge(serde_json::from_slice(body).map_err(undecodable)?))
            }
            JSON => Ok(Self::Json(serde_json::from_slice(body).map_err(undecodable)?)),
            _ => Err(status::unsupported_media_type(&[JSON, MERGE].join(", "))),
        }
    }

    fn apply(&self, kind: &ResourceKind, body: Body) -> Result<Body, Refusal> {
        let mut value = Value::Object(body);
        match self {
            Self::Merge(patch) => json_patch::merge(&mut value, patch),
            Self::Json(patch) => {
                json_patch::patch(&mut value, patch).map_err(|error| rejected(&error.to_string()))?;
            }
        }
        match value {
            Value::Object(body) => Ok(body),
            _ => Err(status::bad_request(format!("the patched object is not a {}", kind.kind))),
        }
    }
}

/// Changes an object by a patch.
pub(crate) fn patch(
    table: &Table,
    namespace: Option<&str>,
    name: &str,
    patch: &Patch,
    part: Part,
    dry_run: bool,
) -> Result<Outcome, Refusal> {
    let kind = &table.kind;
    let key = kind.key(namespace, name);
    table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        let before = old.decode();
        let mut after = patch.apply(kind, before.clone())?;
        check_type_and_namespace(kind, namespace, &mut after)?;
        check_name(&after, name)?;
        replace(transaction, &old, &before, after, part, dry_run)
    })
}

fn rejected(why: &str) -> Refusal {
    status::failure(
        http::StatusCode::UNPROCESSABLE_ENTITY,
        "Invalid",
        format!("the server rejected our request due to an error in our request: {why}"),
    )
}
