//! Creates objects.

use serde_json::{Map, Value};

use super::identity::check_type_and_namespace;
use super::stamp::Stamp;
use super::{
    Body, Outcome, Part, Writer, admission, drop_empty, is_absent, job, limits, metadata, metadata_mut,
    metadata_str, namespace,
};
use crate::api::naming;
use crate::api::ownership;
use crate::api::status::{self, FieldError, Refusal};
use crate::kinds::ResourceKind;
use crate::storage::Object;

/// Maximum length of a generated name, in characters.
const MAX_GENERATED_NAME: usize = 63;

const MAX_NAME_ATTEMPTS: usize = 8;

/// Who creates an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteSource {
    /// A client that sends an HTTP request, or the server itself (for the initial objects). Some
    /// fields of the body are ignored, such as the UID and, for most kinds, the status.
    Client,
    /// A test that calls a method of the simulator. The fields that are ignored in a client's body
    /// are stored.
    Test,
}

/// Creates an object. If its name is generated and in use, generates another name, in at most
/// [`MAX_NAME_ATTEMPTS`] attempts.
pub(super) fn create(writer: &Writer<'_>, body: Body, source: WriteSource) -> Result<Outcome, Refusal> {
    if metadata_str(&body, "name").is_none() {
        for _ in 1..MAX_NAME_ATTEMPTS {
            match create_once(writer, body.clone(), source) {
                Err(refusal) if refusal.is_already_exists() => {}
                outcome => return outcome,
            }
        }
    }
    create_once(writer, body, source)
}

fn create_once(writer: &Writer<'_>, mut body: Body, source: WriteSource) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let stamp = &writer.api.stamp();
    check_type_and_namespace(kind, writer.namespace, &mut body)?;
    if source == WriteSource::Client {
        admission::check_open(writer, &body)?;
    }
    let name = determine_name(kind, &mut body, stamp, source)?;
    prepare(kind, &mut body, stamp, source)?;
    if writer.options.manager.is_some() {
        let manager = writer.manager(Part::Main, &stamp.now);
        ownership::record_write(kind, &Body::new(), &mut body, &manager);
    }
    let key = kind.key(writer.namespace, &name);
    if source == WriteSource::Client && !writer.options.dry_run {
        check_storable(&body)?;
    }
    writer.served.table.write(|transaction| {
        if let Some(existing) = transaction.current(&key) {
            return Err(status::already_exists(kind, &name, existing.terminating));
        }
        if source == WriteSource::Client {
            // The deletion of the namespace or the definition can have started after the first
            // check. Because of the lock, a deletion that this check misses finds the new object.
            admission::check_open(writer, &body)?;
        }
        if writer.options.dry_run {
            return Ok(Outcome::Created(Object::encode(transaction.kind, key.clone(), body, 0)));
        }
        Ok(Outcome::Created(transaction.put(&key, body)))
    })
}

/// Returns an error if a new object has a resource version or is too large for etcd. Dry runs and
/// [`WriteSource::Test`] skip this check.
pub(super) fn check_storable(body: &Body) -> Result<(), Refusal> {
    if metadata_str(body, "resourceVersion").is_some_and(|version| version != "0") {
        return Err(status::internal("resourceVersion should not be set on objects to be created"));
    }
    limits::check_size(body)
}

fn determine_name(
    kind: &ResourceKind,
    body: &mut Body,
    stamp: &Stamp,
    source: WriteSource,
) -> Result<String, Refusal> {
    if let Some(name) = metadata_str(body, "name") {
        return check_name(kind, name, source).map(|()| name.to_owned());
    }
    let Some(prefix) = metadata_str(body, "generateName") else {
        let missing = FieldError::required("metadata.name", "name or generateName is required");
        return Err(status::invalid(&kind.group, &kind.kind, "", vec![missing]));
    };
    let room = MAX_GENERATED_NAME - stamp.suffix.len();
    let name: String = prefix.chars().take(room).chain(stamp.suffix.chars()).collect();
    check_name(kind, &name, source)?;
    metadata_mut(body).insert("name".to_owned(), name.as_str().into());
    Ok(name)
}

/// Returns an error if `kind` does not allow `name`. With [`WriteSource::Test`], every name that
/// can be a segment of a URL path is valid.
pub(super) fn check_name(kind: &ResourceKind, name: &str, source: WriteSource) -> Result<(), Refusal> {
    // Names of roles and role bindings can contain colons, as in `system:node`.
    let is_strict = source == WriteSource::Client && kind.group != "rbac.authorization.k8s.io";
    let wrong = match name {
        _ if is_strict && kind.is_named_by_label() => naming::label(name),
        _ if is_strict => naming::subdomain(name),
        "." | ".." => vec!["may not be '.' or '..'".to_owned()],
        _ if name.contains('/') => vec!["may not contain '/'".to_owned()],
        _ if name.contains('%') => vec!["may not contain '%'".to_owned()],
        _ => Vec::new(),
    };
    if wrong.is_empty() {
        return Ok(());
    }
    let mut errors: Vec<FieldError> = metadata::invalid("metadata.name", name, wrong).collect();
    if is_strict && kind.is_namespace() {
        // The server adds a label with the name to the namespace.
        errors.extend(metadata::invalid("metadata.labels", name, naming::label_value(name)));
    }
    Err(status::invalid(&kind.group, &kind.kind, name, errors))
}

/// Adds the fields that the server sets, such as the UID, to the body of a new object, and
/// validates the body.
///
/// The caller must check the type and the name first.
pub(super) fn prepare(
    kind: &ResourceKind,
    body: &mut Body,
    stamp: &Stamp,
    source: WriteSource,
) -> Result<(), Refusal> {
    if source == WriteSource::Client {
        set_initial_status(kind, body);
        if kind.is_namespace() {
            namespace::add_finalizer(body);
        }
        let metadata = metadata_mut(body);
        drop_empty(metadata);
        // For kinds without a first generation, the client's value is kept.
        if kind.has_first_generation() {
            metadata.remove("generation");
        }
        for owned in
            ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
        {
            metadata.remove(owned);
        }
    }
    fill_in(kind, metadata_mut(body), stamp);
    // The other rules are only for clients.
    if source == WriteSource::Test {
        return limits::check_depth(body);
    }
    if kind.kind == "Job" && kind.group == "batch" {
        job::select_by_uid(body);
    }
    admission::admit(kind, body)
}

/// Sets the kind's initial status, if the kind has a status subresource. Nodes keep the client's
/// status, because a kubelet registers its node together with the status.
fn set_initial_status(kind: &ResourceKind, body: &mut Body) {
    let is_given = body.get("status").is_some_and(|status| !status.is_null());
    if !kind.status_subresource || kind.accepts_initial_status && is_given {
        return;
    }
    body.remove("status");
    if let Some(Ok(initial)) = kind.initial_status.map(serde_json::from_str::<Value>) {
        body.insert("status".to_owned(), initial);
    }
}

/// Adds the UID, the creation time and, if the kind has one, the first generation, if they are
/// missing.
fn fill_in(kind: &ResourceKind, metadata: &mut Map<String, Value>, stamp: &Stamp) {
    if is_absent(metadata.get("uid")) {
        metadata.insert("uid".to_owned(), stamp.uid.as_str().into());
    }
    if is_absent(metadata.get("creationTimestamp")) {
        metadata.insert("creationTimestamp".to_owned(), stamp.now.as_str().into());
    }
    if kind.has_first_generation() && is_absent(metadata.get("generation")) {
        metadata.insert("generation".to_owned(), 1.into());
    }
}
