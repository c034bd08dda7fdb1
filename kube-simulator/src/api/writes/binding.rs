//! Bindings, which schedulers create to assign pods to nodes.

use serde_json::{Value, json};

use super::update::{Change, Part, check_uid, replace};
use super::{Outcome, Writer, object_mut};
use crate::api::status::{self, Refusal};
use crate::kinds::ResourceKind;

/// Assigns a pod to a node. A pod can be bound only once.
pub(super) fn bind(writer: &Writer<'_>, name: &str, binding: &Value) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let node = binding["target"]["name"].as_str().filter(|node| !node.is_empty());
    let node = node.ok_or_else(|| {
        let missing = status::FieldError::required("target.name", "");
        status::invalid("", "Binding", name, vec![missing])
    })?;
    let now = writer.api.now();
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        let before = old.decode();
        check_uid(kind, &old, binding["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()))?;
        if old.terminating {
            return Err(status::conflict(
                kind,
                name,
                &format!("pod {name} is being deleted, cannot be assigned to a host"),
            ));
        }
        let assigned = before.get("spec").and_then(|spec| spec.get("nodeName")?.as_str());
        if let Some(assigned) = assigned.filter(|node| !node.is_empty()) {
            let why = format!("pod {name} is already assigned to node \"{assigned}\"");
            let binding = ResourceKind { plural: "pods/binding".to_owned(), ..kind.clone() };
            return Err(status::conflict(&binding, name, &why));
        }
        let mut after = before.clone();
        object_mut(&mut after, "spec").insert("nodeName".to_owned(), node.into());
        // The real server also writes the spec and the status in one step here.
        let scheduled = json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": now });
        let status = object_mut(&mut after, "status");
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Value::Array(conditions) = conditions {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(scheduled);
        }
        replace(transaction, writer, &old, &before, Change::new(after, Part::Whole))
    })
}
