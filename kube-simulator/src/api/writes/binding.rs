//! Bindings, which schedulers create to assign pods to nodes.
//!
//! The rules and messages are those of `BindingREST` in `pkg/registry/core/pod/storage/storage.go`.

use serde_json::{Value, json};

use super::update::{Change, Part, check_uid, replace};
use super::{Body, Outcome, Writer, metadata_mut, object_mut, set_condition};
use crate::api::status::{self, Refusal};
use crate::kinds::ResourceKind;
use crate::storage::Object;

/// Assigns a pod to a node. A pod can be bound only once.
pub(super) fn bind(writer: &Writer<'_>, name: &str, binding: &Value) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    if binding["metadata"]["name"] != name {
        return Err(status::bad_request("name in URL does not match name in Binding object"));
    }
    let node = node(&binding["target"])?;
    let now = writer.api.now();
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        let before = old.decode();
        check_preconditions(kind, &old, &binding["metadata"])?;
        check_unbound(kind, &old, &before)?;
        let mut after = before.clone();
        object_mut(&mut after, "spec").insert("nodeName".to_owned(), node.into());
        for field in ["labels", "annotations"] {
            let given = binding["metadata"][field].as_object().filter(|given| !given.is_empty());
            if let Some(given) = given {
                object_mut(metadata_mut(&mut after), field).extend(given.clone());
            }
        }
        // The real server also writes the spec and the status in one step here.
        let status = object_mut(&mut after, "status");
        status.remove("nominatedNodeName");
        let scheduled = json!({
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": null,
            "lastTransitionTime": now,
        });
        set_condition(status, scheduled);
        // A real server records no owner of the fields that a binding sets.
        let change = Change { after, part: Part::Whole, owners_settled: true };
        replace(transaction, writer, &old, &before, change)
    })
}

/// Returns the name of the node that a binding targets. For an invalid target, returns a 500 error
/// whose field `reason` is empty, as on a real server.
fn node(target: &Value) -> Result<&str, Refusal> {
    let kind = target["kind"].as_str().unwrap_or_default();
    let node = target["name"].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(kind, "" | "Node") {
        errors.push(format!(
            "target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""
        ));
    }
    if node.is_empty() {
        errors.push("target.name: Required value".to_owned());
    }
    match errors.as_slice() {
        [] => Ok(node),
        [one] => Err(status::internal(one.as_str())),
        many => Err(status::internal(format!("[{}]", many.join(", ")))),
    }
}

fn check_preconditions(kind: &ResourceKind, old: &Object, metadata: &Value) -> Result<(), Refusal> {
    let text = |field: &str| metadata[field].as_str().filter(|text| !text.is_empty());
    check_uid(kind, old, text("uid"))?;
    let current = old.resource_version.to_string();
    match text("resourceVersion") {
        Some(version) if version != current => {
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object \
                 meta: {current}"
            );
            Err(status::conflict(kind, old.name(), &why))
        }
        _ => Ok(()),
    }
}

/// Returns an error if a pod is being deleted, is bound, or has scheduling gates.
fn check_unbound(kind: &ResourceKind, old: &Object, pod: &Body) -> Result<(), Refusal> {
    let name = old.name();
    let spec = pod.get("spec");
    let node = spec.and_then(|spec| spec.get("nodeName")?.as_str()).unwrap_or_default();
    let gates = spec.and_then(|spec| spec.get("schedulingGates")?.as_array());
    let why = if old.terminating {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        format!("pod {name} is already assigned to node {node:?}")
    } else if gates.is_some_and(|gates| !gates.is_empty()) {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    let binding = ResourceKind { plural: "pods/binding".to_owned(), ..kind.clone() };
    Err(status::conflict(&binding, name, &why))
}
