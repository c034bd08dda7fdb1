//! The cells of tables: one value for each object and column.
//!
//! Counterpart: `pkg/printers/internalversion/printers.go` of Kubernetes.

mod events;
mod network;
mod pods;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::Value;

use super::duration::human_duration;
use super::path::{JsonPath, text_of};
use super::text::{elements, number, text, text_or};
use crate::kinds::Column;

/// Returns the cell for a column with a JSON path: the object's value at this path, converted to
/// the column's type. A date becomes the time since then. Returns null if no value exists there, or
/// none that can be converted.
///
/// Counterpart: `cellForJSONValue` in `k8s.io/apiextensions-apiserver`.
pub(super) fn at_path(path: Option<&JsonPath>, column: &Column, object: &Value, now: Timestamp) -> Value {
    let Some(found) = path.and_then(|path| path.find(object)).filter(|found| !found.is_null()) else {
        return Value::Null;
    };
    match column.type_name.as_str() {
        "string" => text_of(found).into(),
        "integer" => found.as_i64().or_else(|| found.as_f64().map(|number| number as i64)).into(),
        "number" if found.is_number() => found.clone(),
        "boolean" if found.is_boolean() => found.clone(),
        "date" if found == "" => since(None, now).into(),
        "date" if found.is_string() => since(Some(found), now).into(),
        _ => Value::Null,
    }
}

/// Returns the cell for a column that has no JSON path, such as `Ready` of pods. Returns `None` if
/// the column is unknown.
pub(super) fn cell(kind: &str, column: &str, object: &Value, now: Timestamp) -> Option<Value> {
    let metadata = &object["metadata"];
    let of_kind = match kind {
        "Pod" => pods::of_pod(column, object, now),
        "Node" => pods::of_node(column, object),
        "Service" => network::of_service(column, object),
        "Endpoints" | "EndpointSlice" => network::of_endpoints(kind, column, object),
        "Event" => events::of_event(column, object, now),
        "PersistentVolume" | "PersistentVolumeClaim" => storage::of_volume(kind, column, object),
        "Deployment"
        | "ReplicaSet"
        | "StatefulSet"
        | "DaemonSet"
        | "ReplicationController"
        | "PodTemplate"
        | "ControllerRevision" => workloads::of_workload(kind, column, object),
        "Job" | "CronJob" => workloads::of_job(kind, column, object, now),
        "HorizontalPodAutoscaler" => workloads::of_autoscaler(column, object),
        "Ingress" | "IngressClass" | "NetworkPolicy" => network::of_network(kind, column, object),
        "RoleBinding" | "ClusterRoleBinding" => of_binding(column, object),
        "CSIDriver" | "CSINode" | "StorageClass" | "VolumeAttachment" => {
            storage::of_storage(kind, column, object)
        }
        _ => of_others(kind, column, object),
    };
    of_kind.or_else(|| match column {
        "Name" => Some(text(&metadata["name"]).into()),
        "Age" => Some(since(metadata.get("creationTimestamp"), now).into()),
        "Created At" => Some(metadata["creationTimestamp"].clone()),
        _ => None,
    })
}

/// Returns the time since a timestamp, as `kubectl get` prints it.
fn since(time: Option<&Value>, now: Timestamp) -> String {
    match time.and_then(Value::as_str).map(str::parse::<Timestamp>) {
        None => "<unknown>".to_owned(),
        Some(Err(_)) => "<invalid>".to_owned(),
        Some(Ok(time)) => human_duration(now.duration_since(time).as_secs()),
    }
}

fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Returns the number of entries of an object or a list; 0 for any other value.
fn len(value: &Value) -> usize {
    value.as_object().map_or_else(|| elements(value).len(), serde_json::Map::len)
}

fn has_condition(object: &Value, name: &str) -> bool {
    let conditions = elements(&object["status"]["conditions"]);
    conditions.iter().any(|condition| condition["type"] == name && condition["status"] == "True")
}

fn name_with_default(object: &Value, annotation: &str) -> String {
    let metadata = &object["metadata"];
    let is_default = metadata["annotations"][annotation] == "true";
    format!("{}{}", text(&metadata["name"]), if is_default { " (default)" } else { "" })
}

fn of_binding(column: &str, binding: &Value) -> Option<Value> {
    let subjects = |kind: &str| {
        let found = elements(&binding["subjects"]).iter().filter(|subject| subject["kind"] == kind);
        let names = found.map(|subject| match (kind, text(&subject["namespace"])) {
            ("ServiceAccount", namespace @ "") => text(&subject["name"]).to_owned() + namespace,
            ("ServiceAccount", namespace) => format!("{namespace}/{}", text(&subject["name"])),
            _ => text(&subject["name"]).to_owned(),
        });
        names.collect::<Vec<_>>().join(", ").into()
    };
    Some(match column {
        "Role" => {
            format!("{}/{}", text(&binding["roleRef"]["kind"]), text(&binding["roleRef"]["name"])).into()
        }
        "Users" => subjects("User"),
        "Groups" => subjects("Group"),
        "ServiceAccounts" => subjects("ServiceAccount"),
        _ => return None,
    })
}

fn of_others(kind: &str, column: &str, object: &Value) -> Option<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    Some(match (kind, column) {
        ("Namespace", "Status") => text(&status["phase"]).into(),
        ("ConfigMap", "Data") => (len(&object["data"]) + len(&object["binaryData"])).into(),
        ("Secret", "Type") => text(&object["type"]).into(),
        ("Secret", "Data") => len(&object["data"]).into(),
        ("Lease", "Holder") => text(&spec["holderIdentity"]).into(),
        ("PodDisruptionBudget", "Min Available") => text_of(&text_or(&spec["minAvailable"], "N/A")).into(),
        ("PodDisruptionBudget", "Max Unavailable") => {
            text_of(&text_or(&spec["maxUnavailable"], "N/A")).into()
        }
        ("PodDisruptionBudget", "Allowed Disruptions") => number(&status["disruptionsAllowed"]).into(),
        ("PriorityClass", "Value") => number(&object["value"]).into(),
        ("PriorityClass", "Global-Default") => object["globalDefault"].as_bool().unwrap_or(false).into(),
        ("PriorityClass", "PreemptionPolicy") => text(&object["preemptionPolicy"]).into(),
        ("ResourceQuota", "Request") => quota(status, false).into(),
        ("ResourceQuota", "Limit") => quota(status, true).into(),
        _ => return None,
    })
}

/// Returns the used and the allowed amounts of the resources whose names begin with `limits.`. If
/// `of_limits` is false, returns the amounts of all other resources.
fn quota(status: &Value, of_limits: bool) -> String {
    let amounts = status["hard"].as_object().into_iter().flatten();
    let amounts = amounts.filter(|(name, _)| name.starts_with("limits.") == of_limits);
    let texts = amounts.map(|(name, hard)| {
        let used = text_or(&status["used"][name], "0");
        format!("{name}: {}/{}", text_of(&used), text_of(hard))
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    //! Tests of the cells.

    use serde_json::json;

    use super::{Timestamp, cell};
    use crate::kinds::built_in;

    #[test]
    fn each_column_of_each_built_in_kind_has_a_cell() {
        for kind in built_in() {
            for column in &kind.columns {
                let cell = cell(&kind.kind, &column.name, &json!({}), Timestamp::UNIX_EPOCH);
                assert!(cell.is_some(), "no cell for column {} of {}", column.name, kind.kind);
            }
        }
    }
}
