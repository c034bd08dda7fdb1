//! The pods of a simulated cluster, and their steps from pending to running.

use serde_json::{Value, json};

use super::node::{Node, memory};
use super::{Draw, PodRef, managed_fields};
use crate::api::writes::object_mut;
use crate::simulator::Error;
use crate::simulator::store::{ObjectStore, into_body};

/// A generated pod that the simulator's store does not contain yet: the complete object, and the
/// index of the pod's workload. [`create`](Self::create) adds the object to the store.
#[derive(Debug)]
pub(super) struct Pod {
    object: Value,
    workload: usize,
}

impl Pod {
    /// Creates a pending pod. `workload` is an index into the cluster's workloads.
    pub(super) fn new(template: Value, name: &str, workload: usize, draw: &mut Draw) -> Self {
        let mut object = template;
        object["metadata"]["name"] = name.into();
        object["metadata"]["uid"] = draw.uid().into();
        object["metadata"]["creationTimestamp"] = draw.now().into();
        object["metadata"]["generation"] = 1.into();
        object["status"] = json!({ "phase": "Pending", "qosClass": "Burstable" });
        Self { object, workload }
    }

    /// Schedules and starts the pod in one step.
    pub(super) fn run_on(&mut self, node: &Node, draw: &mut Draw) {
        schedule(&mut self.object, node, &draw.now());
        start(&mut self.object, node, draw);
    }

    pub(super) fn create(self, store: &ObjectStore) -> Result<PodRef, Error> {
        let stored = store.create_body(into_body(self.object)?)?;
        let key = format!("{}/{}", stored.namespace().unwrap_or_default(), stored.name());
        Ok(PodRef { key, workload: self.workload })
    }
}

pub(super) fn schedule(pod: &mut Value, node: &Node, now: &str) {
    let Value::Object(pod) = pod else {
        return;
    };
    // Another client can have stored a spec or a status that is not an object. Indexing it would
    // panic.
    object_mut(pod, "spec").insert("nodeName".to_owned(), node.name.as_str().into());
    let conditions = json!([condition("PodScheduled", true, now)]);
    object_mut(pod, "status").insert("conditions".to_owned(), conditions);
}

pub(super) fn start(pod: &mut Value, node: &Node, draw: &mut Draw) {
    let now = draw.now();
    let address = node.draw_pod_address(draw);
    let containers = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let started: Vec<Value> =
        containers.iter().map(|container| container_status(container, &now, draw)).collect();
    let kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    pod["status"] = json!({
        "phase": "Running",
        "qosClass": "Burstable",
        "observedGeneration": 1,
        "hostIP": node.address,
        "hostIPs": [{ "ip": node.address }],
        "podIP": address,
        "podIPs": [{ "ip": address }],
        "startTime": now,
        "conditions": kinds.map(|kind| condition(kind, true, &now)),
        "containerStatuses": started,
    });
}

/// Makes a ready pod unready, with a restart of its first container, or an unready pod ready.
pub(super) fn flap(pod: &mut Value, now: &str) {
    let ready = pod["status"]["containerStatuses"][0]["ready"] == true;
    // Another client can have removed the statuses of the containers.
    let container = pod.pointer_mut("/status/containerStatuses/0").and_then(Value::as_object_mut);
    if let Some(container) = container {
        container.insert("ready".to_owned(), (!ready).into());
        if ready {
            let restarts = container.get("restartCount").and_then(Value::as_u64).unwrap_or(0);
            container.insert("restartCount".to_owned(), restarts.saturating_add(1).into());
        }
    }
    if let Some(conditions) = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        for found in conditions {
            if matches!(found["type"].as_str(), Some("Ready" | "ContainersReady")) {
                *found = condition(found["type"].as_str().unwrap_or_default(), !ready, now);
            }
        }
    }
}

/// Returns the fields that a kubelet owns in a running pod's status, in the format of `FieldsV1`.
pub(super) fn status_fields() -> Value {
    let conditions = ["ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready"];
    managed_fields::of(&json!({
        "status": {
            "conditions": conditions.map(|kind| condition(kind, true, "")),
            "containerStatuses": [],
            "hostIP": "",
            "hostIPs": [],
            "observedGeneration": 1,
            "phase": "",
            "podIP": "",
            "podIPs": [{ "ip": "100.64.0.2" }],
            "startTime": "",
        },
    }))
}

