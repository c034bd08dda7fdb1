//! Serves the resources of custom resource definitions. While a definition is being deleted, its
//! resource is served until no object is left. A [`Table`] stores the objects of one resource.

use std::sync::Arc;

use serde_json::Value;

use crate::api::Api;
use crate::api::catalogue::Served;
use crate::api::custom::{self, Definition};
use crate::api::writes::{self, Outcome, Propagation};
use crate::storage::{Backup, Object, Table};

/// After a write to a definition, serves its resource, deletes the objects of its resource, or
/// stops serving its resource.
pub(super) fn follow(api: &Api, definitions: &Served, outcome: &Outcome) {
    let object = outcome.object();
    let Ok(definition) = Definition::read(&Value::Object(object.decode())) else {
        // Invalid definitions are ignored. A real server would reject them, but a test can store
        // them.
        return;
    };
    match outcome {
        Outcome::Removed(_) => stop_serving(api, &definition),
        Outcome::Stored(_) if object.terminating => {
            if let Some(table) = find_table(api, &definition) {
                // The writes use the stored version, because possibly no version is served.
                let resource = Served::new(table.kind.clone(), table, api.stop.child_token());
                for instance in resource.table.snapshot().0 {
                    super::delete(api, &resource, &instance, Propagation::Background);
                }
            }
            finish(api, definitions, object, &definition);
        }
        Outcome::Created(_) | Outcome::Stored(_) => {
            serve(api, &definition);
            let now = api.now();
            super::edit(api, definitions, &object.key, |body| custom::accept(body, &definition, &now));
        }
    }
}

/// Serves the resources of the definitions in a backup, and of no other definitions. Must be called
/// before the stored definitions are replaced by those of the backup.
pub(crate) fn restore(api: &Api, backup: &Backup) {
    let Some(definitions) = api.catalogue.at(custom::DEFINITIONS) else {
        return;
    };
    let restored = backup.objects_of(&definitions.table.kind);
    let read = |object: &Arc<Object>| Definition::read(&Value::Object(object.decode())).ok();
    let now = definitions.table.snapshot().0;
    for definition in now.iter().filter(|object| !restored.contains_key(&object.key)).filter_map(read) {
        stop_serving(api, &definition);
    }
    for definition in restored.values().filter_map(read) {
        serve(api, &definition);
    }
}

/// Continues the deletion of a definition after an object of its resource was removed.
pub(super) fn after_removal(api: &Api, served: &Served) {
    if served.kind.is_built_in() {
        return;
    }
    let Some(definitions) = api.catalogue.at(custom::DEFINITIONS) else {
        return;
    };
    let Some(object) = definitions.table.get(&served.kind.qualified_plural()).filter(|it| it.terminating)
    else {
        return;
    };
    if let Ok(definition) = Definition::read(&Value::Object(object.decode())) {
        finish(api, &definitions, &object, &definition);
    }
}

/// Ends the deletion of a definition if no object of its resource is left.
fn finish(api: &Api, definitions: &Served, object: &Object, definition: &Definition) {
    let left = find_table(api, definition).map_or(0, |table| table.len());
    if left == 0 {
        stop_serving(api, definition);
        super::release(api, definitions, &object.key, writes::CUSTOM_RESOURCES);
    }
}

/// Serves the versions that have `served: true`. Watches of unchanged versions continue; watches of
/// changed versions end, so that clients reconnect.
fn serve(api: &Api, definition: &Definition) {
    let table = find_table(api, definition).unwrap_or_else(|| api.new_table(definition.stored.clone()));
    let table = api.catalogue.define(definition.stored.qualified_plural(), table);
    for kind in &definition.served {
        let path = kind.collection_path();
        match api.catalogue.at(&path) {
            Some(before) if *before.kind == *kind => {}
            before => {
                let served = Served::new(kind.clone(), table.clone(), api.stop.child_token());
                api.catalogue.replace(served);
                if let Some(before) = before {
                    before.gone.cancel();
                }
            }
        }
    }
    let is_served = |path: &String| definition.served.iter().any(|kind| kind.collection_path() == *path);
    for path in paths(api, definition).iter().filter(|path| !is_served(path)) {
        api.catalogue.remove(path);
    }
}

/// Returns the table that stores the objects of a definition's resource. Returns `None` if there is
/// no such table.
fn find_table(api: &Api, definition: &Definition) -> Option<Arc<Table>> {
    api.catalogue.defined(&definition.stored.qualified_plural()).or_else(|| {
        // A test can register a resource with `Simulator::register` before its definition exists.
        let resources = api.catalogue.resources();
        let served = resources.iter().find(|served| defines(definition, served));
        served.map(|served| Arc::clone(&served.table))
    })
}

/// Stops serving a definition's resource, and drops the resource's table.
fn stop_serving(api: &Api, definition: &Definition) {
    for path in paths(api, definition) {
        api.catalogue.remove(&path);
    }
    api.catalogue.undefine(&definition.stored.qualified_plural());
}

/// Returns the paths at which versions of a definition are currently served.
fn paths(api: &Api, definition: &Definition) -> Vec<String> {
    let all = api.catalogue.all();
    let versions = all.iter().filter(|served| defines(definition, served));
    versions.map(|served| served.kind.collection_path()).collect()
}

fn defines(definition: &Definition, served: &Served) -> bool {
    served.kind.group == definition.stored.group && served.kind.plural == definition.stored.plural
}
