//! What schedulers and drains ask of pods: bindings and evictions.

use http::StatusCode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::core::response::{StatusCause, StatusDetails};
use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::scale::selector_text;
use super::update::{Change, Part, check_uid, replace};
use super::{Outcome, Writer, object_mut};
use crate::resource::ResourceKind;
use crate::selector::LabelSelector;
use crate::status::{self, Refusal};

/// Puts a pod on a node, once.
pub(super) fn bind(writer: &Writer<'_>, name: &str, binding: &Value) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let node = binding["target"]["name"].as_str().filter(|node| !node.is_empty());
    let node = node.ok_or_else(|| {
        let missing = status::FieldError::required("target.name", "");
        status::invalid("", "Binding", name, vec![missing])
    })?;
    let now = writer.server.now();
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
        // The status goes along with the rest here, so it is written as the server itself does: in one step.
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

/// Refuses to evict a pod whose disruption budget allows none.
pub(super) fn check_budgets(writer: &Writer<'_>, name: &str) -> Result<(), Refusal> {
    let pod = writer.served.table.get(&writer.key(name));
    let pod = pod.ok_or_else(|| status::not_found(&writer.served.kind, name))?;
    let (Some(budgets), Some(namespace)) =
        (writer.server.catalogue.at("/apis/policy/v1/poddisruptionbudgets"), writer.namespace)
    else {
        return Ok(());
    };
    for budget in budgets.table.in_namespace(namespace) {
        let body = Value::Object(budget.decode());
        let selector = LabelSelector::parse(&selector_text(&body["spec"]["selector"]));
        let covers = selector.is_ok_and(|selector| selector.matches(&pod));
        if covers && body["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) <= 0 {
            return Err(budget_exhausted(budget.name()));
        }
    }
    Ok(())
}

/// Gives the options of the delete that an eviction is.
pub(super) fn delete_options(eviction: &Value) -> Result<DeleteOptions, Refusal> {
    match &eviction["deleteOptions"] {
        Value::Null => Ok(DeleteOptions::default()),
        options => DeleteOptions::parse(options.to_string().as_bytes(), ""),
    }
}

fn budget_exhausted(budget: &str) -> Refusal {
    let mut refusal = status::failure(
        StatusCode::TOO_MANY_REQUESTS,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
    );
    refusal.metadata = Some(ListMeta::default());
    refusal.details = Some(StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: vec![StatusCause {
            reason: "DisruptionBudget".to_owned(),
            message: format!(
                "The disruption budget {budget} does not allow evicting pods currently because it allows 0 available disruptions"
            ),
            field: String::new(),
        }],
        retry_after_seconds: 0,
    });
    refusal
}
