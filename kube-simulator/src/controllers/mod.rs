//! What follows from a write: what controllers do to the objects of a real cluster, and what the server does with custom
//! resource definitions.
//!
//! All of it happens before the client has its answer, so that a test need not wait for it. Each step looks at what is
//! stored and not at what has happened, so it does not matter how often, or after which write, it is taken. No lock is
//! held between steps.

mod definitions;
mod garbage;
mod namespaces;

pub(crate) use definitions::restore as restore_definitions;
pub(crate) use garbage::Collecting;

use crate::catalogue::Served;
use crate::object::Object;
use crate::server::Server;
use crate::writes::{Body, DeleteOptions, Outcome, Propagation, WriteOptions, Writer};

/// Does what follows from a write.
pub(crate) fn after_write(server: &Server, served: &Served, outcome: &Outcome) {
    if served.kind.is_definition() {
        definitions::follow(server, served, outcome);
    }
    let controllers = server.settings.habits.controllers;
    match outcome {
        Outcome::Removed(object) => {
            definitions::after_removal(server, served);
            if controllers {
                garbage::after_removal(server, object);
                namespaces::after_removal(server, object);
            }
        }
        Outcome::Stored(object) if object.terminating && controllers => {
            garbage::while_terminating(server, served, object);
            namespaces::while_terminating(server, served, object);
        }
        Outcome::Created(_) | Outcome::Stored(_) => {}
    }
}

fn writer<'a>(server: &'a Server, served: &'a Served, object: &'a Object) -> Writer<'a> {
    Writer { server, served, namespace: object.namespace(), options: WriteOptions::default() }
}

/// Deletes an object that is not being deleted yet. Whether others were quicker makes no difference.
fn delete(server: &Server, served: &Served, object: &Object, policy: Propagation) {
    if !object.terminating {
        let options = DeleteOptions::propagating(policy);
        let _ = writer(server, served, object).delete(object.name(), &options);
    }
}

/// Changes an object, as long as it is there and `change` has something to do.
fn edit(server: &Server, served: &Served, key: &str, change: impl Fn(&mut Body) -> bool) {
    while let Some(object) = served.table.get(key) {
        let mut body = object.decode();
        if !change(&mut body) {
            return;
        }
        body.insert("apiVersion".to_owned(), served.kind.api_version().into());
        match writer(server, served, &object).update_verbatim(body) {
            // Someone else has written it in between.
            Err(refusal) if refusal.is_conflict() => {}
            _ => return,
        }
    }
}

/// Takes a finalizer off an object; if it was the last one, the object goes.
fn release(server: &Server, served: &Served, key: &str, finalizer: &str) {
    edit(server, served, key, |body| {
        let held = crate::writes::finalizers(body);
        let left: Vec<String> =
            held.iter().filter(|held| **held != finalizer).map(ToString::to_string).collect();
        let changed = left.len() != held.len();
        crate::writes::set_finalizers(body, left);
        changed
    });
}
