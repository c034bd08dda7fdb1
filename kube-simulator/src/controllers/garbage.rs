//! The garbage collector: deletes or orphans the dependants of a deleted object.
//!
//! Unlike the real one, it reacts to deletions only. An object whose owner has never existed is kept, so that tests
//! can write pods without replica sets.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::catalogue::Served;
use crate::object::Object;
use crate::server::Server;
use crate::writes::{self, Body, Propagation};

/// Owners in foreground deletion. Each removed dependant would recursively restart the collection of its owner.
/// Instead, the value requests another pass after the current one.
#[derive(Debug, Default)]
pub(crate) struct Collecting(Mutex<BTreeMap<Box<str>, bool>>);

impl Collecting {
    /// Begins a collection. If one is already running, requests another pass and returns `false`.
    fn begin(&self, owner: &str) -> bool {
        match self.0.lock().entry(owner.into()) {
            Entry::Vacant(entry) => {
                entry.insert(false);
                true
            }
            Entry::Occupied(mut entry) => {
                entry.insert(true);
                false
            }
        }
    }

    /// Ends a pass, and returns whether no other pass was requested.
    fn end(&self, owner: &str) -> bool {
        let mut owners = self.0.lock();
        let is_done = !owners.get_mut(owner).is_some_and(std::mem::take);
        if is_done {
            owners.remove(owner);
        }
        is_done
    }
}

/// Deletes the dependants of a removed object, and continues the deletion of owners that waited for the object.
pub(super) fn after_removal(server: &Server, object: &Object) {
    for (served, dependant) in staying_dependants(server, object) {
        if is_held(server, &dependant, &object.uid) {
            disown(server, &served, &dependant, &object.uid);
        } else {
            super::delete(server, &served, &dependant, policy(&dependant));
        }
    }
    for (served, owner) in owners(server, object) {
        while_terminating(server, &served, &owner);
    }
}

/// Acts on the finalizers of an object that is being deleted.
pub(super) fn while_terminating(server: &Server, served: &Served, object: &Object) {
    if !object.terminating {
        return;
    }
    let body = object.decode();
    for finalizer in writes::finalizers(&body) {
        match finalizer {
            writes::FOREGROUND if server.collecting.begin(&object.uid) => loop {
                delete_dependants_first(server, served, object);
                if server.collecting.end(&object.uid) {
                    break;
                }
            },
            writes::ORPHAN => orphan_dependants(server, served, object),
            _ => {}
        }
    }
}

fn delete_dependants_first(server: &Server, served: &Served, owner: &Object) {
    for (resource, dependant) in staying_dependants(server, owner) {
        if is_held(server, &dependant, &owner.uid) {
            disown(server, &resource, &dependant, &owner.uid);
            continue;
        }
        let its_own = dependants(server, &dependant);
        if its_own.iter().any(|(_, object)| waits_for_dependants(object)) {
            // Without this, the objects of an ownership cycle would wait for each other.
            unblock(server, &resource, &dependant);
        }
        let policy = if its_own.is_empty() { policy(&dependant) } else { Propagation::Foreground };
        super::delete(server, &resource, &dependant, policy);
    }
    let is_blocked = dependants(server, owner).iter().any(|(_, dependant)| blocks(dependant, &owner.uid));
    if !is_blocked {
        super::release(server, served, &owner.key, writes::FOREGROUND);
    }
}

fn orphan_dependants(server: &Server, served: &Served, owner: &Object) {
    for (resource, dependant) in dependants(server, owner) {
        disown(server, &resource, &dependant, &owner.uid);
    }
    super::release(server, served, &owner.key, writes::ORPHAN);
}

/// Returns the propagation policy for a dependant, from its finalizers.
fn policy(dependant: &Object) -> Propagation {
    let body = dependant.decode();
    let finalizers = writes::finalizers(&body);
    if finalizers.contains(&writes::ORPHAN) {
        Propagation::Orphan
    } else if finalizers.contains(&writes::FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}

/// Removes the reference to an owner from an object.
fn disown(server: &Server, served: &Served, dependant: &Object, owner: &str) {
    edit_references(server, served, dependant, |references| {
        let before = references.len();
        references.retain(|reference| reference["uid"] != owner);
        references.len() != before
    });
}

/// Clears `blockOwnerDeletion` in all owner references of an object.
fn unblock(server: &Server, served: &Served, dependant: &Object) {
    edit_references(server, served, dependant, |references| {
        let mut changed = false;
        for reference in references.iter_mut().filter(|reference| reference["blockOwnerDeletion"] == true) {
            reference["blockOwnerDeletion"] = false.into();
            changed = true;
        }
        changed
    });
}

/// Changes an object's owner references, if `change` returns true.
fn edit_references(
    server: &Server,
    served: &Served,
    object: &Object,
    change: impl Fn(&mut Vec<Value>) -> bool,
) {
    super::edit(server, served, &object.key, |body| {
        let metadata = writes::metadata_mut(body);
        let Some(Value::Array(references)) = metadata.get_mut("ownerReferences") else {
            return false;
        };
        let changed = change(references);
        if references.is_empty() {
            metadata.remove("ownerReferences");
        }
        changed
    });
}

/// Returns whether the dependant blocks the deletion of its owner.
fn blocks(dependant: &Object, owner: &str) -> bool {
    let body = dependant.decode();
    references(&body).any(|reference| reference["uid"] == owner && reference["blockOwnerDeletion"] == true)
}

/// Returns the dependants of an object.
fn dependants(server: &Server, object: &Object) -> Vec<(Arc<Served>, Arc<Object>)> {
    let mut found = Vec::new();
    for served in server.catalogue.resources() {
        let owned = served.table.dependants_of(&object.uid);
        found.extend(owned.into_iter().map(|dependant| (Arc::clone(&served), dependant)));
    }
    found
}

/// Returns the dependants that are not being deleted yet.
fn staying_dependants(server: &Server, object: &Object) -> Vec<(Arc<Served>, Arc<Object>)> {
    let mut found = dependants(server, object);
    found.retain(|(_, dependant)| !dependant.terminating);
    found
}

/// Returns whether an object has another owner that is not in foreground deletion.
fn is_held(server: &Server, object: &Object, going: &str) -> bool {
    let stays = |owner: &Object| *owner.uid != *going && !waits_for_dependants(owner);
    owners(server, object).iter().any(|(_, owner)| stays(owner))
}

/// Returns whether an object is in foreground deletion.
fn waits_for_dependants(object: &Object) -> bool {
    object.terminating && writes::finalizers(&object.decode()).contains(&writes::FOREGROUND)
}

/// Returns the existing owners of an object.
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