pub(super) fn spec(team: &str, name: &str, version: &str, draw: &mut Draw) -> Value {
    json!({
        "containers": [main_container(team, name, version, draw), proxy_container()],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": true,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": { "fsGroup": 2000, "runAsNonRoot": true, "runAsUser": 1000 },
        "serviceAccount": name,
        "serviceAccountName": name,
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            toleration("node.kubernetes.io/not-ready"),
            toleration("node.kubernetes.io/unreachable"),
        ],
        "volumes": [
            { "name": "config", "configMap": { "name": format!("{name}-config"), "defaultMode": 420 } },
            { "name": "tmp", "emptyDir": {} },
            { "name": "kube-api-access", "projected": { "defaultMode": 420, "sources": [
                { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            ] } },
        ],
    })
}

fn main_container(team: &str, name: &str, version: &str, draw: &mut Draw) -> Value {
    let mebibytes = *draw.pick(&[256, 512, 1024, 2048]);
    json!({
        "name": name,
        "image": format!("registry.example.com/{team}/{name}:{version}"),
        "imagePullPolicy": "IfNotPresent",
        "args": ["--config=/etc/config/app.yaml", "--log-format=json"],
        "env": environment(team, name),
        "ports": [
            { "name": "http", "containerPort": 8080, "protocol": "TCP" },
            { "name": "metrics", "containerPort": 9090, "protocol": "TCP" },
        ],
        "resources": {
            "requests": { "cpu": "250m", "memory": memory(mebibytes) },
            "limits": { "memory": memory(mebibytes * 2) },
        },
        "livenessProbe": probe("/healthz", 20),
        "readinessProbe": probe("/readyz", 5),
        "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
        "volumeMounts": mounts(&[("config", "/etc/config"), ("tmp", "/tmp")]),
    })
}

fn proxy_container() -> Value {
    json!({
        "name": "proxy",
        "image": "registry.example.com/platform/proxy:2.31.0",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{ "name": "admin", "containerPort": 15000, "protocol": "TCP" }],
        "resources": {
            "requests": { "cpu": "50m", "memory": "64Mi" },
            "limits": { "cpu": "500m", "memory": "256Mi" },
        },
        "volumeMounts": mounts(&[]),
    })
}

fn environment(team: &str, name: &str) -> Value {
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } });
    let secret = |variable: &str, key: &str| {
        let reference = json!({ "name": format!("{name}-secrets"), "key": key });
        json!({ "name": variable, "valueFrom": { "secretKeyRef": reference } })
    };
    json!([
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace"),
        secret("DATABASE_URL", "database-url"),
        { "name": "LOG_LEVEL", "value": "info" },
        { "name": "SERVICE_NAME", "value": name },
        { "name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": format!("http://collector.monitoring:4317/{team}") },
    ])
}

fn mounts(own: &[(&str, &str)]) -> Value {
    let token = ("kube-api-access", "/var/run/secrets/kubernetes.io/serviceaccount");
    let all = own.iter().chain([&token]);
    all.map(|(name, path)| json!({ "name": name, "mountPath": path, "readOnly": *name != "tmp" })).collect()
}

fn probe(path: &str, period: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": "http", "scheme": "HTTP" },
        "periodSeconds": period,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    })
}

fn toleration(key: &str) -> Value {
    json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 })
}

fn condition(kind: &str, holds: bool, since: &str) -> Value {
    json!({
        "type": kind,
        "status": if holds { "True" } else { "False" },
        "lastProbeTime": null,
        "lastTransitionTime": since,
        "observedGeneration": 1,
    })
}

fn container_status(container: &Value, now: &str, draw: &mut Draw) -> Value {
    let image = container["image"].as_str().unwrap_or_default();
    let mut hash = || format!("{:032x}{:032x}", draw.random.u128(..), draw.random.u128(..));
    json!({
        "name": container["name"],
        "image": image,
        "imageID": format!("{}@sha256:{}", image.split(':').next().unwrap_or_default(), hash()),
        "containerID": format!("containerd://{}", hash()),
        "ready": true,
        "started": true,
        "restartCount": 0,
        "lastState": {},
        "state": { "running": { "startedAt": now } },
    })
}
