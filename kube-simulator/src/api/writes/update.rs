//! Replaces a stored object, or a part of it such as the status.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::create::{self, WriteSource};
use super::identity::{check_name, check_type_and_namespace};
use super::namespace::spec_finalizers;
use super::{
    Body, Outcome, Writer, admission, drop_empty, finalizers, is_absent, limits, metadata_mut, metadata_str,
    object_mut, set_finalizers,
};
use crate::api::numbers::parse_uint;
use crate::api::ownership;
use crate::api::status::{self, FieldError, Refusal};
use crate::kinds::{CLIENT_METADATA, ResourceKind};
use crate::storage::Object;
use crate::storage::Transaction;

/// Metadata that clients cannot change.
const SERVER_OWNED: [&str; 6] =
    ["uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// The part of an object that a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The object without its status. If the kind has no subresource `/status`, also the status.
    Main,
    /// The status; for most built-in kinds, also the metadata that clients can change.
    Status,
    /// Only the number of replicas, through `/scale`.
    Scale,
    /// A namespace without its status, but with the finalizers in its spec. Clients can change
    /// these finalizers only through `/finalize`.
    Finalizers,
    /// The object with its status, in a write that the server itself or a test makes.
    Whole,
}

pub(super) fn update(
    writer: &Writer<'_>,
    name: &str,
    mut body: Body,
    part: Part,
) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    check_type_and_namespace(kind, writer.namespace, &mut body)?;
    check_name(&body, name)?;
    let key = writer.key(name);
    if kind.is_created_by_update() && writer.served.table.get(&key).is_none() {
        return create_instead(writer, name, body);
    }
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        let version = metadata_str(&body, "resourceVersion");
        if version.is_none_or(|version| parse_uint(version) == Ok(0)) && kind.needs_version() {
            let error =
                FieldError::invalid("metadata.resourceVersion", "0", "must be specified for an update");
            return Err(status::invalid(&kind.group, &kind.plural, name, vec![error]));
        }
        let before = old.decode();
        replace(transaction, writer, &old, &before, Change::new(body, part))
    })
}

/// Creates the object of a PUT, because no object with this name exists. The caller checks that a
/// PUT can create objects of this kind.
fn create_instead(writer: &Writer<'_>, name: &str, mut body: Body) -> Result<Outcome, Refusal> {
    if let Some(uid) = metadata_str(&body, "uid") {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
        return Err(status::conflict(&writer.served.kind, name, &why));
    }
    metadata_mut(&mut body).remove("resourceVersion");
    create::create(writer, body, WriteSource::Client)
}

/// Replaces an object with `body`, without the restrictions for clients. Returns an error if `body`
/// has a stale `resourceVersion` or another UID.
pub(super) fn update_verbatim(writer: &Writer<'_>, mut body: Body) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    check_type_and_namespace(kind, writer.namespace, &mut body)?;
    limits::check_depth(&body)?;
    let name = metadata_str(&body, "name").unwrap_or_default().to_owned();
    let key = writer.key(&name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, &name))?;
        check_preconditions(kind, &old, &body)?;
        keep_identity(&old, &mut body);
        if is_removed_now(writer, &body, Part::Whole) {
            return Ok(Outcome::removed(transaction.remove(&key, old.decode())));
        }
        Ok(Outcome::Stored { object: transaction.put(&key, body), before: old })
    })
}

/// Returns whether a write to `part` also removes the object, because the object is being deleted
/// and nothing blocks its removal.
fn is_removed_now(writer: &Writer<'_>, body: &Body, part: Part) -> bool {
    let metadata = body.get("metadata");
    let grace = metadata.and_then(|metadata| metadata.get("deletionGracePeriodSeconds")?.as_i64());
    // If controllers are simulated, only the namespace controller and writes to `/finalize` remove
    // a namespace.
    let is_controlled = writer.api.behavior.controllers && part != Part::Finalizers;
    let waits_for_content =
        writer.served.kind.is_namespace() && (is_controlled || !spec_finalizers(body).is_empty());
    metadata_str(body, "deletionTimestamp").is_some()
        && grace.unwrap_or(0) == 0
        && finalizers(body).is_empty()
        && !waits_for_content
}

