//! Writes: the rules that turn a client's body into a stored version.
//!
//! Each write changes one object, under the lock of the object's table. (Only an eviction changes
//! several objects, one after another.) Then the simulated [`controllers`](crate::api::controllers)
//! apply the consequences, such as the deletion of dependants.

mod admission;
mod apply;
mod binding;
mod create;
mod delete;
mod eviction;
mod identity;
mod job;
mod json_patch;
mod limits;
mod metadata;
mod namespace;
mod patch;
mod scale;
mod stamp;
mod strategic;
mod update;

pub(crate) use create::WriteSource;
pub(crate) use delete::{CUSTOM_RESOURCES, DeleteOptions, FOREGROUND, ORPHAN, Propagation};
pub(crate) use json_patch::rejected;
pub(crate) use namespace::{remove_finalizer as remove_namespace_finalizer, spec_finalizers};
pub(crate) use patch::{Patch, invalid_patch};
pub(crate) use scale::{Rescale, selector_text};
pub(crate) use stamp::{Stamp, in_seconds, uuid};
pub(crate) use update::Part;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::api::Api;
use crate::api::catalogue::Served;
use crate::api::controllers;
use crate::api::ownership::{Manager, Operation};
use crate::api::status::Refusal;
use crate::storage::Object;

/// A JSON object before it is stored.
pub(crate) type Body = Map<String, Value>;

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The new object as it is stored (or would be, in a dry run).
    Created(Arc<Object>),
    /// The object as it is stored now (or would be, in a dry run), and as it was stored before.
    Stored { object: Arc<Object>, before: Arc<Object> },
    /// The removed object as the response shows it, and with the content that was stored last (or
    /// would be, in a dry run). The two can differ if a client's update removed the last finalizer.
    Removed { object: Arc<Object>, before: Arc<Object> },
}

/// The options of a write. The default options are for writes without HTTP.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    /// The owner of the written fields. With `None`, ownership is not recorded.
    pub(crate) manager: Option<String>,
    /// Whether server-side apply takes over conflicting fields from other managers.
    pub(crate) force: bool,
}

/// A resource, a namespace and options for writes. The methods create, change and delete the
/// resource's objects.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) api: &'a Api,
    pub(crate) served: &'a Served,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) options: WriteOptions,
}

impl Writer<'_> {
    pub(crate) fn create(&self, body: Body, source: WriteSource) -> Result<Outcome, Refusal> {
        self.run_controllers(create::create(self, body, source))
    }

    /// Replaces an object (PUT).
    pub(crate) fn update(&self, name: &str, body: Body, part: Part) -> Result<Outcome, Refusal> {
        self.run_controllers(update::update(self, name, body, part))
    }

    /// Replaces an object with `body` as given, without the restrictions for clients.
    pub(crate) fn update_verbatim(&self, body: Body) -> Result<Outcome, Refusal> {
        self.run_controllers(self.update_verbatim_alone(body))
    }

    /// Replaces an object with `body` as given, without the restrictions for clients. Does not run
    /// the simulated controllers after the write.
    pub(crate) fn update_verbatim_alone(&self, body: Body) -> Result<Outcome, Refusal> {
        update::update_verbatim(self, body)
    }

    /// Changes an object by a patch. `check` can refuse the patched object. It is not called for
    /// server-side apply, which has its own check.
    pub(crate) fn patch(
        &self,
        name: &str,
        patch: &Patch,
        part: Part,
        check: impl FnOnce(&Body) -> Result<(), Refusal>,
    ) -> Result<Outcome, Refusal> {
        self.run_controllers(patch::patch(self, name, patch, part, check))
    }

    /// Deletes an object. If something blocks the removal, such as a finalizer, only marks the
    /// object with a deletion timestamp.
    pub(crate) fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Outcome, Refusal> {
        self.run_controllers(self.delete_alone(name, options))
    }

    /// Deletes an object, or only marks it with a deletion timestamp if something blocks the
    /// removal. Does not run the simulated controllers after the write.
    pub(crate) fn delete_alone(&self, name: &str, options: &DeleteOptions) -> Result<Outcome, Refusal> {
        delete::delete(self, name, options)
    }

    /// Returns the `Scale` of an object.
    pub(crate) fn scale(&self, name: &str) -> Result<Value, Refusal> {
        scale::get(self, name)
    }

    /// Sets the replicas through `/scale`, and returns the new `Scale`.
    pub(crate) fn rescale(&self, name: &str, change: Rescale<'_>) -> Result<Value, Refusal> {
        let outcome = self.run_controllers(scale::set(self, name, change))?;
        scale::get_from(&self.served.kind, &outcome.into_object())
    }

    pub(crate) fn bind(&self, name: &str, binding: &Value) -> Result<Outcome, Refusal> {
        self.run_controllers(binding::bind(self, name, binding))
    }

    /// Deletes a pod unless its disruption budget forbids the eviction.
    pub(crate) fn evict(&self, name: &str, eviction: &Value) -> Result<Outcome, Refusal> {
        eviction::evict(self, name, eviction)
    }

    fn manager<'m>(&'m self, part: Part, now: &'m str) -> Manager<'m> {
        Manager {
            name: self.options.manager.as_deref().unwrap_or_default(),
            operation: Operation::Update,
            subresource: match part {
                Part::Status => "status",
                Part::Finalizers => "finalize",
                Part::Scale => "scale",
                Part::Main | Part::Whole => "",
            },
            now,
        }
    }

    pub(crate) fn key(&self, name: &str) -> String {
        self.served.kind.key(self.namespace, name)
    }

    /// Runs the simulated controllers after a successful write that is not a dry run.
    fn run_controllers(&self, outcome: Result<Outcome, Refusal>) -> Result<Outcome, Refusal> {
        let outcome = outcome?;
        if !self.options.dry_run {
            controllers::after_write(self.api, self.served, &outcome);
        }
        Ok(outcome)
    }
}

