//! Patches objects: merge patches, JSON patches and strategic merge patches.

use serde_json::Value;

use super::identity::{check_name, check_same_uid, check_type_and_namespace};
use super::update::{Change, Part, replace};
use super::{Body, Outcome, Writer, apply, json_patch, metadata, strategic};
use crate::api::autoscaling;
use crate::api::schema;
use crate::api::status::{self, FieldError, Refusal};
use crate::kinds::ResourceKind;

#[derive(Debug)]
pub(crate) enum Patch {
    Merge(Value),
    Strategic(Body),
    /// A configuration for server-side apply.
    Apply(Body),
    Json(::json_patch::Patch),
}

impl Patch {
    pub(super) fn apply(&self, kind: &ResourceKind, mut object: Value) -> Result<Body, Refusal> {
        match (self, &mut object) {
            (Self::Strategic(patch), Value::Object(body)) => {
                strategic::merge(kind.merging(), body, patch.clone())?;
            }
            // Cannot happen: `object` is a JSON object, and callers handle server-side apply.
            (Self::Strategic(_) | Self::Apply(_), _) => {}
            (Self::Merge(patch), object) => ::json_patch::merge(object, patch),
            (Self::Json(patch), object) => json_patch::apply(object, patch)?,
        }
        match object {
            Value::Object(body) => Ok(body),
            _ => Err(status::bad_request(format!("the patched {} is not a JSON object", kind.kind))),
        }
    }
}

/// Returns the error for a patch whose result cannot be decoded.
pub(crate) fn invalid_patch(patched: &Body, why: &str) -> Refusal {
    let text = Value::Object(patched.clone()).to_string();
    let error = FieldError::invalid("patch", &format!("{text:?}"), why);
    status::invalid("", "", "", vec![error])
}

pub(super) fn patch(
    writer: &Writer<'_>,
    name: &str,
    patch: &Patch,
    part: Part,
    check: impl FnOnce(&Body) -> Result<(), Refusal>,
) -> Result<Outcome, Refusal> {
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
        let mut seen = Value::Object(seen);
        if let Some(schema) = &kind.schema {
            schema::prune(schema, &mut seen);
        }
        let mut after = patch.apply(kind, seen)?;
        check_type_and_namespace(kind, writer.namespace, &mut after)?;
        if let Some(why) = metadata::wrong_type(&after) {
            return Err(invalid_patch(&after, &why));
        }
        check(&after)?;
        check_name(&after, name)?;
        check_same_uid(kind, &old, &after)?;
        replace(transaction, writer, &old, &before, Change::new(after, part))
    })
}
