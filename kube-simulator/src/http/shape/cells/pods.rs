//! The table cells of pods and nodes.

use serde_json::Value;

use super::super::text::{elements, number, or_none, text, text_or};
use super::{has_condition, is_terminating, len};

pub(super) fn of_pod(column: &str, pod: &Value) -> Option<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let statuses = elements(&status["containerStatuses"]);
    Some(match column {
        "Ready" => {
            let ready = statuses.iter().filter(|status| status["ready"] == true).count();
            format!("{ready}/{}", len(&spec["containers"])).into()
        }
        "Status" => pod_status(pod).into(),
        "Restarts" => {
            let restarts: i64 = statuses.iter().map(|status| number(&status["restartCount"])).sum();
            restarts.to_string().into()
        }
        "IP" => or_none(&status["podIP"]),
        "Node" => or_none(&spec["nodeName"]),
        "Nominated Node" => or_none(&status["nominatedNodeName"]),
        "Readiness Gates" => readiness_gates(pod).into(),
        _ => return None,
    })
}

fn pod_status(pod: &Value) -> &str {
    if is_terminating(pod) {
        return "Terminating";
    }
    let waiting = elements(&pod["status"]["containerStatuses"]).iter().find_map(|status| {
        let state = &status["state"];
        [&state["waiting"]["reason"], &state["terminated"]["reason"]].into_iter().find_map(Value::as_str)
    });
    waiting.or(pod["status"]["reason"].as_str()).unwrap_or(text(&pod["status"]["phase"]))
}

fn readiness_gates(pod: &Value) -> String {
    let gates = elements(&pod["spec"]["readinessGates"]);
    let ready = gates.iter().filter(|gate| has_condition(pod, text(&gate["conditionType"]))).count();
    if gates.is_empty() { "<none>".to_owned() } else { format!("{ready}/{}", gates.len()) }
}

pub(super) fn of_node(column: &str, node: &Value) -> Option<Value> {
    let info = &node["status"]["nodeInfo"];
    let address = |kind: &str| {
        let found = elements(&node["status"]["addresses"]).iter().find(|address| address["type"] == kind);
        or_none(found.map_or(&Value::Null, |address| &address["address"]))
    };
    Some(match column {
        "Status" => node_status(node).into(),
        "Roles" => {
            let labels = node["metadata"]["labels"].as_object();
            let names = labels.into_iter().flatten().map(|(name, _)| name);
            let roles = names.filter_map(|name| name.strip_prefix("node-role.kubernetes.io/"));
            or_none(&roles.collect::<Vec<_>>().join(",").into())
        }
        "Version" => text(&info["kubeletVersion"]).into(),
        "Internal-IP" => address("InternalIP"),
        "External-IP" => address("ExternalIP"),
        "OS-Image" => text_or(&info["osImage"], "<unknown>"),
        "Kernel-Version" => text_or(&info["kernelVersion"], "<unknown>"),
        "Container-Runtime" => text_or(&info["containerRuntimeVersion"], "<unknown>"),
        _ => return None,
    })
}

fn node_status(node: &Value) -> String {
    let ready = elements(&node["status"]["conditions"]).iter().find(|condition| condition["type"] == "Ready");
    let status = match ready.map(|condition| text(&condition["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if node["spec"]["unschedulable"] == true { ",SchedulingDisabled" } else { "" };
    format!("{status}{cordoned}")
}
