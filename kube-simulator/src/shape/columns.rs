//! The columns of built-in kinds, after the name. They follow kube-apiserver's `pkg/printers/internalversion` for the
//! most common kinds. All other kinds show their age.

use serde_json::Value;

use super::cells::{Cell, Column, Computed};
use super::path::JsonPath;

/// Returns the columns of a kind.
pub(crate) fn of(group: &str, kind: &str) -> Vec<Column> {
    match (group, kind) {
        ("", "Pod") => pod(),
        ("", "Node") => node(),
        ("", "Namespace") => vec![at("Status", "string", ".status.phase"), Column::age()],
        ("", "ConfigMap") => vec![computed("Data", "string", data), Column::age()],
        ("", "Secret") => {
            vec![at("Type", "string", ".type"), computed("Data", "integer", data), Column::age()]
        }
        ("", "Service") => service(),
        ("", "Event") => event(),
        ("apps", "Deployment") => deployment(),
        ("apps", "ReplicaSet") => replicas("Desired", "Current"),
        ("apps", "StatefulSet") => vec![computed("Ready", "string", ready_of_spec), Column::age()],
        ("batch", "Job") => vec![computed("Completions", "string", completions), Column::age()],
        ("coordination.k8s.io", "Lease") => {
            vec![at("Holder", "string", ".spec.holderIdentity"), Column::age()]
        }
        ("apiextensions.k8s.io", _) => vec![created_at()],
        _ => vec![Column::age()],
    }
}

fn at(name: &str, type_name: &str, path: &str) -> Column {
    // Cannot fail: all paths below are valid.
    let cell = JsonPath::parse(path).map_or(Cell::Computed(Computed(|_| Value::Null)), Cell::At);
    Column::new(name, type_name, cell)
}

fn computed(name: &str, type_name: &str, compute: fn(&Value) -> Value) -> Column {
    Column::new(name, type_name, Cell::Computed(Computed(compute)))
}

/// Shows a column only with `kubectl get -o wide`.
fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

fn created_at() -> Column {
    at("Created At", "date", ".metadata.creationTimestamp")
}

fn pod() -> Vec<Column> {
    vec![
        computed("Ready", "string", pod_ready),
        computed("Status", "string", pod_status),
        computed("Restarts", "string", pod_restarts),
        Column::age(),
        wide(computed("IP", "string", |pod| or_none(&pod["status"]["podIP"]))),
        wide(computed("Node", "string", |pod| or_none(&pod["spec"]["nodeName"]))),
        wide(computed("Nominated Node", "string", |pod| or_none(&pod["status"]["nominatedNodeName"]))),
        wide(computed("Readiness Gates", "string", |_| "<none>".into())),
    ]
}

fn node() -> Vec<Column> {
    vec![
        computed("Status", "string", node_status),
        computed("Roles", "string", node_roles),
        Column::age(),
        at("Version", "string", ".status.nodeInfo.kubeletVersion"),
        wide(computed("Internal-IP", "string", |node| node_address(node, "InternalIP"))),
        wide(computed("External-IP", "string", |node| node_address(node, "ExternalIP"))),
        wide(at("OS-Image", "string", ".status.nodeInfo.osImage")),
        wide(at("Kernel-Version", "string", ".status.nodeInfo.kernelVersion")),
        wide(at("Container-Runtime", "string", ".status.nodeInfo.containerRuntimeVersion")),
    ]
}

fn service() -> Vec<Column> {
    vec![
        at("Type", "string", ".spec.type"),
        computed("Cluster-IP", "string", |service| or_none(&service["spec"]["clusterIP"])),
        computed("External-IP", "string", service_address),
        computed("Port(s)", "string", service_ports),
        Column::age(),
        wide(computed("Selector", "string", |service| pairs(&service["spec"]["selector"]))),
    ]
}

fn event() -> Vec<Column> {
    let last_seen = JsonPath::parse(".lastTimestamp").map(Cell::Since);
    vec![
        Column::new("Last Seen", "string", last_seen.unwrap_or(Cell::Computed(Computed(|_| Value::Null)))),
        at("Type", "string", ".type"),
        at("Reason", "string", ".reason"),
        computed("Object", "string", |event| {
            let object = &event["involvedObject"];
            format!("{}/{}", text(&object["kind"]).to_lowercase(), text(&object["name"])).into()
        }),
        at("Message", "string", ".message"),
    ]
}

