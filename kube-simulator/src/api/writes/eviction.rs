//! Evictions: deletions of pods within the limits of disruption budgets.
//!
//! The rules and messages are those of `pkg/registry/core/pod/storage/eviction.go`. The API server,
//! not a controller, subtracts an eviction from the budget, so that two concurrent evictions cannot
//! both use the last allowed disruption.

use http::StatusCode;
use kube::core::response::StatusDetails;
use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::scale::selector_text;
use super::update::{Change, Part, replace};
use super::{Body, Outcome, WriteOptions, Writer, object_mut, set_condition};
use crate::api::catalogue::Served;
use crate::api::selector::LabelSelector;
use crate::api::status::{self, Refusal};
use crate::storage::Object;

/// The field manager of writes to the status of a budget.
const API_SERVER: &str = "kube-apiserver";

/// An eviction is refused if it needs a budget with more pods than this in `status.disruptedPods`.
const MAX_NOTED: usize = 2_000;

/// Deletes a pod. If a disruption budget protects the pod, first subtracts one disruption from the
/// budget. Returns an error if the budget allows no disruption.
pub(super) fn evict(writer: &Writer<'_>, name: &str, eviction: &Value) -> Result<Outcome, Refusal> {
    if eviction["metadata"]["name"] != name {
        return Err(status::bad_request("name in URL does not match name in Eviction object".to_owned()));
    }
    let options = delete_options(eviction)?;
    let dry_run = writer.options.dry_run || options.is_dry_run();
    let writer = Writer { options: WriteOptions { dry_run, ..writer.options.clone() }, ..*writer };
    let pod = writer.served.table.get(&writer.key(name));
    let pod = pod.ok_or_else(|| status::not_found(&writer.served.kind, name))?;
    if !is_inactive(&pod) {
        spend(&writer, &pod)?;
    }
    if dry_run {
        return writer.delete(name, &options);
    }
    note_eviction(&writer, name, &options)?;
    writer.delete(name, &options.of_any_version())
}

fn delete_options(eviction: &Value) -> Result<DeleteOptions, Refusal> {
    match &eviction["deleteOptions"] {
        Value::Null => Ok(DeleteOptions::default()),
        options => DeleteOptions::parse(options.to_string().as_bytes(), ""),
    }
}

/// Returns whether the pod is pending, has finished, or is being deleted. Evictions of such pods
/// ignore disruption budgets.
fn is_inactive(pod: &Object) -> bool {
    let body = Value::Object(pod.decode());
    pod.terminating || matches!(body["status"]["phase"].as_str(), Some("Pending" | "Succeeded" | "Failed"))
}

/// Subtracts one disruption from the budget that selects the pod, if there is one and the pod
/// [needs](needs_no_budget) it. Several budgets are an error.
fn spend(writer: &Writer<'_>, pod: &Object) -> Result<(), Refusal> {
    let (Some(budgets), Some(namespace)) =
        (writer.api.catalogue.at("/apis/policy/v1/poddisruptionbudgets"), writer.namespace)
    else {
        return Ok(());
    };
    let mut covering = budgets.table.in_namespace(namespace);
    covering.retain(|budget| covers(&Value::Object(budget.decode()), pod));
    match &covering[..] {
        [] => Ok(()),
        [budget] => spend_of(writer, &budgets, budget, pod),
        _ => Err(status::internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        )),
    }
}

/// Returns whether a budget selects a pod. A missing selector selects no pods, and an empty
/// selector selects all.
fn covers(budget: &Value, pod: &Object) -> bool {
    let selector = &budget["spec"]["selector"];
    let parsed = LabelSelector::parse(&selector_text(selector));
    selector.is_object() && parsed.is_ok_and(|selector| selector.matches(pod))
}

fn spend_of(writer: &Writer<'_>, budgets: &Served, budget: &Object, pod: &Object) -> Result<(), Refusal> {
    let manager = Some(API_SERVER.to_owned());
    let options = WriteOptions { manager, dry_run: writer.options.dry_run, force: false };
    let writer = Writer { served: budgets, options, ..*writer };
    let now = writer.api.now();
    budgets.table.write(|transaction| {
        let Some(old) = transaction.current(&budget.key) else {
            return Ok(());
        };
        let before = old.decode();
        if needs_no_budget(&before, pod) {
            return Ok(());
        }
        check(&before, old.name())?;
        let mut after = before.clone();
        take_one(&mut after, pod.name(), &now);
        replace(transaction, &writer, &old, &before, Change::new(after, Part::Status)).map(|_| ())
    })
}

