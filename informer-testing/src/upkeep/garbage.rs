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
            if is_held(server, &dependant, &object.uid) {
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
            let own = dependants(server, &dependant);
            if is_held(server, &dependant, &owner.uid) {
                disown(server, &resource, &dependant, &owner.uid);
            } else if own.is_empty() {
                super::delete(server, &resource, &dependant, Propagation::Background);
            } else {
                if own.iter().any(|own| waits_for_dependants(own)) {
                    // Else those of a circle would wait for each other.
                    unblock(server, &resource, &dependant);
                }
                super::delete(server, &resource, &dependant, Propagation::Foreground);
            }
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

/// Has nobody wait for an object any more.
fn unblock(server: &Server, served: &Served, dependant: &Object) {
    super::edit(server, served, &dependant.key, |body| {
        let metadata = writes::metadata_mut(body);
        let Some(Value::Array(references)) = metadata.get_mut("ownerReferences") else {
            return false;
        };
        let mut changed = false;
        for reference in references.iter_mut().filter(|reference| reference["blockOwnerDeletion"] == true) {
            reference["blockOwnerDeletion"] = false.into();
            changed = true;
        }
        changed
    });
}

/// The objects that an object owns.
fn dependants(server: &Server, object: &Object) -> Vec<Arc<Object>> {
    let resources = server.catalogue.resources();
    resources.iter().flat_map(|resource| resource.table.dependants_of(&object.uid)).collect()
}

/// Tells whether an object stays for the sake of an owner that does so, too.
fn is_held(server: &Server, object: &Object, going: &str) -> bool {
    let stays = |owner: &Object| *owner.uid != *going && !waits_for_dependants(owner);
    owners(server, object).iter().any(|(_, owner)| stays(owner))
}

/// Tells whether an object is to go as soon as what it owns has gone.
fn waits_for_dependants(object: &Object) -> bool {
    object.terminating && writes::finalizers(&object.decode()).contains(&writes::FOREGROUND)
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
