//! The namespace controller: deletes the content of a namespace that is being deleted, and then
//! removes the finalizer `kubernetes` from the spec of the namespace.

use super::Run;
use crate::api::catalogue::Served;
use crate::api::writes::{self, Outcome, Propagation};
use crate::storage::Object;

pub(super) fn while_terminating(run: &mut Run<'_>, served: &Served, object: &Object) {
    if !served.kind.is_namespace() {
        return;
    }
    for resource in run.api.catalogue.resources() {
        for content in resource.table.in_namespace(object.name()) {
            run.delete(&resource, &content, Propagation::Background);
        }
    }
    finish(run, served, object.name());
}

/// Continues the deletion of a terminating namespace if the removed `object` was its last object.
pub(super) fn after_removal(run: &mut Run<'_>, object: &Object) {
    let namespaces = run.api.catalogue.at("/api/v1/namespaces");
    let (Some(name), Some(namespaces)) = (object.namespace(), namespaces) else {
        return;
    };
    if namespaces.table.get(name).is_some_and(|namespace| namespace.terminating) {
        finish(run, &namespaces, name);
    }
}

fn finish(run: &mut Run<'_>, namespaces: &Served, name: &str) {
    let resources = run.api.catalogue.resources();
    if resources.iter().any(|resource| resource.table.is_in_use(name)) {
        return;
    }
    let removed = namespaces.table.write(|transaction| {
        let current = transaction.current(name).filter(|namespace| namespace.terminating)?;
        let mut body = current.decode();
        let released = writes::remove_namespace_finalizer(&mut body);
        if writes::finalizers(&body).is_empty() && writes::spec_finalizers(&body).is_empty() {
            return Some(transaction.remove(name, current.decode()));
        }
        if released {
            transaction.put(name, body);
        }
        None
    });
    if let Some(removed) = removed {
        run.written.push_back((namespaces.clone(), Outcome::removed(removed)));
    }
}
