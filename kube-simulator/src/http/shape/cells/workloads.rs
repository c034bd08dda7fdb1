//! The table cells of workloads and their autoscalers.

use jiff::Timestamp;
use serde_json::Value;

use super::super::duration::human_duration;
use super::super::path::text_of;
use super::super::text::{
    at_most, containers, elements, label_selector, map_text, number, or_none, text, text_or,
};
use super::{has_condition, is_terminating, len, since};

pub(super) fn of_workload(kind: &str, column: &str, object: &Value) -> Option<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let template = if kind == "PodTemplate" { &object["template"] } else { &spec["template"] };
    let of_status = |field: &str| number(&status[field]).into();
    Some(match (kind, column) {
        ("DaemonSet", "Desired") => of_status("desiredNumberScheduled"),
        ("DaemonSet", "Current") => of_status("currentNumberScheduled"),
        ("DaemonSet", "Ready") => of_status("numberReady"),
        ("DaemonSet", "Up-to-date") => of_status("updatedNumberScheduled"),
        ("DaemonSet", "Available") => of_status("numberAvailable"),
        ("DaemonSet", "Node Selector") => map_text(&template["spec"]["nodeSelector"]).into(),
        ("Deployment" | "StatefulSet", "Ready") => {
            format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"])).into()
        }
        (_, "Desired") => number(&spec["replicas"]).into(),
        (_, "Current") => of_status("replicas"),
        (_, "Ready") => of_status("readyReplicas"),
        (_, "Up-to-date") => of_status("updatedReplicas"),
        (_, "Available") => of_status("availableReplicas"),
        (_, "Containers") => containers(&template["spec"], "name").into(),
        (_, "Images") => containers(&template["spec"], "image").into(),
        (_, "Pod Labels") => map_text(&template["metadata"]["labels"]).into(),
        ("ReplicationController", "Selector") => map_text(&spec["selector"]).into(),
        (_, "Selector") => label_selector(&spec["selector"]).into(),
        (_, "Controller") => or_none(&controller(object).into()),
        (_, "Revision") => number(&object["revision"]).into(),
        _ => return None,
    })
}

/// Returns the controller of an object, such as `deployment.apps/web`, or an empty string.
fn controller(object: &Value) -> String {
    let owners = elements(&object["metadata"]["ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return String::new();
    };
    let (kind, name) = (text(&owner["kind"]).to_lowercase(), text(&owner["name"]));
    match text(&owner["apiVersion"]).split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

pub(super) fn of_job(kind: &str, column: &str, object: &Value, now: Timestamp) -> Option<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let of_pods = if kind == "CronJob" { &spec["jobTemplate"]["spec"] } else { spec };
    Some(match column {
        "Status" => job_status(object).into(),
        "Completions" => {
            let (done, wanted) = (number(&status["succeeded"]), spec["completions"].as_i64());
            match (wanted, number(&spec["parallelism"])) {
                (Some(wanted), _) => format!("{done}/{wanted}").into(),
                (None, parallelism @ 2..) => format!("{done}/1 of {parallelism}").into(),
                (None, _) => format!("{done}/1").into(),
            }
        }
        "Duration" => {
            let at = |field: &str| status[field].as_str()?.parse::<Timestamp>().ok();
            let ended = at("completionTime").unwrap_or(now);
            let duration =
                at("startTime").map(|started| human_duration(ended.duration_since(started).as_secs()));
            duration.unwrap_or_default().into()
        }
        "Schedule" => text(&spec["schedule"]).into(),
        "Timezone" => or_none(&spec["timeZone"]),
        "Suspend" => match spec["suspend"] {
            Value::Bool(true) => "True".into(),
            Value::Bool(false) => "False".into(),
            _ => "<unset>".into(),
        },
        "Active" => len(&status["active"]).into(),
        "Last Schedule" => match status.get("lastScheduleTime") {
            Some(time) => since(Some(time), now).into(),
            None => "<none>".into(),
        },
        "Containers" => containers(&of_pods["template"]["spec"], "name").into(),
        "Images" => containers(&of_pods["template"]["spec"], "image").into(),
        "Selector" => label_selector(&of_pods["selector"]).into(),
        _ => return None,
    })
}

fn job_status(job: &Value) -> &'static str {
    let shown = [
        ("Complete", has_condition(job, "Complete")),
        ("Failed", has_condition(job, "Failed")),
        ("Terminating", is_terminating(job)),
        ("Suspended", has_condition(job, "Suspended")),
        ("FailureTarget", has_condition(job, "FailureTarget")),
        ("SuccessCriteriaMet", has_condition(job, "SuccessCriteriaMet")),
    ];
    shown.into_iter().find(|(_, applies)| *applies).map_or("Running", |(name, _)| name)
}

