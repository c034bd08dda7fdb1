//! The status of a custom resource definition that is accepted or is being deleted.

use serde_json::{Value, json};

use super::definition::Definition;
use crate::api::writes::{Body, object_mut, set_condition};

/// Sets the status of an accepted definition, and returns whether it has changed.
pub(crate) fn accept(body: &mut Body, definition: &Definition, now: &str) -> bool {
    let before = body.get("status").cloned();
    let names = body.get("spec").and_then(|spec| spec.get("names")).cloned().unwrap_or_default();
    let status = object_mut(body, "status");
    status.insert("acceptedNames".to_owned(), names);
    let versions = status.entry("storedVersions").or_insert_with(|| json!([]));
    if let Value::Array(versions) = versions {
        let stored = Value::from(definition.stored.version.as_str());
        if !versions.contains(&stored) {
            versions.push(stored);
        }
    }
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Value::Array(conditions) = conditions {
        set(conditions, "NamesAccepted", "NoConflicts", "no conflicts found", now);
        set(conditions, "Established", "InitialNamesAccepted", "the initial names have been accepted", now);
    }
    before.as_ref() != body.get("status")
}

/// Sets the condition `Terminating` of a definition that is being deleted. A condition with the
/// same `status` keeps its transition time.
pub(crate) fn set_terminating(body: &mut Body, status: &str, reason: &str, message: &str, now: &str) {
    let condition = json!({
        "type": "Terminating",
        "status": status,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    });
    set_condition(object_mut(body, "status"), condition);
}

fn set(conditions: &mut Vec<Value>, kind: &str, reason: &str, message: &str, now: &str) {
    if conditions.iter().any(|condition| condition["type"] == kind) {
        return;
    }
    conditions.push(json!({
        "type": kind,
        "status": "True",
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }));
}
