//! The garbage collector: what becomes of the objects that a deleted one owns.
//!
//! Unlike the real one it acts on deletions only. An object whose owner has never existed is left alone, so that tests
//! can write pods without their replica sets.

use std::sync::Arc;

use serde_json::Value;

use crate::catalogue::Served;
use crate::object::Object;
use crate::server::Server;
use crate::writes::{self, Body, Propagation};

/// Deletes what the object has owned, and lets owners go on that have waited for it.
pub(super) fn after_removal(server: &Server, object: &Object) {
    for served in server.catalogue.resources() {
        for dependant in served.table.dependants_of(&object.uid) {
            if has_another_owner(server, &dependant, &object.uid) {
                disown(server, &served, &dependant, &object.uid);
            } else {
                super::delete(server, &served, &dependant, Propagation::Background);
            }
        }
    }
    for (served, owner) in owners(server, object) {
        while_terminating(server, &served, &owner);
    }
}

/// Does for an object that is being deleted what its finalizers ask for.
pub(super) fn while_terminating(server: &Server, served: &Served, object: &Object) {
    if !object.terminating {
        return;
    }
    let body = object.decode();
    for finalizer in writes::finalizers(&body) {
        match finalizer {
            writes::FOREGROUND => delete_dependants_first(server, served, object),
            writes::ORPHAN => orphan_dependants(server, served, object),
            _ => {}
        }
    }
}

fn delete_dependants_first(server: &Server, served: &Served, owner: &Object) {
    for resource in server.catalogue.resources() {
        for dependant in resource.table.dependants_of(&owner.uid) {
            let policy = if owns_something(server, &dependant) {
                Propagation::Foreground
            } else {
                Propagation::Background
            };
            super::delete(server, &resource, &dependant, policy);
        }
    }
    let blocks = |dependant: &Arc<Object>| blocks(dependant, &owner.uid);
    let resources = server.catalogue.resources();
    let blocked =
        resources.iter().any(|resource| resource.table.dependants_of(&owner.uid).iter().any(blocks));
    if !blocked {
        super::release(server, served, &owner.key, writes::FOREGROUND);
    }
}

fn orphan_dependants(server: &Server, served: &Served, owner: &Object) {
    for resource in server.catalogue.resources() {
        for dependant in resource.table.dependants_of(&owner.uid) {
            disown(server, &resource, &dependant, &owner.uid);
        }
    }
    super::release(server, served, &owner.key, writes::ORPHAN);
}

/// Takes the reference to an owner off an object.
fn disown(server: &Server, served: &Served, dependant: &Object, owner: &str) {
    super::edit(server, served, &dependant.key, |body| {
        let metadata = writes::metadata_mut(body);
        let Some(Value::Array(references)) = metadata.get_mut("ownerReferences") else {
            return false;
        };
        let before = references.len();
        references.retain(|reference| reference["uid"] != owner);
        let (left, changed) = (references.len(), references.len() != before);
        if left == 0 {
            metadata.remove("ownerReferences");
        }
        changed
    });
}

/// Tells whether the owner has to wait for this dependant.
fn blocks(dependant: &Object, owner: &str) -> bool {
    let body = dependant.decode();
    references(&body).any(|reference| reference["uid"] == owner && reference["blockOwnerDeletion"] == true)
}

fn owns_something(server: &Server, object: &Object) -> bool {
    let resources = server.catalogue.resources();
    resources.iter().any(|resource| !resource.table.dependants_of(&object.uid).is_empty())
}

fn has_another_owner(server: &Server, object: &Object, gone: &str) -> bool {
    owners(server, object).iter().any(|(_, owner)| *owner.uid != *gone)
}

/// Finds the owners that exist.
fn owners(server: &Server, object: &Object) -> Vec<(Arc<Served>, Arc<Object>)> {
    if object.owners.is_empty() {
        return Vec::new();
    }
    let body = object.decode();
    references(&body)
        .filter_map(|reference| {
            let text = |field: &str| reference[field].as_str().unwrap_or_default();
            let served = server.catalogue.of_type(text("apiVersion"), text("kind"))?;
            let owner = served.table.get(&served.kind.key(object.namespace(), text("name")))?;
            (*owner.uid == *text("uid")).then_some((served, owner))
        })
        .collect()
}

fn references(body: &Body) -> impl Iterator<Item = &Value> {
    let listed = body.get("metadata").and_then(|metadata| metadata.get("ownerReferences"));
    listed.and_then(Value::as_array).into_iter().flatten()
}