fn deployment() -> Vec<Column> {
    vec![
        computed("Ready", "string", ready_of_spec),
        computed("Up-to-date", "string", |object| number(&object["status"]["updatedReplicas"]).into()),
        computed("Available", "string", |object| number(&object["status"]["availableReplicas"]).into()),
        Column::age(),
        wide(computed("Containers", "string", |object| containers(object, "name"))),
        wide(computed("Images", "string", |object| containers(object, "image"))),
        wide(computed("Selector", "string", |object| pairs(&object["spec"]["selector"]["matchLabels"]))),
    ]
}

fn replicas(desired: &str, current: &str) -> Vec<Column> {
    vec![
        computed(desired, "integer", |object| number(&object["spec"]["replicas"]).into()),
        computed(current, "integer", |object| number(&object["status"]["replicas"]).into()),
        computed("Ready", "integer", |object| number(&object["status"]["readyReplicas"]).into()),
        Column::age(),
        wide(computed("Containers", "string", |object| containers(object, "name"))),
        wide(computed("Images", "string", |object| containers(object, "image"))),
        wide(computed("Selector", "string", |object| pairs(&object["spec"]["selector"]["matchLabels"]))),
    ]
}

fn pod_ready(pod: &Value) -> Value {
    let statuses = elements(&pod["status"]["containerStatuses"]);
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    format!("{ready}/{}", elements(&pod["spec"]["containers"]).len()).into()
}

/// Returns the displayed state of a pod: its deletion, the reason why a container does not run, or its phase.
fn pod_status(pod: &Value) -> Value {
    if pod["metadata"]["deletionTimestamp"].is_string() {
        return "Terminating".into();
    }
    let waiting = elements(&pod["status"]["containerStatuses"]).iter().find_map(|status| {
        let state = &status["state"];
        [&state["waiting"]["reason"], &state["terminated"]["reason"]].into_iter().find_map(Value::as_str)
    });
    waiting.or(pod["status"]["reason"].as_str()).unwrap_or(text(&pod["status"]["phase"])).into()
}

fn pod_restarts(pod: &Value) -> Value {
    let statuses = elements(&pod["status"]["containerStatuses"]);
    statuses.iter().map(|status| number(&status["restartCount"])).sum::<i64>().to_string().into()
}

fn node_status(node: &Value) -> Value {
    let ready = elements(&node["status"]["conditions"]).iter().find(|condition| condition["type"] == "Ready");
    let mut status = match ready.map(|condition| text(&condition["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    status.into()
}

fn node_roles(node: &Value) -> Value {
    let labels = node["metadata"]["labels"].as_object();
    let names = labels.into_iter().flatten().map(|(name, _)| name);
    let roles: Vec<&str> = names.filter_map(|name| name.strip_prefix("node-role.kubernetes.io/")).collect();
    if roles.is_empty() { "<none>".into() } else { roles.join(",").into() }
}

fn node_address(node: &Value, kind: &str) -> Value {
    let found = elements(&node["status"]["addresses"]).iter().find(|address| address["type"] == kind);
    or_none(found.map_or(&Value::Null, |address| &address["address"]))
}

fn service_address(service: &Value) -> Value {
    let spec = &service["spec"];
    let given = elements(&service["status"]["loadBalancer"]["ingress"]).first();
    match text(&spec["type"]) {
        "ExternalName" => or_none(&spec["externalName"]),
        "LoadBalancer" => match given {
            Some(given) => or_none(given.get("ip").unwrap_or(&given["hostname"])),
            None => "<pending>".into(),
        },
        _ => or_none(&spec["externalIPs"][0]),
    }
}

fn service_ports(service: &Value) -> Value {
    let ports: Vec<String> = elements(&service["spec"]["ports"])
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match number(&port["nodePort"]) {
                0 => format!("{}/{protocol}", number(&port["port"])),
                node_port => format!("{}:{node_port}/{protocol}", number(&port["port"])),
            }
        })
        .collect();
    if ports.is_empty() { "<none>".into() } else { ports.join(",").into() }
}

fn ready_of_spec(object: &Value) -> Value {
    format!("{}/{}", number(&object["status"]["readyReplicas"]), number(&object["spec"]["replicas"])).into()
}

fn completions(job: &Value) -> Value {
    let wanted = job["spec"]["completions"].as_i64().unwrap_or(1);
    format!("{}/{wanted}", number(&job["status"]["succeeded"])).into()
}

fn data(object: &Value) -> Value {
    let entries = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    (entries("data") + entries("binaryData")).into()
}

fn containers(object: &Value, field: &str) -> Value {
    let containers = elements(&object["spec"]["template"]["spec"]["containers"]);
    containers.iter().map(|container| text(&container[field])).collect::<Vec<_>>().join(",").into()
}

fn pairs(labels: &Value) -> Value {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}={}", text(value)))
        .collect();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",").into() }
}

fn or_none(value: &Value) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>").into()
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}
