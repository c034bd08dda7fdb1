//! The consequences of a write. In a real cluster, controllers and the API server cause them.
//!
//! The consequences take effect before the response to the write, so that tests need not wait. They
//! depend only on the stored objects, so they can be repeated and can happen in any order. No lock
//! is held between two consequences.

mod definitions;
mod garbage;
mod namespaces;

pub(crate) use definitions::restore as restore_definitions;
pub(crate) use garbage::Collecting;

use crate::api::Api;
use crate::api::catalogue::Served;
use crate::api::writes::{Body, DeleteOptions, Outcome, Propagation, WriteOptions, Writer};
use crate::storage::Object;

pub(crate) fn after_write(api: &Api, served: &Served, outcome: &Outcome) {
    if served.kind.is_definition() {
        definitions::follow(api, served, outcome);
    }
    let controllers = api.behavior.controllers;
    match outcome {
        Outcome::Removed(object) => {
            definitions::after_removal(api, served);
            if controllers {
                garbage::after_removal(api, object);
                namespaces::after_removal(api, object);
            }
        }
        Outcome::Stored(object) if object.terminating && controllers => {
            garbage::while_terminating(api, served, object);
            namespaces::while_terminating(api, served, object);
        }
        Outcome::Created(_) | Outcome::Stored(_) => {}
    }
}

fn writer<'a>(api: &'a Api, served: &'a Served, object: &'a Object) -> Writer<'a> {
    Writer { api, served, namespace: object.namespace(), options: WriteOptions::default() }
}

/// Deletes an object unless it is already being deleted. Ignores the only possible error: that the
/// object no longer exists.
fn delete(api: &Api, served: &Served, object: &Object, policy: Propagation) {
    if !object.terminating {
        let options = DeleteOptions::propagating(policy);
        let _ = writer(api, served, object).delete(object.name(), &options);
    }
}

/// Stores the changed object if `change` returns true. Does nothing if the object does not exist.
fn edit(api: &Api, served: &Served, key: &str, change: impl Fn(&mut Body) -> bool) {
    while let Some(object) = served.table.get(key) {
        let mut body = object.decode();
        if !change(&mut body) {
            return;
        }
        body.insert("apiVersion".to_owned(), served.kind.api_version().into());
        match writer(api, served, &object).update_verbatim(body) {
            // A concurrent write has changed the object, so this loop retries.
            Err(refusal) if refusal.is_conflict() => {}
            _ => return,
        }
    }
}

/// Removes a finalizer of an object that is being deleted. The object is removed with its last
/// finalizer.
fn release(api: &Api, served: &Served, key: &str, finalizer: &str) {
    edit(api, served, key, |body| {
        let held = crate::api::writes::finalizers(body);
        let left: Vec<String> =
            held.iter().filter(|held| **held != finalizer).map(ToString::to_string).collect();
        let changed = left.len() != held.len();
        crate::api::writes::set_finalizers(body, left);
        changed
    });
}