pub(super) fn of_autoscaler(column: &str, autoscaler: &Value) -> Option<Value> {
    let (spec, status) = (&autoscaler["spec"], &autoscaler["status"]);
    Some(match column {
        "Reference" => {
            let target = &spec["scaleTargetRef"];
            format!("{}/{}", text(&target["kind"]), text(&target["name"])).into()
        }
        "Targets" => or_none(&targets(spec, status).into()),
        "MinPods" => spec["minReplicas"].as_i64().map_or("<unset>".into(), |pods| pods.to_string().into()),
        "MaxPods" => number(&spec["maxReplicas"]).into(),
        "Replicas" => number(&status["currentReplicas"]).into(),
        _ => return None,
    })
}

/// Returns the current and the wanted values of an autoscaler's metrics.
fn targets(spec: &Value, status: &Value) -> String {
    let percent = |value: &Value, otherwise: &str| {
        value.as_i64().map_or_else(|| otherwise.to_owned(), |value| format!("{value}%"))
    };
    // In `autoscaling/v1`, the CPU utilization is the only metric with its own field. Metrics in
    // annotations are not shown.
    if spec.get("targetCPUUtilizationPercentage").is_some() {
        let current = percent(&status["currentCPUUtilizationPercentage"], "<unknown>");
        return format!("cpu: {current}/{}", percent(&spec["targetCPUUtilizationPercentage"], "<auto>"));
    }
    let metrics = elements(&spec["metrics"]).iter().enumerate().map(|(index, metric)| {
        let name = text(&metric["type"]);
        let mut rest = name.chars();
        let field: String = rest.next().into_iter().flat_map(char::to_lowercase).chain(rest).collect();
        let (source, current) = (&metric[&field], &status["currentMetrics"][index][&field]["current"]);
        let (target, is_average) = (&source["target"], source["target"].get("averageValue").is_some());
        let value = |place: &Value, field: &str| text_of(&text_or(&place[field], "<unknown>"));
        let field = if is_average { "averageValue" } else { "value" };
        let prefix = match name {
            "Resource" | "ContainerResource" => format!("{}: ", text(&source["name"])),
            _ => String::new(),
        };
        match name {
            "Resource" | "ContainerResource" if !is_average => {
                let current = percent(&current["averageUtilization"], "<unknown>");
                format!("{prefix}{current}/{}", percent(&target["averageUtilization"], "<auto>"))
            }
            "External" | "Object" if is_average => {
                format!("{}/{} (avg)", value(current, field), value(target, field))
            }
            _ => format!("{prefix}{}/{}", value(current, field), value(target, field)),
        }
    });
    at_most(2, ", ", metrics.collect())
}

#[cfg(test)]
mod tests {
    //! Tests of the metrics of autoscalers.

    use serde_json::json;

    use super::of_autoscaler;

    #[test]
    fn metric_type_can_start_with_a_character_of_two_bytes() {
        let metric = json!({ "type": "\u{e9}", "\u{e9}": { "target": { "value": "5" } } });
        let cell = of_autoscaler("Targets", &json!({ "spec": { "metrics": [metric] } }));
        assert_eq!(cell, Some("<unknown>/5".into()));
    }
}
