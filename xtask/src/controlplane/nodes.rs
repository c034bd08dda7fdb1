//! The nodes that KWOK simulates.

use anyhow::Context;
use serde_json::{Value, json};

use super::client::Client;

const NODES: &str = "/api/v1/nodes";

/// Ensures that `count` nodes exist: creates missing ones, as newly started kubelets would.
pub(crate) fn create(client: &Client, count: usize) -> anyhow::Result<()> {
    for number in 0..count {
        let name = format!("kwok-{number}");
        if client.has(&format!("{NODES}/{name}")) {
            continue;
        }
        client.create(NODES, &node(&name)).with_context(|| format!("cannot create node {name}"))?;
    }
    Ok(())
}

/// Returns the number of ready nodes.
pub(crate) fn ready(client: &Client) -> anyhow::Result<usize> {
    Ok(count_ready(&client.get(NODES)?))
}

fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "type": "kwok",
            },
        },
        "status": {
            "allocatable": {"cpu": "32", "memory": "256Gi", "pods": "1000"},
            "capacity": {"cpu": "32", "memory": "256Gi", "pods": "1000"},
        },
    })
}

fn count_ready(nodes: &Value) -> usize {
    let items = nodes["items"].as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter(|node| is_ready(node)).count()
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ready_nodes_count() {
        let condition = |status: &str| {
            json!({"status": {"conditions": [
                {"type": "DiskPressure", "status": "False"},
                {"type": "Ready", "status": status},
            ]}})
        };
        let nodes = json!({"items": [condition("True"), condition("False"), node("new")]});
        assert_eq!(count_ready(&nodes), 1);
        assert_eq!(count_ready(&json!({})), 0);
    }
}