/// Returns whether the pod is unready and can be evicted without using the budget.
fn needs_no_budget(budget: &Body, pod: &Object) -> bool {
    let pod = Value::Object(pod.decode());
    let conditions = pod["status"]["conditions"].as_array();
    let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    if conditions.into_iter().flatten().any(is_ready) {
        return false;
    }
    let policy = budget.get("spec").and_then(|spec| spec.get("unhealthyPodEvictionPolicy")?.as_str());
    let desired = number(budget, "desiredHealthy");
    policy == Some("AlwaysAllow") || (desired > 0 && number(budget, "currentHealthy") >= desired)
}

fn number(budget: &Body, field: &str) -> i64 {
    budget.get("status").and_then(|status| status.get(field)?.as_i64()).unwrap_or(0)
}

/// Returns an error if a budget allows no disruption.
fn check(budget: &Body, name: &str) -> Result<(), Refusal> {
    let generation = budget.get("metadata").and_then(|metadata| metadata.get("generation")?.as_i64());
    if number(budget, "observedGeneration") < generation.unwrap_or(0) {
        return Err(exhausted(
            &format!("The disruption budget {name} is still being processed by the server."),
            10,
        ));
    }
    let forbidden = |why: &str| {
        let message = format!("poddisruptionbudget.policy \"{name}\" is forbidden: {why}");
        let mut refusal = status::failure(StatusCode::FORBIDDEN, "Forbidden", message);
        refusal.details = Some(status::details("policy", "poddisruptionbudget", name));
        Err(refusal)
    };
    let noted = budget.get("status").and_then(|status| status.get("disruptedPods")?.as_object());
    match number(budget, "disruptionsAllowed") {
        ..0 => forbidden("pdb disruptions allowed is negative"),
        _ if noted.is_some_and(|noted| noted.len() > MAX_NOTED) => {
            forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
        }
        0 => Err(exhausted(&why_exhausted(budget, name), 0)),
        _ => Ok(()),
    }
}

fn why_exhausted(budget: &Body, name: &str) -> String {
    let conditions = budget.get("status").and_then(|status| status.get("conditions")?.as_array());
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == "DisruptionAllowed");
    let text = |field: &str| found.and_then(|condition| condition[field].as_str()).unwrap_or_default();
    let is_explained = text("status") == "False" && !text("message").is_empty();
    let (desired, current) = (number(budget, "desiredHealthy"), number(budget, "currentHealthy"));
    let does_not_allow = format!("The disruption budget {name} does not allow evicting pods currently");
    if is_explained && text("reason") == "SyncFailed" {
        format!("{does_not_allow} because it failed sync: {}", text("message"))
    } else if current <= desired {
        format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
    } else if is_explained {
        format!("{does_not_allow} ({}): {}", text("reason"), text("message"))
    } else {
        does_not_allow
    }
}

/// Subtracts a disruption, and records the evicted pod for the disruption controller.
fn take_one(budget: &mut Body, pod: &str, now: &str) {
    let left = number(budget, "disruptionsAllowed") - 1;
    let observed = number(budget, "observedGeneration");
    let status = object_mut(budget, "status");
    status.insert("disruptionsAllowed".to_owned(), left.into());
    object_mut(status, "disruptedPods").insert(pod.to_owned(), now.into());
    if left == 0 {
        let refused = json!({
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": observed,
            "lastTransitionTime": now,
        });
        set_condition(status, refused);
    }
}

/// Sets the `DisruptionTarget` condition on a pod before it is deleted.
fn note_eviction(writer: &Writer<'_>, name: &str, options: &DeleteOptions) -> Result<(), Refusal> {
    let now = writer.api.now();
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(&writer.served.kind, name))?;
        options.check(&writer.served.kind, &old)?;
        let before = old.decode();
        let mut after = before.clone();
        let target = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastProbeTime": null,
            "lastTransitionTime": now,
        });
        set_condition(object_mut(&mut after, "status"), target);
        replace(transaction, writer, &old, &before, Change::new(after, Part::Status)).map(|_| ())
    })
}

fn exhausted(why: &str, retry_after_seconds: u32) -> Refusal {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut refusal = status::failure(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    let causes = vec![status::cause("DisruptionBudget", why, "")];
    refusal.details = Some(StatusDetails { causes, retry_after_seconds, ..status::details("", "", "") });
    refusal
}
