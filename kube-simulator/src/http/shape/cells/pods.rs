//! The table cells of pods and nodes.

use jiff::Timestamp;
use serde_json::Value;

use super::super::duration::human_duration;
use super::super::text::{elements, number, or_none, text, text_or};
use super::{has_condition, is_terminating, len};

pub(super) fn of_pod(column: &str, pod: &Value, now: Timestamp) -> Option<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    Some(match column {
        "Ready" => {
            let init_containers = elements(&spec["initContainers"]).iter();
            let sidecars = init_containers.filter(|container| is_sidecar(container)).count();
            format!("{}/{}", Summary::of(pod).ready, len(&spec["containers"]) + sidecars).into()
        }
        "Status" => Summary::of(pod).reason.into(),
        "Restarts" => match Summary::of(pod).restarts {
            Restarts { count, last: Some(last) } if count != 0 => {
                let ago = human_duration(now.duration_since(last).as_secs());
                format!("{count} ({ago} ago)").into()
            }
            restarts => restarts.count.to_string().into(),
        },
        "IP" => or_none(&status["podIP"]),
        "Node" => or_none(&spec["nodeName"]),
        "Nominated Node" => or_none(&status["nominatedNodeName"]),
        "Readiness Gates" => readiness_gates(pod).into(),
        _ => return None,
    })
}

/// The readiness, status and restarts of a pod.
///
/// Counterpart: `printPod`.
struct Summary {
    /// The number of ready containers, including sidecars.
    ready: usize,
    reason: String,
    restarts: Restarts,
    sidecar_restarts: Restarts,
}

#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    /// The latest end of a container that has been restarted.
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        // Unlike on a real server, a count can be any number.
        self.count = self.count.saturating_add(number(&container["restartCount"]));
        let end = text(&container["lastState"]["terminated"]["finishedAt"]).parse::<Timestamp>();
        self.last = self.last.max(end.ok());
    }
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let status = &pod["status"];
        let (phase, reason) = (text(&status["phase"]), text(&status["reason"]));
        let is_gated = elements(&status["conditions"])
            .iter()
            .any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated");
        let first = match reason {
            _ if is_gated => "SchedulingGated",
            "" => phase,
            reason => reason,
        };
        let (restarts, sidecar_restarts) = (Restarts::default(), Restarts::default());
        let mut summary = Self { ready: 0, reason: first.to_owned(), restarts, sidecar_restarts };
        let initialized = summary.add_init_containers(pod);
        if initialized || has_condition(pod, "Initialized") {
            summary.restarts = summary.sidecar_restarts;
            summary.add_containers(pod);
        }
        match (phase, reason) {
            _ if !is_terminating(pod) => {}
            (_, "NodeLost") => summary.reason = "Unknown".to_owned(),
            ("Succeeded" | "Failed", _) => {}
            _ => summary.reason = "Terminating".to_owned(),
        }
        summary
    }

    /// Adds the init containers, up to the first one that prevents the start of the next container.
    /// Returns false if there is such a container.
    fn add_init_containers(&mut self, pod: &Value) -> bool {
        let specs = elements(&pod["spec"]["initContainers"]);
        for (index, container) in elements(&pod["status"]["initContainerStatuses"]).iter().enumerate() {
            let is_sidecar = specs.iter().any(|spec| spec["name"] == container["name"] && is_sidecar(spec));
            self.restarts.add(container);
            if is_sidecar {
                self.sidecar_restarts.add(container);
            }
            let state = &container["state"];
            let has_ended = state["terminated"].is_object();
            if has_ended && number(&state["terminated"]["exitCode"]) == 0 {
                continue;
            }
            if is_sidecar && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            let reason = match text(&state["waiting"]["reason"]) {
                _ if has_ended => end_reason(&state["terminated"]),
                "" | "PodInitializing" => format!("{index}/{}", specs.len()),
                reason => reason.to_owned(),
            };
            self.reason = format!("Init:{reason}");
            return false;
        }
        true
    }

    fn add_containers(&mut self, pod: &Value) {
        let (mut is_running, mut error) = (false, None);
        // The reason of the first container with a reason replaces the reasons of later containers.
        for container in elements(&pod["status"]["containerStatuses"]).iter().rev() {
            self.restarts.add(container);
            let (state, terminated) = (&container["state"], &container["state"]["terminated"]);
            let waiting = text(&state["waiting"]["reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if terminated.is_object() {
                self.reason = end_reason(terminated);
                if number(&terminated["exitCode"]) != 0 {
                    error = Some(self.reason.clone());
                }
            } else if container["ready"] == true && state["running"].is_object() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason != "Completed" {
            return;
        }
        match error {
            _ if is_running && has_condition(pod, "Ready") => self.reason = "Running".to_owned(),
            Some(error) => self.reason = error,
            None if is_running => self.reason = "NotReady".to_owned(),
            None => {}
        }
    }
}

fn is_sidecar(init_container: &Value) -> bool {
    init_container["restartPolicy"] == "Always"
}

/// Returns the reason for the end of a container, such as `Error` or `ExitCode:1`.
fn end_reason(terminated: &Value) -> String {
    match (text(&terminated["reason"]), number(&terminated["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(&terminated["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
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

#[cfg(test)]
mod tests {
    //! Tests of the restarts of pods.

    use serde_json::json;

    use super::{Timestamp, of_pod};

    #[test]
    fn sum_of_restarts_stops_at_the_highest_number() {
        let statuses = json!([{ "restartCount": i64::MAX }, { "restartCount": 1 }]);
        let pod = json!({ "status": { "containerStatuses": statuses } });
        let cell = of_pod("Restarts", &pod, Timestamp::UNIX_EPOCH);
        assert_eq!(cell, Some(i64::MAX.to_string().into()));
    }
}
