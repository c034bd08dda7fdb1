//! The namespace controller: deletes the content of a namespace that is being deleted, and then removes its finalizer
//! from the spec.

use crate::catalogue::Served;
use crate::object::Object;
use crate::server::Server;
use crate::writes::{self, Outcome, Propagation};

/// Deletes the content of a namespace that is being deleted.
pub(super) fn while_terminating(server: &Server, served: &Served, object: &Object) {
    if !served.kind.is_namespace() {
        return;
    }
    for resource in server.catalogue.resources() {
        for content in resource.table.in_namespace(object.name()) {
            super::delete(server, &resource, &content, Propagation::Background);
        }
    }
    finish(server, served, object.name());
}

/// Releases the namespace of a removed object, if the namespace is now empty.
pub(super) fn after_removal(server: &Server, object: &Object) {
    let (Some(name), Some(namespaces)) = (object.namespace(), server.catalogue.at("/api/v1/namespaces"))
    else {
        return;
    };
    if namespaces.table.get(name).is_some_and(|namespace| namespace.terminating) {
        finish(server, &namespaces, name);
    }
}

fn finish(server: &Server, namespaces: &Served, name: &str) {
    let resources = server.catalogue.resources();
    if resources.iter().any(|resource| resource.table.is_in_use(name)) {
        return;
    }
    let removed = namespaces.table.write(|transaction| {
        let Some(current) = transaction.current(name).filter(|namespace| namespace.terminating) else {
            return Ok(None);
        };
        let mut body = current.decode();
        let released = writes::release_namespace(&mut body);
        if writes::finalizers(&body).is_empty() && writes::spec_finalizers(&body).is_empty() {
            return Ok(Some(transaction.remove(name, body)));
        }
        if released {
            transaction.put(name, body);
        }
        Ok(None)
    });
    if let Ok(Some(removed)) = removed {
        super::after_write(server, namespaces, &Outcome::Removed(removed));
    }
}
