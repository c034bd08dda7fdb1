//! The rules for namespaces: which of them accept new objects, which of them clients can delete,
//! and their label and finalizers.

use serde_json::Value;

use super::{Body, Writer, metadata_mut, metadata_str, object_mut, set_finalizers};
use crate::api::status::{self, Refusal};

/// Returns an error if the request's namespace is being deleted. If the simulator is configured to
/// require namespaces, also returns an error if this namespace does not exist. Returns no error if
/// the kind `Namespace` is not served.
pub(super) fn check_open(writer: &Writer<'_>, body: &Body) -> Result<(), Refusal> {
    let (Some(name), Some(namespaces)) = (writer.namespace, writer.api.catalogue.at("/api/v1/namespaces"))
    else {
        return Ok(());
    };
    match namespaces.table.get_nested(name) {
        Some(namespace) if namespace.terminating => Err(status::namespace_terminating(
            &writer.served.kind,
            metadata_str(body, "name").unwrap_or_default(),
            name,
        )),
        None if writer.api.behavior.namespaces_required => Err(status::not_found(&namespaces.kind, name)),
        _ => Ok(()),
    }
}

/// The namespaces that clients cannot delete.
const PERMANENT: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Returns an error if a client's request deletes a permanent namespace.
pub(super) fn check_deletable(writer: &Writer<'_>, name: &str) -> Result<(), Refusal> {
    let kind = &writer.served.kind;
    // Only deletes of clients have a field manager. Tests can delete these namespaces.
    if kind.is_namespace() && PERMANENT.contains(&name) && writer.options.manager.is_some() {
        return Err(status::forbidden(kind, name, "this namespace may not be deleted"));
    }
    Ok(())
}

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Sets the label `kubernetes.io/metadata.name` to the namespace's name. Called when a client
/// creates or changes a namespace, so that clients can neither change nor remove this label.
pub(super) fn set_name_label(namespace: &mut Body) {
    let name = metadata_str(namespace, "name").unwrap_or_default().to_owned();
    object_mut(metadata_mut(namespace), "labels").insert(NAME_LABEL.to_owned(), name.into());
}

/// The finalizer of the namespace controller, in the spec of a namespace.
const CONTROLLER: &str = "kubernetes";

/// Returns the finalizers in the spec. The metadata can contain other finalizers.
pub(crate) fn spec_finalizers(namespace: &Body) -> Vec<String> {
    let listed = namespace.get("spec").and_then(|spec| spec.get("finalizers")).and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Adds the finalizer of the namespace controller.
pub(super) fn add_finalizer(namespace: &mut Body) {
    let mut held = spec_finalizers(namespace);
    if !held.iter().any(|finalizer| finalizer == CONTROLLER) {
        held.push(CONTROLLER.to_owned());
    }
    set_finalizers(object_mut(namespace, "spec"), held);
}

/// Removes the finalizer of the namespace controller, and returns whether it was present.
pub(crate) fn remove_finalizer(namespace: &mut Body) -> bool {
    let mut held = spec_finalizers(namespace);
    let before = held.len();
    held.retain(|finalizer| finalizer != CONTROLLER);
    let released = held.len() != before;
    if released {
        set_finalizers(object_mut(namespace, "spec"), held);
    }
    released
}
