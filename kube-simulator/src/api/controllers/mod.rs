//! The simulated controllers: they react to a write, and can write other objects. For example, they
//! delete the dependants of a removed owner.
//!
//! The controllers finish before the response to the write, so that tests need not wait. Their
//! writes depend only on the stored objects, so they can be repeated and can happen in any order.
//! No lock is held between two of these writes.

mod definitions;
mod garbage;
mod namespaces;

pub(crate) use definitions::restore as restore_definitions;

use std::collections::VecDeque;

use crate::api::Api;
use crate::api::catalogue::Served;
use crate::api::writes::{self, Body, DeleteOptions, Outcome, Propagation, WriteOptions, Writer};
use crate::storage::Object;

/// The state of one call of [`after_write`].
struct Run<'a> {
    api: &'a Api,
    /// The controllers' own writes, to which the controllers must still react. For example, after
    /// the deletion of a replica set, the garbage collector must delete the pods. Each pair
    /// contains the resource and the result of a write.
    written: VecDeque<(Served, Outcome)>,
}

/// Runs the simulated controllers after a write, and again after each write that they make. (Only
/// the removal of a namespace's finalizer `kubernetes`, while other finalizers keep the namespace,
/// causes no further run.)
pub(crate) fn after_write(api: &Api, served: &Served, outcome: &Outcome) {
    let mut run = Run { api, written: VecDeque::new() };
    run.follow(served, outcome);
    // A recursion instead of this loop would overflow the stack for a long chain of owners.
    while let Some((served, outcome)) = run.written.pop_front() {
        run.follow(&served, &outcome);
    }
}

impl Run<'_> {
    fn follow(&mut self, served: &Served, outcome: &Outcome) {
        if served.kind.is_definition() {
            definitions::follow(self, served, outcome);
        }
        let controllers = self.api.behavior.controllers;
        match outcome {
            Outcome::Removed { before, .. } => {
                definitions::after_removal(self, served);
                if controllers {
                    garbage::after_removal(self, before);
                    namespaces::after_removal(self, before);
                }
            }
            Outcome::Stored { object, before } if controllers => {
                garbage::after_update(self, before, object);
                if object.terminating {
                    garbage::while_terminating(self, served, object);
                    namespaces::while_terminating(self, served, object);
                }
            }
            Outcome::Created(_) | Outcome::Stored { .. } => {}
        }
    }

    /// Deletes an object unless it is already being deleted. Ignores the only possible errors: that
    /// the object no longer exists, or that its name now belongs to another object.
    fn delete(&mut self, served: &Served, object: &Object, policy: Propagation) {
        if object.terminating {
            return;
        }
        let options = DeleteOptions::of_uid(&object.uid, policy);
        if let Ok(outcome) = writer(self.api, served, object).delete_alone(object.name(), &options) {
            self.written.push_back((served.clone(), outcome));
        }
    }

    /// Stores the changed object if `change` returns true, or removes the object if it is being
    /// deleted and nothing blocks its removal any more. Does nothing if the object does not exist.
    fn edit(&mut self, served: &Served, key: &str, change: impl Fn(&mut Body) -> bool) {
        while let Some(object) = served.table.get(key) {
            let mut body = object.decode();
            if !change(&mut body) {
                return;
            }
            body.insert("apiVersion".to_owned(), served.kind.api_version().into());
            match writer(self.api, served, &object).update_verbatim_alone(body) {
                Ok(outcome) => return self.written.push_back((served.clone(), outcome)),
                // A concurrent write has changed the object, so this loop retries.
                Err(refusal) if refusal.is_conflict() => {}
                Err(_) => return,
            }
        }
    }

    /// Removes a finalizer of an object that is being deleted. The object is removed with its last
    /// finalizer, unless the object is a namespace or a pod in its grace period.
    fn release(&mut self, served: &Served, key: &str, finalizer: &str) {
        self.edit(served, key, |body| remove_finalizer(body, finalizer));
    }
}

fn writer<'a>(api: &'a Api, served: &'a Served, object: &'a Object) -> Writer<'a> {
    Writer { api, served, namespace: object.namespace(), options: WriteOptions::default() }
}

/// Removes a finalizer, and returns whether the object had it.
fn remove_finalizer(body: &mut Body, finalizer: &str) -> bool {
    let held = writes::finalizers(body);
    let left: Vec<String> = held.iter().filter(|it| **it != finalizer).map(ToString::to_string).collect();
    let changed = left.len() != held.len();
    writes::set_finalizers(writes::metadata_mut(body), left);
    changed
}
