//! Short descriptions of pods and nodes.

use k8s_openapi::api::core::v1::{ContainerStatus, Node, NodeCondition, Pod, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Describes in a few words where an object is, such as the node of a pod, and how it has changed.
pub(crate) trait Describe {
    /// Returns the location of the object with a leading space, such as ` on node-1`; can be empty.
    fn place(&self) -> String;

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
        if self.metadata.deletion_timestamp.is_some() && old.metadata.deletion_timestamp.is_none() {
            changes.push("is being deleted".to_owned());
        }
        changes.extend(difference("phase", phase(old), phase(self)));
        changes.extend(difference("ready", &ready(old), &ready(self)));
        changes.extend(difference("restarts", &restarts(old), &restarts(self)));
        summarize(
            &changes,
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
        for condition in conditions(self) {
            let earlier = conditions(old).iter().find(|earlier| earlier.type_ == condition.type_);
            let earlier = earlier.map_or("none", |earlier| &earlier.status);
            changes.extend(difference(&condition.type_, earlier, &condition.status));
        }
        summarize(
            &changes,
            &[
                ("labels", self.metadata.labels != old.metadata.labels),
                ("annotations", self.metadata.annotations != old.metadata.annotations),
                ("taints", taints(self) != taints(old)),
                ("spec", self.spec != old.spec),
                ("heartbeat", heartbeats(self).ne(heartbeats(old))),
                ("status", self.status != old.status),
            ],
        )
    }
}

fn difference(what: &str, old: &str, new: &str) -> Option<String> {
    (old != new).then(|| format!("{what} {old} → {new}"))
}

/// Joins `changes`. If there are none, returns the first part that differs, or else `metadata`. For
/// example, returns `status` for the parts `[("spec", false), ("status", true)]`.
fn summarize(changes: &[String], parts: &[(&str, bool)]) -> String {
    if changes.is_empty() {
        let part = parts.iter().find(|(_, differs)| *differs).map_or("metadata", |(part, _)| part);
        return part.to_owned();
    }
    changes.join(", ")
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("none")
}

/// Returns the ready and total numbers of containers in kubectl's format, such as `1/2`.
fn ready(pod: &Pod) -> String {
    let all = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    format!("{}/{all}", containers(pod).iter().filter(|container| container.ready).count())
}

fn restarts(pod: &Pod) -> String {
    containers(pod).iter().map(|container| container.restart_count).sum::<i32>().to_string()
}

fn containers(pod: &Pod) -> &[ContainerStatus] {
    pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default()
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

fn taints(node: &Node) -> Option<&[Taint]> {
    node.spec.as_ref()?.taints.as_deref()
}

fn conditions(node: &Node) -> &[NodeCondition] {
    node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn heartbeats(node: &Node) -> impl Iterator<Item = Option<&Time>> {
    conditions(node).iter().map(|condition| condition.last_heartbeat_time.as_ref())
}
