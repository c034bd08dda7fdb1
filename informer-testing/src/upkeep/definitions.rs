//! Custom resource definitions: while they exist, what they define is served.

use std::sync::Arc;

use serde_json::Value;

use crate::catalogue::Served;
use crate::custom::{self, Definition};
use crate::object::Object;
use crate::server::Server;
use crate::writes::{self, Outcome, Propagation};

/// Serves what a definition says, or stops serving it.
pub(super) fn follow(server: &Server, definitions: &Served, outcome: &Outcome) {
    let object = outcome.object();
    let Ok(definition) = Definition::read(&Value::Object(object.decode())) else {
        // A test may store what no server would accept.
        return;
    };
    match outcome {
        Outcome::Removed(_) => withdraw(server, &definition),
        Outcome::Stored(_) if object.terminating => {
            if let Some(resource) = resource(server, &definition) {
                for instance in resource.table.snapshot().0 {
                    super::delete(server, &resource, &instance, Propagation::Background);
                }
            }
            finish(server, definitions, object, &definition);
        }
        Outcome::Created(_) | Outcome::Stored(_) => {
            serve(server, &definition);
            let now = server.now();
            super::edit(server, definitions, &object.key, |body| custom::accept(body, &definition, &now));
        }
    }
}

/// Goes on with a definition that is being deleted when one of its objects has gone.
pub(super) fn after_removal(server: &Server, served: &Served) {
    if served.kind.is_built_in() {
        return;
    }
    let Some(definitions) = server.catalogue.at(custom::DEFINITIONS) else {
        return;
    };
    let Some(object) = definitions.table.get(&served.kind.qualified_plural()).filter(|it| it.terminating)
    else {
        return;
    };
    if let Ok(definition) = Definition::read(&Value::Object(object.decode())) {
        finish(server, &definitions, &object, &definition);
    }
}

/// Lets a definition go that is being deleted, once nothing is left of what it defines.
fn finish(server: &Server, definitions: &Served, object: &Object, definition: &Definition) {
    let left = resource(server, definition).map_or(0, |resource| resource.table.len());
    if left == 0 {
        withdraw(server, definition);
        super::release(server, definitions, &object.key, writes::CUSTOM_RESOURCES);
    }
}

fn resource(server: &Server, definition: &Definition) -> Option<Arc<Served>> {
    definition.served.iter().find_map(|kind| server.catalogue.at(&kind.collection_path()))
}

/// Serves all versions of a definition on the same objects. Watches of a version whose description has not changed
/// go on; others end, so that their clients ask again.
fn serve(server: &Server, definition: &Definition) {
    let table = match known(server, definition) {
        Some(known) => known.table.clone(),
        None => server.new_table(definition.stored.clone()),
    };
    for kind in &definition.served {
        let path = kind.collection_path();
        match server.catalogue.at(&path) {
            Some(before) if *before.kind == *kind => {}
            before => {
                let served = Served::new(kind.clone(), table.clone(), server.stop.child_token());
                server.catalogue.put(served);
                if let Some(before) = before {
                    before.gone.cancel();
                }
            }
        }
    }
    for path in &definition.unserved {
        server.catalogue.remove(path);
    }
}

/// Finds the resource in any version that is served already.
fn known(server: &Server, definition: &Definition) -> Option<Arc<Served>> {
    let is_it = |served: &Arc<Served>| {
        served.kind.group == definition.stored.group && served.kind.plural == definition.stored.plural
    };
    server.catalogue.resources().into_iter().find(is_it)
}

fn withdraw(server: &Server, definition: &Definition) {
    let paths = definition.served.iter().map(crate::resource::ResourceKind::collection_path);
    for path in paths.chain(definition.unserved.iter().cloned()) {
        server.catalogue.remove(&path);
    }
}
