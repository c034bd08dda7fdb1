//! The garbage collector: deletes or orphans the dependants of a deleted object.
//!
//! Unlike the real garbage collector, this one does not look for the owners of a new object. An
//! object whose owner has never existed is kept, so that a test can create pods without their
//! replica sets.

use std::sync::Arc;

use serde_json::Value;

use super::Run;
use crate::api::Api;
use crate::api::catalogue::Served;
use crate::api::writes::{self, Body, Propagation};
use crate::storage::Object;

/// Deletes the dependants of a removed object that have no other owner and no [invalid
/// owner](has_invalid_owner). Afterwards, continues the foreground deletion of the object's own
/// owners.
pub(super) fn after_removal(run: &mut Run<'_>, object: &Object) {
    for (served, dependant) in dependants_to_process(run.api, object) {
        if has_other_owner(run.api, &dependant, &object.uid) {
            remove_owner(run, &served, &dependant, &object.uid);
        } else {
            run.delete(&served, &dependant, policy(&dependant));
        }
    }
    for (served, owner) in owners(run.api, object) {
        while_terminating(run, &served, &owner);
    }
}

/// Continues the foreground deletion of owners that a dependant no longer blocks. `before` and
/// `after` are the states of the dependant.
pub(super) fn after_update(run: &mut Run<'_>, before: &Object, after: &Object) {
    let is_unblocked = |owner: &str| blocks(before, owner) && !blocks(after, owner);
    if !before.owners.iter().any(|(owner, _)| is_unblocked(owner)) {
        return;
    }
    for (served, owner) in owners(run.api, before) {
        while_terminating(run, &served, &owner);
    }
}

/// Deletes or orphans the dependants of an object that is being deleted, as its finalizers require.
pub(super) fn while_terminating(run: &mut Run<'_>, served: &Served, object: &Object) {
    if !object.terminating {
        return;
    }
    let body = object.decode();
    for finalizer in writes::finalizers(&body) {
        match finalizer {
            writes::FOREGROUND => delete_dependants_first(run, served, object),
            writes::ORPHAN => orphan_dependants(run, served, object),
            _ => {}
        }
    }
}

fn delete_dependants_first(run: &mut Run<'_>, served: &Served, owner: &Object) {
    let api = run.api;
    for (resource, dependant) in dependants_to_process(api, owner) {
        if has_other_owner(api, &dependant, &owner.uid) {
            remove_owner(run, &resource, &dependant, &owner.uid);
            continue;
        }
        let its_own = dependants(api, &dependant);
        if its_own.iter().any(|(_, object)| waits_for_dependants(object)) {
            // Without `unblock`, the objects of an ownership cycle would wait for each other
            // forever.
            unblock(run, &resource, &dependant);
        }
        let policy = if its_own.is_empty() { policy(&dependant) } else { Propagation::Foreground };
        run.delete(&resource, &dependant, policy);
    }
    let is_blocked = dependants(api, owner).iter().any(|(_, dependant)| blocks(dependant, &owner.uid));
    if !is_blocked {
        run.release(served, &owner.key, writes::FOREGROUND);
    }
}

fn orphan_dependants(run: &mut Run<'_>, served: &Served, owner: &Object) {
    for (resource, dependant) in dependants(run.api, owner) {
        remove_owner(run, &resource, &dependant, &owner.uid);
    }
    run.release(served, &owner.key, writes::ORPHAN);
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
fn remove_owner(run: &mut Run<'_>, served: &Served, dependant: &Object, owner: &str) {
    edit_references(run, served, dependant, |references| {
        let before = references.len();
        references.retain(|reference| reference["uid"] != owner);
        references.len() != before
    });
}

/// Clears `blockOwnerDeletion` in all owner references of an object.
fn unblock(run: &mut Run<'_>, served: &Served, dependant: &Object) {
    edit_references(run, served, dependant, |references| {
        let mut changed = false;
        for reference in references.iter_mut().filter(|reference| reference["blockOwnerDeletion"] == true) {
            reference["blockOwnerDeletion"] = false.into();
            changed = true;
        }
        changed
    });
}

/// Stores the changed owner references if `change` returns true.
fn edit_references(
    run: &mut Run<'_>,
    served: &Served,
    object: &Object,
    change: impl Fn(&mut Vec<Value>) -> bool,
) {
    run.edit(served, &object.key, |body| {
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

/// Returns whether a dependant's reference to this owner has `blockOwnerDeletion`.
fn blocks(dependant: &Object, owner: &str) -> bool {
    dependant.owners.iter().any(|(uid, blocks)| *blocks && **uid == *owner)
}

fn dependants(api: &Api, object: &Object) -> Vec<(Arc<Served>, Arc<Object>)> {
    let mut found = Vec::new();
    for served in api.catalogue.resources() {
        let owned = served.table.dependants_of(&object.uid);
        found.extend(owned.into_iter().map(|dependant| (Arc::clone(&served), dependant)));
    }
    found
}

/// Returns the dependants of `object` that the garbage collector may delete or change if it does
/// not orphan them. Left out are dependants that are being deleted, and those with an [invalid
/// owner](has_invalid_owner).
fn dependants_to_process(api: &Api, object: &Object) -> Vec<(Arc<Served>, Arc<Object>)> {
    let mut found = dependants(api, object);
    found.retain(|(_, dependant)| !dependant.terminating && !has_invalid_owner(api, dependant, object));
    found
}

/// Returns whether an owner of `dependant` is invalid. The real garbage collector does not delete
/// an object with an invalid owner, and changes it only to orphan it. An owner is invalid in these
/// cases:
/// - The owner is namespaced, and the dependant is cluster-scoped.
/// - The kind of the owner is not served. (This case does not apply to `owner`, the owner whose
///   dependants the garbage collector currently processes.)
fn has_invalid_owner(api: &Api, dependant: &Object, owner: &Object) -> bool {
    let is_cluster_scoped = dependant.namespace().is_none();
    if is_cluster_scoped && owner.namespace().is_some() {
        return true;
    }
    // The kind of `owner` is not checked: it can be a custom resource that is no longer served.
    let deleted: &str = &owner.uid;
    let body = dependant.decode();
    let mut others = references(&body).filter(|reference| reference["uid"] != deleted);
    others.any(|reference| {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let served = api.catalogue.of_type(text("apiVersion"), text("kind"));
        served.is_none_or(|served| served.kind.namespaced && is_cluster_scoped)
    })
}

/// Returns whether an object has an owner other than `deleted_owner` (a UID). Owners that do not
/// exist or are in foreground deletion are ignored.
fn has_other_owner(api: &Api, object: &Object, deleted_owner: &str) -> bool {
    let stays = |owner: &Object| *owner.uid != *deleted_owner && !waits_for_dependants(owner);
    owners(api, object).iter().any(|(_, owner)| stays(owner))
}

/// Returns whether an object is in foreground deletion.
fn waits_for_dependants(object: &Object) -> bool {
    object.terminating && writes::finalizers(&object.decode()).contains(&writes::FOREGROUND)
}

/// Returns the existing owners of an object, except owners whose kind is not served.
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