/// Copies the UID and the creation time from `old` if `body` lacks them.
fn keep_identity(old: &Object, body: &mut Body) {
    let given = metadata_mut(body);
    let missing: Vec<_> =
        ["uid", "creationTimestamp"].into_iter().filter(|field| is_absent(given.get(*field))).collect();
    if missing.is_empty() {
        return;
    }
    let mut before = old.decode();
    for field in missing {
        copy_or_remove(metadata_mut(&mut before), given, field);
    }
}

/// The new content for an object. [`replace`] uses only the fields that belong to `part`, and takes
/// the other fields from the stored object. With [`Part::Scale`], the caller must do this.
pub(super) struct Change {
    pub(super) after: Body,
    pub(super) part: Part,
    /// Whether `after` already contains the new `managedFields`. If not, [`replace`] computes them.
    pub(super) owners_settled: bool,
}

impl Change {
    pub(super) fn new(after: Body, part: Part) -> Self {
        Self { after, part, owners_settled: false }
    }
}

/// Replaces `old` with `change.after`, but keeps the fields that are outside `change.part` or that
/// clients cannot change. `before` is the decoded JSON of `old`.
pub(super) fn replace(
    transaction: &mut Transaction<'_>,
    writer: &Writer<'_>,
    old: &Arc<Object>,
    before: &Body,
    change: Change,
) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let Change { after, part, owners_settled } = change;
    check_preconditions(kind, old, &after)?;
    let mut after = match part {
        Part::Main | Part::Scale | Part::Finalizers => keep_status(kind, before, part, after),
        Part::Status => keep_all_but_status(kind, before, after),
        Part::Whole => after,
    };
    if matches!(part, Part::Main | Part::Status | Part::Finalizers) {
        check_deletion(kind, old.name(), before, &after)?;
    }
    if kind.is_definition() && part == Part::Main {
        admission::check_names(kind, before, &after)?;
    }
    keep_server_owned(before, &mut after);
    if part != Part::Whole {
        drop_empty(metadata_mut(&mut after));
        admission::admit(kind, &mut after)?;
    }
    if !owners_settled {
        let now = writer.api.now();
        ownership::record_write(kind, before, &mut after, &writer.manager(part, &now));
    }
    if after == *before {
        // The server does not store an unchanged object: there is no event and no new resource
        // version.
        return Ok(Outcome::unchanged(old.clone()));
    }
    count_generation(kind, before, &mut after, part);
    if writer.options.dry_run {
        let object = Object::encode(transaction.kind, old.key.clone(), after, old.resource_version);
        return Ok(Outcome::Stored { object, before: old.clone() });
    }
    if is_removed_now(writer, &after, part) {
        // The `DELETED` event has the stored object. The response has the written object with the
        // version from before the removal.
        transaction.remove(&old.key, before.clone());
        let object = Object::encode(transaction.kind, old.key.clone(), after, old.resource_version);
        return Ok(Outcome::Removed { object, before: old.clone() });
    }
    if part != Part::Whole {
        limits::check_size(&after)?;
    }
    Ok(Outcome::Stored { object: transaction.put(&old.key, after), before: old.clone() })
}

/// Returns an error if a write marks an object as being deleted, or adds finalizers to an object
/// that is being deleted.
fn check_deletion(kind: &ResourceKind, name: &str, before: &Body, after: &Body) -> Result<(), Refusal> {
    let refuse = |error| Err(status::invalid(&kind.group, &kind.kind, name, vec![error]));
    let marked = metadata_str(before, "deletionTimestamp");
    if let (None, Some(given)) = (marked, metadata_str(after, "deletionTimestamp")) {
        return refuse(FieldError::immutable("metadata.deletionTimestamp", given));
    }
    let held = finalizers(before);
    let new: BTreeSet<&str> =
        finalizers(after).into_iter().filter(|finalizer| !held.contains(finalizer)).collect();
    if marked.is_none() || new.is_empty() {
        return Ok(());
    }
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{new:?}"
    );
    refuse(FieldError::forbidden("metadata.finalizers", &why))
}