impl Outcome {
    /// Returns the outcome of a write that does not change the stored object.
    fn unchanged(object: Arc<Object>) -> Self {
        Self::Stored { before: object.clone(), object }
    }

    /// Returns the outcome of a removal whose response shows the object as it was stored last.
    pub(crate) fn removed(object: Arc<Object>) -> Self {
        Self::Removed { before: object.clone(), object }
    }

    pub(crate) fn object(&self) -> &Arc<Object> {
        match self {
            Self::Created(object) | Self::Stored { object, .. } | Self::Removed { object, .. } => object,
        }
    }

    pub(crate) fn into_object(self) -> Arc<Object> {
        match self {
            Self::Created(object) | Self::Stored { object, .. } | Self::Removed { object, .. } => object,
        }
    }
}

/// Borrows `metadata`. If it is missing or not an object, it is first replaced by an empty object.
pub(crate) fn metadata_mut(body: &mut Body) -> &mut Body {
    object_mut(body, "metadata")
}

/// Borrows a field. A missing value, or a value that is not an object, is first replaced by an
/// empty object.
pub(crate) fn object_mut<'b>(body: &'b mut Body, field: &str) -> &'b mut Body {
    let found = body.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if !found.is_object() {
        *found = Value::Object(Map::new());
    }
    match found {
        Value::Object(object) => object,
        _ => unreachable!("the field was replaced by an object above"),
    }
}

/// Removes the labels, annotations, finalizers and owner references from `metadata` if they are an
/// empty map, an empty list or null, as the server does. Keeps a label whose value is empty.
fn drop_empty(metadata: &mut Body) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let is_empty = match metadata.get(field) {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if is_empty {
            metadata.remove(field);
        }
    }
}

/// Returns a string field of `metadata`. An empty string counts as absent, as in Go.
pub(crate) fn metadata_str<'a>(body: &'a Body, field: &str) -> Option<&'a str> {
    body.get("metadata")?.get(field)?.as_str().filter(|text| !text.is_empty())
}

/// Returns whether a field is missing, null or an empty string, which are the same in Go.
fn is_absent(field: Option<&Value>) -> bool {
    field.is_none_or(|value| value.is_null() || value == "")
}

pub(crate) fn finalizers(body: &Body) -> Vec<&str> {
    let listed = body.get("metadata").and_then(|metadata| metadata.get("finalizers"));
    listed.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Sets the finalizers in `parent`: the metadata of an object, or the spec of a namespace. An empty
/// list removes the field.
pub(crate) fn set_finalizers(parent: &mut Body, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        parent.remove("finalizers");
    } else {
        parent.insert("finalizers".to_owned(), finalizers.into());
    }
}

/// Adds or replaces a condition. If the status of the condition does not change, its transition
/// time is kept. Does nothing if the field `conditions` exists and is not a list.
pub(crate) fn set_condition(status: &mut Body, mut condition: Value) {
    let conditions = status.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(conditions) = conditions else {
        return;
    };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}
