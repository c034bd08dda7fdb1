//! What a namespace says to objects that are to be created in it.

use http::StatusCode;

use super::Writer;
use crate::status::{self, Refusal};

/// Refuses to create objects in a namespace that is being deleted, or that has to exist and does not.
pub(super) fn check_open(writer: &Writer<'_>) -> Result<(), Refusal> {
    let (Some(name), Some(namespaces)) = (writer.namespace, writer.server.catalogue.at("/api/v1/namespaces"))
    else {
        return Ok(());
    };
    match namespaces.table.get(name) {
        Some(namespace) if namespace.terminating => Err(terminating(writer, name)),
        None if writer.server.settings.habits.namespaces_required => {
            Err(status::not_found(&namespaces.kind, name))
        }
        _ => Ok(()),
    }
}

fn terminating(writer: &Writer<'_>, namespace: &str) -> Refusal {
    let message = format!(
        "{} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
        writer.served.kind.qualified_plural()
    );
    status::failure(StatusCode::FORBIDDEN, "Forbidden", message)
}