/// Returns an error if `after` has another resource version (except `0`) or another UID than the
/// stored object.
fn check_preconditions(kind: &ResourceKind, old: &Object, after: &Body) -> Result<(), Refusal> {
    let given = metadata_str(after, "resourceVersion").map(parse_uint).transpose();
    let given = given.map_err(status::internal)?.unwrap_or(0);
    if given != 0 && given != old.resource_version {
        return Err(status::modified_since(kind, old.name()));
    }
    check_uid(kind, old, metadata_str(after, "uid"))
}

pub(super) fn check_uid(kind: &ResourceKind, old: &Object, wanted: Option<&str>) -> Result<(), Refusal> {
    match wanted {
        Some(uid) if uid != old.uid.as_ref() => Err(status::conflict(
            kind,
            old.name(),
            &format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.uid),
        )),
        _ => Ok(()),
    }
}

/// Keeps the status if the kind has the subresource `/status`. In a namespace, also keeps the
/// finalizers in the spec, unless `part` includes these finalizers.
fn keep_status(kind: &ResourceKind, before: &Body, part: Part, mut after: Body) -> Body {
    if kind.is_namespace() {
        let finalizers = spec_finalizers(if part == Part::Finalizers { &after } else { before });
        set_finalizers(object_mut(&mut after, "spec"), finalizers);
    }
    if kind.status_subresource {
        copy_or_remove(before, &mut after, "status");
    }
    after
}

fn keep_all_but_status(kind: &ResourceKind, before: &Body, mut after: Body) -> Body {
    let mut kept = before.clone();
    copy_or_remove(&after, &mut kept, "status");
    let (given, metadata) = (metadata_mut(&mut after), metadata_mut(&mut kept));
    for field in CLIENT_METADATA.into_iter().filter(|field| !kind.status_keeps.contains(field)) {
        copy_or_remove(given, metadata, field);
    }
    // Server-side apply has already computed `managedFields`. For other writes, `record_write`
    // ignores the client's list.
    if let Some(given) = given.remove("managedFields") {
        metadata.insert("managedFields".to_owned(), given);
    }
    kept
}

fn keep_server_owned(before: &Body, after: &mut Body) {
    // The client's API version can differ from the stored version, which is kept.
    copy_or_remove(before, after, "kind");
    copy_or_remove(before, after, "apiVersion");
    let Some(Value::Object(old)) = before.get("metadata") else {
        return;
    };
    let metadata = metadata_mut(after);
    for field in SERVER_OWNED {
        copy_or_remove(old, metadata, field);
    }
    copy_or_remove(old, metadata, "resourceVersion");
}

/// Increments the generation if the write changed a field that counts, for example a field of the
/// spec.
fn count_generation(kind: &ResourceKind, before: &Body, after: &mut Body, part: Part) {
    if !kind.counts_generations || matches!(part, Part::Status | Part::Whole) {
        return;
    }
    // Without the subresource `/status`, the status of a custom resource counts like the spec.
    let has_own_status = kind.status_subresource || kind.is_built_in();
    let outside = |name: &str| name == "metadata" || name == "status" && has_own_status;
    let content = |body: &Body| body.iter().filter(|(name, _)| !outside(name)).count();
    let same = content(before) == content(after)
        && before.iter().all(|(name, value)| outside(name) || after.get(name) == Some(value));
    let counted = |body: &Body, field: &str| body.get("metadata").and_then(|it| it.get(field)).cloned();
    let same_metadata =
        kind.counted_metadata.iter().all(|field| counted(before, field) == counted(after, field));
    if !(same && same_metadata) {
        let metadata = metadata_mut(after);
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
        metadata.insert("generation".to_owned(), generation.wrapping_add(1).into());
    }
}

fn copy_or_remove(from: &Body, to: &mut Body, field: &str) {
    match from.get(field) {
        Some(value) => to.insert(field.to_owned(), value.clone()),
        None => to.remove(field),
    };
}
