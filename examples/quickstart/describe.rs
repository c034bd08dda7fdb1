//! What is worth saying about a pod or a node, in a few words.

use k8s_openapi::api::core::v1::{Node, NodeStatus, Pod};

/// An object about which something can be said.
pub(crate) trait Describe {
    /// Where it is, with a space before; empty if that is nowhere.
    fn place(&self) -> String;

    /// What is different from an earlier version.
    fn changes_since(&self, old: &Self) -> String;
}

impl Describe for Pod {
    fn place(&self) -> String {
        self.spec
            .as_ref()
            .and_then(|spec| spec.node_name.as_ref())
            .map(|node| format!(" on {node}"))
            .unwrap_or_default()
    }

    fn changes_since(&self, old: &Self) -> String {
        let mut changes = Vec::new();
        if self.place() != old.place() {
            changes.push(format!("is scheduled{}", self.place()));
        }
        if self.metadata.deletion_timestamp != old.metadata.deletion_timestamp {
            changes.push("is being deleted".to_owned());
        }
        changes.extend(difference("phase", phase(old), phase(self)));
        changes.extend(difference("ready", &ready(old), &ready(self)));
        changes.extend(difference("restarts", &restarts(old).to_string(), &restarts(self).to_string()));
        or_part(
            changes,
            &[
                ("labels", self.metadata.labels != old.metadata.labels),
                ("annotations", self.metadata.annotations != old.metadata.annotations),
                ("spec", self.spec != old.spec),
                ("status", self.status != old.status),
            ],
        )
    }
}

impl Describe for Node {
    fn place(&self) -> String {
        String::new()
    }

    fn changes_since(&self, old: &Self) -> String {
        let mut changes = Vec::new();
        match (is_cordoned(old), is_cordoned(self)) {
            (false, true) => changes.push("is cordoned".to_owned()),
            (true, false) => changes.push("is uncordoned".to_owned()),
            _ => {}
        }
        let before = conditions(old);
        for (kind, status) in conditions(self) {
            let earlier =
                before.iter().find(|(earlier, _)| *earlier == kind).map_or("none", |(_, status)| *status);
            changes.extend(difference(kind, earlier, status));
        }
        or_part(
            changes,
            &[
                ("labels", self.metadata.labels != old.metadata.labels),
                ("annotations", self.metadata.annotations != old.metadata.annotations),
                ("spec", self.spec != old.spec),
                ("heartbeat", heartbeats(self) != heartbeats(old)),
                ("status", self.status != old.status),
            ],
        )
    }
}

fn difference(what: &str, old: &str, new: &str) -> Option<String> {
    (old != new).then(|| format!("{what} {old} → {new}"))
}

/// If nothing telling has changed, names the first part of the object that is different.
fn or_part(changes: Vec<String>, parts: &[(&str, bool)]) -> String {
    if changes.is_empty() {
        let part = parts.iter().find(|(_, differs)| *differs).map_or("metadata", |(part, _)| part);
        return part.to_owned();
    }
    changes.join(", ")
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("none")
}

/// How many containers of how many are ready, as kubectl has it.
fn ready(pod: &Pod) -> String {
    let statuses =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let all = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    format!("{}/{all}", statuses.iter().filter(|status| status.ready).count())
}

fn restarts(pod: &Pod) -> i32 {
    let statuses =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    statuses.iter().map(|status| status.restart_count).sum()
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

fn conditions(node: &Node) -> Vec<(&str, &str)> {
    let conditions = status(node).and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().map(|condition| (condition.type_.as_str(), condition.status.as_str())).collect()
}

fn heartbeats(node: &Node) -> Vec<String> {
    let conditions = status(node).and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().map(|condition| format!("{:?}", condition.last_heartbeat_time)).collect()
}

fn status(node: &Node) -> Option<&NodeStatus> {
    node.status.as_ref()
}
