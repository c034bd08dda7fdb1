//! The garbage collector: deletes or orphans the dependants of a deleted object.
//!
//! Unlike the real garbage collector, this one reacts to deletions only. An object whose owner has
//! never existed is kept, so that a test can create pods without their replica sets.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::api::Api;
use crate::api::catalogue::Served;
use crate::api::writes::{self, Body, Propagation};
use crate::storage::Object;

/// The UIDs of the owners whose dependants are being deleted, each with `true` if another pass over
/// its dependants is requested.
///
/// When a dependant is removed, its owner needs another pass. If a pass for this owner is in
/// progress, the other pass follows it, because a nested pass could overflow the stack.
#[derive(Debug, Default)]
pub(crate) struct Collecting(Mutex<BTreeMap<Box<str>, bool>>);

impl Collecting {
    /// Begins a pass over the dependants of `owner` and returns `true`. If such a pass is in
    /// progress, requests another pass and returns `false`.
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

    /// Ends a pass over the dependants of `owner`. Returns `false` if another pass was requested.
    /// The caller then makes the other pass, and calls this method again.
    fn end(&self, owner: &str) -> bool {
        let mut owners = self.0.lock();
        let is_done = !owners.get_mut(owner).is_some_and(std::mem::take);
        if is_done {
            owners.remove(owner);
        }
        is_done
    }
}

/// Deletes the dependants of a removed object unless another owner keeps them. Then continues the
/// deletion of owners that waited for the removal.
pub(super) fn after_removal(api: &Api, object: &Object) {
    for (served, dependant) in staying_dependants(api, object) {
        if is_held(api, &dependant, &object.uid) {
            remove_owner(api, &served, &dependant, &object.uid);
        } else {
            super::delete(api, &served, &dependant, policy(&dependant));
        }
    }
    for (served, owner) in owners(api, object) {
        while_terminating(api, &served, &owner);
    }
}

/// Deletes or orphans the dependants of an object that is being deleted, as its finalizers require.
pub(super) fn while_terminating(api: &Api, served: &Served, object: &Object) {
    if !object.terminating {
        return;
    }
    let body = object.decode();
    for finalizer in writes::finalizers(&body) {
        match finalizer {
            writes::FOREGROUND if api.collecting.begin(&object.uid) => loop {
                delete_dependants_first(api, served, object);
                if api.collecting.end(&object.uid) {
                    break;
                }
            },
            writes::ORPHAN => orphan_dependants(api, served, object),
            _ => {}
        }
    }
}

fn delete_dependants_first(api: &Api, served: &Served, owner: &Object) {
    for (resource, dependant) in staying_dependants(api, owner) {
        if is_held(api, &dependant, &owner.uid) {
            remove_owner(api, &resource, &dependant, &owner.uid);
            continue;
        }
        let its_own = dependants(api, &dependant);
        if its_own.iter().any(|(_, object)| waits_for_dependants(object)) {
            // Without `unblock`, the objects of an ownership cycle would wait for each other
            // forever.
            unblock(api, &resource, &dependant);
        }
        let policy = if its_own.is_empty() { policy(&dependant) } else { Propagation::Foreground };
        super::delete(api, &resource, &dependant, policy);
    }
    let is_blocked = dependants(api, owner).iter().any(|(_, dependant)| blocks(dependant, &owner.uid));
    if !is_blocked {
        super::release(api, served, &owner.key, writes::FOREGROUND);
    }
}

fn orphan_dependants(api: &Api, served: &Served, owner: &Object) {
    for (resource, dependant) in dependants(api, owner) {
        remove_owner(api, &resource, &dependant, &owner.uid);
    }
    super::release(api, served, &owner.key, writes::ORPHAN);
}

/// Returns the propagation policy that a dependant's finalizers require.
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

/// Removes the owner reference with the UID `owner`.
fn remove_owner(api: &Api, served: &Served, dependant: &Object, owner: &str) {
    edit_references(api, served, dependant, |references| {
        let before = references.len();
        references.retain(|reference| reference["uid"] != owner);
        references.len() != before
    });
}

/// Clears `blockOwnerDeletion` in all owner references of an object.
fn unblock(api: &Api, served: &Served, dependant: &Object) {
    edit_references(api, served, dependant, |references| {
        let mut changed = false;
        for reference in references.iter_mut().filter(|reference| reference["blockOwnerDeletion"] == true) {
            reference["blockOwnerDeletion"] = false.into();
            changed = true;
        }
        changed
    });
}

/// Stores the changed owner references if `change` returns true.
fn edit_references(api: &Api, served: &Served, object: &Object, change: impl Fn(&mut Vec<Value>) -> bool) {
    super::edit(api, served, &object.key, |body| {
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

fn blocks(dependant: &Object, owner: &str) -> bool {
    let body = dependant.decode();
    references(&body).any(|reference| reference["uid"] == owner && reference["blockOwnerDeletion"] == true)
}

fn dependants(api: &Api, object: &Object) -> Vec<(Arc<Served>, Arc<Object>)> {
    let mut found = Vec::new();
    for served in api.catalogue.resources() {
        let owned = served.table.dependants_of(&object.uid);
        found.extend(owned.into_iter().map(|dependant| (Arc::clone(&served), dependant)));
    }
    found
}

/// Returns the dependants that are not being deleted yet.
fn staying_dependants(api: &Api, object: &Object) -> Vec<(Arc<Served>, Arc<Object>)> {
    let mut found = dependants(api, object);
    found.retain(|(_, dependant)| !dependant.terminating);
    found
}

/// Returns whether an owner keeps an object. Owners in foreground deletion do not count, nor does
/// the owner with the UID `deleted_owner`.
fn is_held(api: &Api, object: &Object, deleted_owner: &str) -> bool {
    let stays = |owner: &Object| *owner.uid != *deleted_owner && !waits_for_dependants(owner);
    owners(api, object).iter().any(|(_, owner)| stays(owner))
}

/// Returns whether an object is in foreground deletion.
fn waits_for_dependants(object: &Object) -> bool {
    object.terminating && writes::finalizers(&object.decode()).contains(&writes::FOREGROUND)
}

/// Returns the existing owners of an object.
fn owners(api: &Api, object: &Object) -> Vec<(Arc<Served>, Arc<Object>)> {
    if object.owners.is_empty() {
        return Vec::new();
    }
    let body = object.decode();
    references(&body)
        .filter_map(|reference| {
            let text = |field: &str| reference[field].as_str().unwrap_or_default();
            let served = api.catalogue.of_type(text("apiVersion"), text("kind"))?;
            let owner = served.table.get(&served.kind.key(object.namespace(), text("name")))?;
            (*owner.uid == *text("uid")).then_some((served, owner))
        })
        .collect()
}

fn references(body: &Body) -> impl Iterator<Item = &Value> {
    let listed = body.get("metadata").and_then(|metadata| metadata.get("ownerReferences"));
    listed.and_then(Value::as_array).into_iter().flatten()
}
