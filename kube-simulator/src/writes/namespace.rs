//! What a namespace says to objects that are to be created in it, and what holds it back when it is deleted.

use serde_json::Value;

use super::{Body, Writer, metadata_str, object_mut};
use crate::status::{self, Refusal};

/// Refuses to create objects in a namespace that is being deleted, or that has to exist and does not.
pub(super) fn check_open(writer: &Writer<'_>, body: &Body) -> Result<(), Refusal> {
    let (Some(name), Some(namespaces)) = (writer.namespace, writer.server.catalogue.at("/api/v1/namespaces"))
    else {
        return Ok(());
    };
    match namespaces.table.get(name) {
        Some(namespace) if namespace.terminating => Err(status::namespace_terminating(
            &writer.served.kind,
            metadata_str(body, "name").unwrap_or_default(),
            name,
        )),
        None if writer.server.settings.habits.namespaces_required => {
            Err(status::not_found(&namespaces.kind, name))
        }
        _ => Ok(()),
    }
}

/// The finalizer, in the spec of each namespace, of the controller that empties those that are deleted.
const CONTROLLER: &str = "kubernetes";

/// Returns the finalizers in the spec of a namespace, which has those in its metadata as well.
pub(crate) fn spec_finalizers(namespace: &Body) -> Vec<String> {
    let listed = namespace.get("spec").and_then(|spec| spec.get("finalizers")).and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Sets the finalizers in the spec of a namespace; none at all is not an empty list, but no field.
pub(super) fn set_spec_finalizers(namespace: &mut Body, finalizers: Vec<String>) {
    let spec = object_mut(namespace, "spec");
    if finalizers.is_empty() {
        spec.remove("finalizers");
    } else {
        spec.insert("finalizers".to_owned(), finalizers.into());
    }
}

/// Returns a new namespace the finalizer that all have.
pub(super) fn hold(namespace: &mut Body) {
    let mut held = spec_finalizers(namespace);
    if !held.iter().any(|finalizer| finalizer == CONTROLLER) {
        held.push(CONTROLLER.to_owned());
    }
    set_spec_finalizers(namespace, held);
}

/// Takes that finalizer off a namespace, and says whether it was there.
pub(crate) fn release(namespace: &mut Body) -> bool {
    let mut held = spec_finalizers(namespace);
    let before = held.len();
    held.retain(|finalizer| finalizer != CONTROLLER);
    let released = held.len() != before;
    if released {
        set_spec_finalizers(namespace, held);
    }
    released
}
