//! Patching objects: merge patches, JSON patches and strategic merge patches.

use serde_json::Value;

use super::identity::{check_name, check_same_uid, check_type_and_namespace};
use super::json_patch::{self, rejected};
use super::update::{Change, Part, replace};
use super::{Body, Outcome, Writer, apply, strategic};
use crate::autoscaling;
use crate::cbor;
use crate::resource::ResourceKind;
use crate::status::{self, Refusal};

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json-patch+json";

/// A parsed patch.
#[derive(Debug)]
pub(crate) enum Patch {
    Merge(Value),
    Strategic(Body),
    /// A configuration for server-side apply.
    Apply(Body),
    Json(::json_patch::Patch),
}

impl Patch {
    /// Parses a patch by its media type. CBOR is accepted only if the server supports it.
    pub(crate) fn parse(
        kind: &ResourceKind,
        content_type: &str,
        body: &[u8],
        takes_cbor: bool,
    ) -> Result<Self, Refusal> {
        let undecodable =
            |error: serde_json::Error| status::bad_request(format!("error decoding patch: {error}"));
        match content_type {
            MERGE => Ok(Self::Merge(Value::Object(serde_json::from_slice(body).map_err(undecodable)?))),
            STRATEGIC if kind.is_built_in() => {
                Ok(Self::Strategic(serde_json::from_slice(body).map_err(undecodable)?))
            }
            APPLY => Ok(Self::Apply(apply::parse(body)?)),
            cbor::APPLY if takes_cbor => {
                let applied = cbor::read(body).map(Self::Apply);
                applied.ok_or_else(|| {
                    status::bad_request("error decoding patch: it is not the CBOR of an object")
                })
            }
            JSON => {
                let operations: Vec<Value> = serde_json::from_slice(body).map_err(undecodable)?;
                let operations = serde_json::from_value(operations.into());
                Ok(Self::Json(operations.map_err(|_| rejected())?))
            }
            _ => {
                let all = [JSON, MERGE, APPLY, cbor::APPLY];
                Err(status::unsupported_media_type(&all[..if takes_cbor { 4 } else { 3 }].join(", ")))
            }
        }
    }

    pub(super) fn apply(&self, kind: &ResourceKind, mut body: Body) -> Result<Body, Refusal> {
        if let Self::Strategic(patch) = self {
            strategic::merge(kind, &mut body, patch.clone())?;
            return Ok(body);
        }
        let mut value = Value::Object(body);
        match self {
            Self::Strategic(_) | Self::Apply(_) => {}
            Self::Merge(patch) => ::json_patch::merge(&mut value, patch),
            Self::Json(patch) => json_patch::apply(&mut value, patch)?,
        }
        match value {
            Value::Object(body) => Ok(body),
            _ => Err(status::bad_request(format!("the patched object is not a {}", kind.kind))),
        }
    }
}

pub(super) fn patch(writer: &Writer<'_>, name: &str, patch: &Patch, part: Part) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    if let Patch::Apply(configuration) = patch {
        return apply::apply(writer, name, configuration, part);
    }
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        let before = old.decode();
        let mut seen = before.clone();
        seen.insert("apiVersion".to_owned(), kind.api_version().into());
        if autoscaling::is_converted(kind) {
            autoscaling::to_v1(&mut seen);
        }
        let mut after = patch.apply(kind, seen)?;
        check_type_and_namespace(kind, writer.namespace, &mut after)?;
        check_name(&after, name)?;
        check_same_uid(kind, &old, &after)?;
        replace(transaction, writer, &old, &before, Change::new(after, part))
    })
}
