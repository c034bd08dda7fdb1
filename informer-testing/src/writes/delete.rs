//! Deleting objects.
//!
//! There is no kubelet and no garbage collector here, so grace periods count as over at once and dependants stay.
//! Finalizers do hold an object back, as on a real server.

use serde::Deserialize;

use super::stamp::Stamp;
use super::{Body, Outcome, has_finalizers, metadata_mut, metadata_str};
use crate::object::Object;
use crate::resource::ResourceKind;
use crate::status::{self, Refusal};
use crate::storage::Table;

/// What a client may ask of a delete, in its body.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    preconditions: Preconditions,
    pub(crate) dry_run: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Refusal> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(body)
            .map_err(|error| status::bad_request(format!("error decoding delete options: {error}")))
    }
}

/// Deletes an object, or marks it as being deleted while it has finalizers.
pub(crate) fn delete(
    table: &Table,
    key: &str,
    options: &DeleteOptions,
    stamp: &Stamp,
) -> Result<Outcome, Refusal> {
    let kind = &table.kind;
    table.write(|transaction| {
        let name = key.rsplit('/').next().unwrap_or(key);
        let old = transaction.current(key).ok_or_else(|| status::not_found(kind, name))?;
        options.preconditions.check(kind, &old)?;
        if !options.dry_run.is_empty() {
            return Ok(Outcome::Stored(old));
        }
        let mut body = old.decode();
        if !has_finalizers(&body) {
            return Ok(Outcome::Removed(transaction.remove(key, body)));
        }
        if metadata_str(&body, "deletionTimestamp").is_some() {
            return Ok(Outcome::Stored(old));
        }
        mark(kind, &mut body, stamp);
        Ok(Outcome::Stored(transaction.put(key, body)))
    })
}

fn mark(kind: &ResourceKind, body: &mut Body, stamp: &Stamp) {
    let metadata = metadata_mut(body);
    metadata.insert("deletionTimestamp".to_owned(), stamp.now.as_str().into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
    if kind.counts_generations {
        let generation = metadata.get("generation").and_then(serde_json::Value::as_i64).unwrap_or(0);
        metadata.insert("generation".to_owned(), (generation + 1).into());
    }
}

impl Preconditions {
    fn check(&self, kind: &ResourceKind, old: &Object) -> Result<(), Refusal> {
        let version = old.resource_version.to_string();
        let checks = [
            ("UID", self.uid.as_deref(), old.uid.as_ref()),
            ("ResourceVersion", self.resource_version.as_deref(), version.as_str()),
        ];
        for (what, wanted, actual) in checks {
            if let Some(wanted) = wanted.filter(|wanted| *wanted != actual) {
                let why = format!(
                    "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {actual}"
                );
                return Err(status::conflict(kind, old.name(), &why));
            }
        }
        Ok(())
    }
}
