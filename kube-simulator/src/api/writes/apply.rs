//! Server-side apply: checks the configuration, stores the merged object, and reports conflicts.
//!
//! The configuration is the body of the apply request: the fields that the client wants to set.

use std::borrow::Cow;

use http::StatusCode;
use kube::core::response::StatusDetails;
use serde_json::Value;

use super::create::{self, WriteSource, check_storable, prepare};
use super::identity::{check_name, check_same_uid, check_type_and_namespace};
use super::update::{Change, Part, replace};
use super::{Body, Outcome, Writer, admission, metadata, metadata_mut, metadata_str};
use crate::api::ownership::{self, Conflict, Manager, Operation};
use crate::api::schema;
use crate::api::status::{self, FieldError, Refusal};
use crate::kinds::ResourceKind;
use crate::storage::Object;

/// The manager that becomes the owner of an object's fields if the object has no owners before a
/// server-side apply. With `/scale`, this manager becomes the owner of replicas without an owner.
pub(super) const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Applies a configuration to an object or its status. Creates a missing object; but with
/// [`Part::Status`], a missing object is an error.
pub(super) fn apply(
    writer: &Writer<'_>,
    name: &str,
    configuration: &Body,
    part: Part,
) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let stamp = writer.api.stamp();
    let manager = Manager { operation: Operation::Apply, ..writer.manager(part, &stamp.now) };
    let applied = check(kind, writer, name, configuration.clone(), part)?;
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let Some(old) = transaction.current(&key) else {
            if part == Part::Status {
                return Err(status::not_found(kind, name));
            }
            // The configuration of a new object must contain the name; for an existing object, the
            // name in the URL suffices.
            check_name(configuration, name)?;
            if let Some(uid) = metadata_str(configuration, "uid") {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(status::conflict(kind, name, &why));
            }
            admission::check_open(writer, configuration)?;
            create::check_name(kind, name, WriteSource::Client)?;
            let mut body = applied.clone();
            prepare(kind, &mut body, &stamp, WriteSource::Client)?;
            ownership::own_unowned(kind, &mut body, &applied, &manager);
            if writer.options.dry_run {
                return Ok(Outcome::Created(Object::encode(transaction.kind, key.clone(), body, 0)));
            }
            check_storable(&body)?;
            return Ok(Outcome::Created(transaction.put(&key, body)));
        };
        let before = old.decode();
        let owned = with_owners(kind, &before, part, &manager);
        let after = ownership::apply(kind, &owned, &applied, &manager, writer.options.force)
            .map_err(|conflicts| conflict(kind, name, &conflicts))?;
        check_same_uid(kind, &old, &after)?;
        replace(transaction, writer, &old, &before, Change { after, part, owners_settled: true })
    })
}

/// Returns the object `before` with owners. If `before` has none, [`BEFORE_FIRST_APPLY`] becomes
/// the owner of its fields in `part`.
fn with_owners<'b>(
    kind: &ResourceKind,
    before: &'b Body,
    part: Part,
    manager: &Manager<'_>,
) -> Cow<'b, Body> {
    if ownership::has_owners(before) {
        return Cow::Borrowed(before);
    }
    let (mut object, mut owned) = (before.clone(), before.clone());
    keep_part(kind, &mut owned, part);
    let manager = Manager { name: BEFORE_FIRST_APPLY, operation: Operation::Update, ..*manager };
    ownership::own_unowned(kind, &mut object, &owned, &manager);
    Cow::Owned(object)
}

/// Checks the configuration `applied`, and removes fields that a write to `part` ignores. For
/// example, a write through `/status` ignores the spec.
pub(super) fn check(
    kind: &ResourceKind,
    writer: &Writer<'_>,
    name: &str,
    mut applied: Body,
    part: Part,
) -> Result<Body, Refusal> {
    if writer.options.manager.as_deref().unwrap_or_default().is_empty() {
        let missing = FieldError::required("fieldManager", "is required for apply patch");
        return Err(status::invalid("meta.k8s.io", "PatchOptions", "", vec![missing]));
    }
    check_has_type(&applied)?;
    let namespace = metadata_str(&applied, "namespace").unwrap_or_default().to_owned();
    check_type_and_namespace(kind, writer.namespace, &mut applied)?;
    let metadata = metadata_mut(&mut applied);
    if metadata.get("managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(status::bad_request("metadata.managedFields must be nil"));
    }
    metadata.entry("name").or_insert_with(|| name.into());
    check_name(&applied, name)?;
    check_fields(kind, &format!("{namespace}/{name}"), &applied)?;
    keep_part(kind, &mut applied, part);
    Ok(applied)
}

/// Removes fields that a write to `part` ignores, so that its manager does not own them.
fn keep_part(kind: &ResourceKind, body: &mut Body, part: Part) {
    match part {
        Part::Status => {
            body.retain(|field, _| matches!(field.as_str(), "status" | "metadata" | "apiVersion" | "kind"));
            metadata_mut(body).retain(|field, _| !kind.status_keeps.contains(&field.as_str()));
        }
        Part::Main if kind.status_subresource => body.retain(|field, _| field != "status"),
        Part::Main | Part::Scale | Part::Finalizers | Part::Whole => {}
    }
}

/// Checks that a configuration has `apiVersion` and `kind`, which other writes can omit.
fn check_has_type(applied: &Body) -> Result<(), Refusal> {
    let text = |field: &str| applied.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if !api_version.is_empty() && !kind.is_empty() {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Err(status::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")))
}

/// Returns an error if a configuration has duplicate elements in a set or a keyed list, labels or
/// annotations that are neither strings nor null, or (if the kind has a schema) undeclared fields.
fn check_fields(kind: &ResourceKind, key: &str, applied: &Body) -> Result<(), Refusal> {
    // Duplicate elements of a set or a keyed list cannot have owners.
    let mut errors = ownership::duplicates(kind, applied);
    errors.extend(metadata::untyped(applied));
    if let Some(schema) = &kind.schema {
        errors.extend(schema::undeclared(schema, &Value::Object(applied.clone())));
    }
    let what = match errors.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    let (group, version, kind) = (&kind.group, &kind.version, &kind.kind);
    Err(status::internal(format!(
        "failed to create typed patch object ({key}; {group}/{version}, Kind={kind}): {what}"
    )))
}

pub(super) fn conflict(kind: &ResourceKind, name: &str, conflicts: &[Conflict]) -> Refusal {
    let mut refusal = status::failure(StatusCode::CONFLICT, "Conflict", describe(conflicts));
    let cause = |conflict: &Conflict| {
        let message = format!("conflict with {}", conflict.manager);
        status::cause("FieldManagerConflict", &message, &conflict.field)
    };
    refusal.details = Some(StatusDetails {
        causes: conflicts.iter().map(cause).collect(),
        ..status::details(&kind.group, &kind.plural, name)
    });
    refusal
}

fn describe(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager, one.field);
    }
    let mut managers: Vec<&str> = conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
    managers.sort_unstable();
    managers.dedup();
    let mut lines = Vec::new();
    for manager in managers {
        lines.push(format!("conflicts with {manager}:"));
        let fields = conflicts.iter().filter(|conflict| conflict.manager == manager);
        lines.extend(fields.map(|conflict| format!("- {}", conflict.field)));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}
