//! Warnings about rules that a real server enforces and the simulator does not check.
//!
//! Most unchecked rules for built-in kinds cause no warning, because the warning would be the same
//! for each write.

use serde_json::Value;

use super::respond::{self, HttpResponse};
use crate::api::schema;
use crate::api::selector::LabelSelector;
use crate::api::writes::selector_text;
use crate::kinds::ResourceKind;
use crate::storage::Object;

/// The workload kinds whose incomplete objects cause warnings.
const WORKLOADS: [&str; 7] =
    ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"];

/// Adds `Warning` headers to `response`: the given `warnings`, and those about unchecked rules for
/// `object`.
pub(super) fn warn(
    response: HttpResponse,
    mut warnings: Vec<String>,
    kind: &ResourceKind,
    object: &Object,
) -> HttpResponse {
    if let Some(schema) = &kind.schema {
        warnings.extend(schema::unchecked(schema, &Value::Object(object.decode())));
    } else if kind.is_built_in() && WORKLOADS.contains(&kind.kind.as_str()) {
        warnings.extend(of_workload(&kind.kind, &Value::Object(object.decode())));
    }
    respond::with_warnings(response, &warnings)
}

/// Returns the warnings about a workload that a real server would refuse.
fn of_workload(kind: &str, object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let pod = match kind {
        "Pod" => spec,
        "CronJob" => &spec["jobTemplate"]["spec"]["template"]["spec"],
        _ => &spec["template"]["spec"],
    };
    let mut warnings = Vec::new();
    if pod["containers"].as_array().is_none_or(Vec::is_empty) {
        warnings.push(format!(
            "the simulator does not check built-in kinds: a real server refuses a {kind} without containers"
        ));
    }
    let has_selector = matches!(kind, "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet");
    if has_selector && !selects(&spec["selector"], &spec["template"]["metadata"]["labels"]) {
        warnings.push(format!(
            "the simulator does not check built-in kinds: a real server refuses a {kind} whose selector is missing, is \
             empty or does not match the labels of its template"
        ));
    }
    warnings
}

/// Returns whether a selector has requirements and the labels of a template meet them.
fn selects(selector: &Value, labels: &Value) -> bool {
    // Without these fields, `selector_text` would read the selector as a map of labels.
    ["matchLabels", "matchExpressions"].iter().any(|field| selector.get(field).is_some())
        && LabelSelector::parse(&selector_text(selector)).is_ok_and(|selector| {
            !selector.is_everything() && selector.matches_labels(|name| labels[name].as_str())
        })
}
