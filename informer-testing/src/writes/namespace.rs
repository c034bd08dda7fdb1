//! What a namespace says to objects that are to be created in it.

use super::{Body, Writer, metadata_str};
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
