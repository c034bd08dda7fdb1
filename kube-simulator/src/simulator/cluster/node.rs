//! Nodes: machines in three zones, with capacity, conditions and a heartbeat.

use serde_json::{Value, json};

use super::Draw;

const ZONES: [&str; 3] = ["eu-west-1a", "eu-west-1b", "eu-west-1c"];

/// The machine types: name, number of CPUs, and memory in GiB.
const MACHINES: [(&str, u32, u32); 3] =
    [("m6i.2xlarge", 8, 32), ("m6i.4xlarge", 16, 64), ("r6i.2xlarge", 8, 64)];

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) address: String,
    index: usize,
    /// An index into [`MACHINES`].
    machine: usize,
}

impl Node {
    pub(super) fn draw(index: usize, draw: &mut Draw) -> Self {
        let (high, low) = (index / 250 % 256, index % 250 + 4);
        Self {
            name: format!("ip-10-{}-{high}-{low}.eu-west-1.compute.internal", index / 64_000),
            address: format!("10.{}.{high}.{low}", index / 64_000),
            index,
            machine: draw.random.usize(..MACHINES.len()),
        }
    }

    /// Draws a pod address from the node's range, possibly one that another pod already has. The
    /// ranges of the first 16,384 nodes differ.
    pub(super) fn draw_pod_address(&self, draw: &mut Draw) -> String {
        let range = self.index % 65_000;
        format!("100.{}.{}.{}", 64 + range / 256 % 64, range % 256, draw.random.u8(2..=250))
    }

    pub(super) fn object(&self, draw: &mut Draw) -> Value {
        let (machine, cpus, memory) = MACHINES[self.machine];
        let zone = ZONES[self.index % ZONES.len()];
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.name,
                "uid": draw.uid(),
                "creationTimestamp": draw.now(),
                "annotations": {
                    "node.alpha.kubernetes.io/ttl": "0",
                    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                },
                "labels": {
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/hostname": self.name,
                    "kubernetes.io/os": "linux",
                    "node.kubernetes.io/instance-type": machine,
                    "topology.kubernetes.io/region": "eu-west-1",
                    "topology.kubernetes.io/zone": zone,
                },
            },
            "spec": { "podCIDR": format!("100.64.{}.0/24", self.index % 256), "providerID": format!("aws:///{zone}/i-{:017x}", self.index) },
            "status": {
                "addresses": [
                    { "type": "InternalIP", "address": self.address },
                    { "type": "Hostname", "address": self.name },
                ],
                "capacity": resources(cpus * 1000, memory * 1024),
                "allocatable": resources(cpus * 1000 - 90, memory * 1024 - 1100),
                "conditions": conditions(&draw.now()),
                "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
                "nodeInfo": {
                    "architecture": "amd64",
                    "containerRuntimeVersion": "containerd://2.1.4",
                    "kernelVersion": "6.12.40",
                    "kubeletVersion": "v1.36.0",
                    "operatingSystem": "linux",
                    "osImage": "Bottlerocket OS 1.50.0",
                },
            },
        })
    }
}

pub(super) fn heartbeat(node: &mut Value, now: &str) {
    // Another client can have stored values of other types. Indexing them would panic.
    let conditions = node.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.insert("lastHeartbeatTime".to_owned(), now.into());
    }
}

fn resources(millicores: u32, mebibytes: u32) -> Value {
    json!({
        "cpu": cpu(millicores),
        "ephemeral-storage": "104845292Ki",
        "memory": memory(mebibytes),
        "pods": "110",
    })
}

/// Formats a CPU quantity as the API server does, in the shortest form.
fn cpu(millicores: u32) -> String {
    if millicores.is_multiple_of(1000) { (millicores / 1000).to_string() } else { format!("{millicores}m") }
}

/// Formats a memory quantity as the API server does, in the shortest form.
pub(super) fn memory(mebibytes: u32) -> String {
    if mebibytes.is_multiple_of(1024) { format!("{}Gi", mebibytes / 1024) } else { format!("{mebibytes}Mi") }
}

fn conditions(now: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    };
    json!([
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available"
        ),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ])
}
