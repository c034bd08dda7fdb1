//! Creating objects.

use serde_json::{Map, Value};

use super::identity::check_type_and_namespace;
use super::stamp::Stamp;
use super::{
    Body, Outcome, Part, Writer, admission, drop_empty, job, limits, metadata_mut, metadata_str, namespace,
    object_mut,
};
use crate::naming;
use crate::object::Object;
use crate::ownership;
use crate::resource::ResourceKind;
use crate::status::{self, FieldError, Refusal};

/// The longest generated name; the prefix is cut to leave room for the suffix.
const LONGEST_GENERATED_NAME: usize = 63;

/// Whose write it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// A client's, over HTTP: the server alone decides on UID, creation time, generation and first status.
    Client,
    /// The test's own: what it gives is stored, and only what it leaves out is filled in.
    Trusted,
}

/// Creates an object.
pub(super) fn create(writer: &Writer<'_>, mut body: Body, guard: Guard) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let stamp = &writer.server.stamp();
    check_type_and_namespace(kind, writer.namespace, &mut body)?;
    if guard == Guard::Client {
        namespace::check_open(writer, &body)?;
    }
    let name = settle_name(kind, &mut body, stamp, guard)?;
    prepare(kind, &mut body, stamp, guard)?;
    if writer.options.manager.is_some() {
        let manager = writer.manager(Part::Main, &stamp.now);
        ownership::note_write(kind, &Body::new(), &mut body, &manager);
    }
    let key = kind.key(writer.namespace, &name);
    if guard == Guard::Client && !writer.options.dry_run {
        check_storable(&body)?;
    }
    writer.served.table.write(|transaction| {
        if transaction.current(&key).is_some() {
            return Err(status::already_exists(kind, &name));
        }
        if writer.options.dry_run {
            return Ok(Outcome::Created(Object::encode(transaction.kind, key.clone(), body, 0)));
        }
        Ok(Outcome::Created(transaction.put(&key, body)))
    })
}

/// Refuses what etcd does not take as a new object. A dry run does not come to that.
pub(super) fn check_storable(body: &Body) -> Result<(), Refusal> {
    if metadata_str(body, "resourceVersion").is_some_and(|version| version != "0") {
        return Err(status::internal("resourceVersion should not be set on objects to be created"));
    }
    limits::check_size(body)
}

fn settle_name(kind: &ResourceKind, body: &mut Body, stamp: &Stamp, guard: Guard) -> Result<String, Refusal> {
    if let Some(name) = metadata_str(body, "name") {
        return check_name(kind, name, guard).map(|()| name.to_owned());
    }
    let Some(prefix) = metadata_str(body, "generateName") else {
        let missing = FieldError::required("metadata.name", "name or generateName is required");
        return Err(status::invalid(&kind.group, &kind.kind, "", vec![missing]));
    };
    let room = LONGEST_GENERATED_NAME - stamp.suffix.len();
    let name: String = prefix.chars().take(room).chain(stamp.suffix.chars()).collect();
    check_name(kind, &name, guard)?;
    metadata_mut(body).insert("name".to_owned(), name.as_str().into());
    Ok(name)
}

/// Refuses names that can't be path segments, and of clients, where the kind is strict, those that are no DNS names.
fn check_name(kind: &ResourceKind, name: &str, guard: Guard) -> Result<(), Refusal> {
    // Roles and what binds them may be called `system:something`.
    let is_strict = guard == Guard::Client && kind.group != "rbac.authorization.k8s.io";
    let wrong = match name {
        _ if is_strict => naming::subdomain(name),
        "." | ".." => vec!["may not be '.' or '..'".to_owned()],
        _ if name.contains('/') => vec!["may not contain '/'".to_owned()],
        _ if name.contains('%') => vec!["may not contain '%'".to_owned()],
        _ => Vec::new(),
    };
    if wrong.is_empty() {
        return Ok(());
    }
    let error = |why: &String| FieldError::invalid("metadata.name", &format!("{name:?}"), why);
    Err(status::invalid(&kind.group, &kind.kind, name, wrong.iter().map(error).collect()))
}

/// Makes of a client's body, whose type and name are settled, a new object: without what only the server decides, and
/// with what the server and the schema add.
pub(super) fn prepare(
    kind: &ResourceKind,
    body: &mut Body,
    stamp: &Stamp,
    guard: Guard,
) -> Result<(), Refusal> {
    if guard == Guard::Client {
        settle_status(kind, body);
        if kind.is_built_in() && kind.scale.is_some() {
            // The only default of a built-in spec that `/scale` can't do without.
            object_mut(body, "spec").entry("replicas").or_insert_with(|| 1.into());
        }
        if kind.is_namespace() {
            namespace::hold(body);
        }
        let metadata = metadata_mut(body);
        if kind.is_namespace() {
            let name = metadata.get("name").cloned().unwrap_or_default();
            object_mut(metadata, "labels").insert("kubernetes.io/metadata.name".to_owned(), name);
        }
        drop_empty(metadata);
        // A generation that nobody counts is the client's own.
        if kind.counts_generations {
            metadata.remove("generation");
        }
        for owned in
            ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
        {
            metadata.remove(owned);
        }
    }
    fill_in(kind, metadata_mut(body), stamp);
    if guard == Guard::Trusted {
        return Ok(());
    }
    if kind.kind == "Job" && kind.group == "batch" {
        job::select_by_uid(body);
    }
    admission::admit(kind, body)
}

/// A client can't choose the first status of a kind with a status subresource, but for nodes: a kubelet registers with
/// what it has.
fn settle_status(kind: &ResourceKind, body: &mut Body) {
    let is_given = body.get("status").is_some_and(|status| !status.is_null());
    if !kind.status_subresource || kind.takes_first_status && is_given {
        return;
    }
    body.remove("status");
    if let Some(Ok(initial)) = kind.initial_status.map(serde_json::from_str::<Value>) {
        body.insert("status".to_owned(), initial);
    }
}

/// Returns what is not there yet.
fn fill_in(kind: &ResourceKind, metadata: &mut Map<String, Value>, stamp: &Stamp) {
    let absent = |value: Option<&Value>| value.is_none_or(Value::is_null);
    if absent(metadata.get("uid")) {
        metadata.insert("uid".to_owned(), stamp.uid.as_str().into());
    }
    if absent(metadata.get("creationTimestamp")) {
        metadata.insert("creationTimestamp".to_owned(), stamp.now.as_str().into());
    }
    if kind.counts_generations && absent(metadata.get("generation")) {
        metadata.insert("generation".to_owned(), 1.into());
    }
}
