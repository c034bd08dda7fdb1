//! Serves the resources of custom resource definitions, until the definitions are removed. A
//! [`Table`] stores the objects of one resource.

use std::sync::Arc;

use serde_json::Value;

use super::Run;
use crate::api::Api;
use crate::api::catalogue::Served;
use crate::api::custom::{self, Definition};
use crate::api::writes::{self, Body, Outcome, Propagation};
use crate::storage::{Backup, Object, Table};

/// After a write to a definition, serves its resource, deletes the objects of its resource, or
/// stops serving its resource.
pub(super) fn follow(run: &mut Run<'_>, definitions: &Served, outcome: &Outcome) {
    let (api, written) = (run.api, outcome.object());
    // Without this lock, another thread could read and serve a newer definition after this thread
    // reads the definition. This thread would then replace the newer definition by the older one.
    let serving = api.catalogue.serving.lock();
    let stored = definitions.table.get(&written.key);
    if stored.as_ref().is_some_and(|stored| stored.uid != written.uid) {
        // Another thread has replaced the definition by one with the same name meanwhile.
        return;
    }
    // Another thread can have changed the definition after this write, so the stored version is
    // used.
    match (outcome, stored) {
        (Outcome::Removed { object, .. }, None) => stop_serving(api, &object.key),
        (Outcome::Stored { .. }, Some(stored)) if stored.terminating => {
            drop(serving);
            delete_objects(run, definitions, &stored);
        }
        (Outcome::Created(_) | Outcome::Stored { .. }, Some(stored)) => {
            let Ok(definition) = Definition::read(&Value::Object(stored.decode())) else {
                // Invalid definitions have no effect: a valid definition that was served before is
                // still served. A real server would reject them, but a test can store them.
                return;
            };
            serve(api, &definition);
            drop(serving);
            let now = api.now();
            run.edit(definitions, &stored.key, |body| custom::accept(body, &definition, &now));
        }
        // Another thread has removed or restored the definition meanwhile.
        _ => {}
    }
}

/// Deletes the objects of a custom resource whose definition is being deleted. Does nothing if the
/// cleanup finalizer of the definition has been removed, and only other finalizers keep the
/// definition.
fn delete_objects(run: &mut Run<'_>, definitions: &Served, object: &Object) {
    if !has_cleanup_finalizer(&object.decode()) {
        return;
    }
    let api = run.api;
    let now = api.now();
    run.edit(definitions, &object.key, |body| {
        let before = body.clone();
        let message = "CustomResource deletion is in progress";
        custom::set_terminating(body, "True", "InstanceDeletionInProgress", message, &now);
        has_cleanup_finalizer(body) && *body != before
    });
    if let Some(table) = find_table(api, &object.key) {
        // The writes use the stored version, because possibly no version is served.
        let resource = Served::new(table.kind.clone(), table, api.stop.child_token());
        for instance in resource.table.objects() {
            run.delete(&resource, &instance, Propagation::Background);
        }
    }
    finish(run, definitions, object);
}

fn has_cleanup_finalizer(body: &Body) -> bool {
    writes::finalizers(body).contains(&writes::CUSTOM_RESOURCES)
}

/// Serves the resources of the valid definitions in `backup`. Stops serving the resources of stored
/// definitions that are missing in `backup`.
///
/// The caller must have locked `Catalogue::serving`, and must replace the stored definitions
/// afterwards.
pub(crate) fn restore(api: &Api, backup: &Backup) {
    let Some(definitions) = api.catalogue.at(custom::DEFINITIONS) else {
        return;
    };
    let restored = backup.objects_of(&definitions.table.kind);
    let read = |object: &Arc<Object>| Definition::read(&Value::Object(object.decode())).ok();
    for definition in definitions.table.objects() {
        if !restored.contains_key(&definition.key) {
            stop_serving(api, &definition.key);
        }
    }
    for definition in restored.values().filter_map(read) {
        serve(api, &definition);
    }
}

/// Continues the deletion of a definition if no object of its resource is left. `served` is the
/// resource of a removed object.
pub(super) fn after_removal(run: &mut Run<'_>, served: &Served) {
    if !served.kind.is_built_in()
        && let Some(definitions) = run.api.catalogue.at(custom::DEFINITIONS)
        && let Some(definition) = definitions.table.get(&served.kind.qualified_plural())
        && definition.terminating
    {
        finish(run, &definitions, &definition);
    }
}

/// Removes the cleanup finalizer of a definition if no object of its resource is left. The resource
/// is served until the definition is removed.
fn finish(run: &mut Run<'_>, definitions: &Served, object: &Object) {
    let left = find_table(run.api, &object.key).map_or(0, |table| table.len());
    if left > 0 {
        return;
    }
    let now = run.api.now();
    run.edit(definitions, &object.key, |body| {
        let message = "removed all instances";
        custom::set_terminating(body, "False", "InstanceDeletionCompleted", message, &now);
        super::remove_finalizer(body, writes::CUSTOM_RESOURCES)
    });
}

/// Serves the versions that have `served: true`. If the spec has changed, all watches of the
/// resource end.
fn serve(api: &Api, definition: &Definition) {
    let name = definition.stored.qualified_plural();
    let table = find_table(api, &name).unwrap_or_else(|| api.new_table(definition.stored.clone()));
    let is_changed = api.catalogue.define(name.clone(), table.clone(), &definition.spec);
    if is_changed {
        // A real server replaces the watch cache here, so clients must list again.
        table.refill_watch_cache();
    }
    for kind in &definition.served {
        let before = api.catalogue.at(&kind.collection_path());
        if is_changed || before.is_none_or(|before| *before.kind != *kind) {
            api.catalogue.replace(Served::new(kind.clone(), table.clone(), api.stop.child_token()));
        }
    }
    let is_served = |path: &String| definition.served.iter().any(|kind| kind.collection_path() == *path);
    for path in paths(api, &name).iter().filter(|path| !is_served(path)) {
        api.catalogue.remove(path);
    }
}

/// Returns the table that stores the objects of a resource. Returns `None` if there is no such
/// table. `name` is the name of the resource's definition.
fn find_table(api: &Api, name: &str) -> Option<Arc<Table>> {
    api.catalogue.defined(name).or_else(|| {
        // A test can register a resource with `Simulator::register` before its definition exists.
        let resources = api.catalogue.resources();
        let served = resources.iter().find(|served| is_defined_by(served, name));
        served.map(|served| Arc::clone(&served.table))
    })
}

/// Stops serving the resource of the definition `name`, and drops the resource's table.
fn stop_serving(api: &Api, name: &str) {
    for path in paths(api, name) {
        api.catalogue.remove(&path);
    }
    api.catalogue.undefine(name);
}

/// Returns the paths at which versions of the definition `name` are currently served.
fn paths(api: &Api, name: &str) -> Vec<String> {
    let all = api.catalogue.all();
    let versions = all.iter().filter(|served| is_defined_by(served, name));
    versions.map(|served| served.kind.collection_path()).collect()
}

/// Returns whether the definition `name` defines the resource `served`. If `served` is a built-in
/// resource, returns `false`, because a test can store an invalid definition with the same name,
/// such as `pods`.
fn is_defined_by(served: &Served, name: &str) -> bool {
    !served.kind.is_built_in() && served.kind.qualified_plural() == name
}
