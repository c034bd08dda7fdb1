//! The built-in kinds that the simulator can serve. A [`Strategy`] describes how the server treats
//! objects of a kind, in addition to the [`Facts`] that API servers publish.
//!
//! Counterpart: the strategies in `pkg/registry` of Kubernetes.

use super::facts::Facts;
use super::resource::{FieldSource, ResourceKind, Scale};

/// Returns all built-in kinds that the simulator can serve.
pub(crate) fn kinds() -> impl Iterator<Item = ResourceKind> {
    STRATEGIES.iter().filter_map(Strategy::describe)
}

/// How the server treats objects of one kind; see [`ResourceKind`] for the meaning of the fields.
struct Strategy {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    generations: bool,
    returned: bool,
    counted_metadata: &'static [&'static str],
    status_keeps: &'static [&'static str],
    sources: &'static [FieldSource],
    initial_status: Option<&'static str>,
    accepts_initial_status: bool,
}

const STRATEGIES: &[Strategy] = &[
    Strategy::of("", "v1", "ConfigMap"),
    Strategy::of("", "v1", "Endpoints"),
    Strategy::of("", "v1", "Event").sources(&[field(
        "source",
        &["source.component", "reportingComponent"],
        "",
    )]),
    Strategy::of("", "v1", "LimitRange"),
    Strategy::of("", "v1", "Namespace").status(r#"{"phase":"Active"}"#),
    Strategy::of("", "v1", "Node")
        .sources(&[field("spec.unschedulable", &["spec.unschedulable"], "false")])
        .first_status("{}"),
    Strategy::of("", "v1", "PersistentVolume").returned().status(r#"{"phase":"Pending"}"#),
    Strategy::of("", "v1", "PersistentVolumeClaim").returned().status(r#"{"phase":"Pending"}"#),
    Strategy::of("", "v1", "Pod")
        .returned()
        .generations()
        .sources(&[field("spec.hostNetwork", &["spec.hostNetwork"], "false")])
        .status(NEW_POD),
    Strategy::of("", "v1", "PodTemplate").returned().generations(),
    Strategy::of("", "v1", "ReplicationController")
        .generations()
        .sources(&[field("status.replicas", &["status.replicas"], "0")])
        .status(r#"{"replicas":0}"#),
    Strategy::of("", "v1", "ResourceQuota").returned().status("{}"),
    Strategy::of("", "v1", "Secret"),
    Strategy::of("", "v1", "Service").returned().status(r#"{"loadBalancer":{}}"#),
    Strategy::of("", "v1", "ServiceAccount").returned(),
    Strategy::of("apiextensions.k8s.io", "v1", "CustomResourceDefinition").generations().status("{}"),
    Strategy::of("apps", "v1", "ControllerRevision"),
    Strategy::of("apps", "v1", "DaemonSet").generations().status("{}"),
    Strategy::of("apps", "v1", "Deployment")
        .generations()
        // The real Deployment controller copies annotations to the replica sets, so changes of
        // annotations increase the generation.
        .counted(&["annotations"])
        .status_keeps(&["labels"])
        .status("{}"),
    Strategy::of("apps", "v1", "ReplicaSet").generations().status(r#"{"replicas":0}"#),
    Strategy::of("apps", "v1", "StatefulSet").generations().status(r#"{"replicas":0}"#),
    Strategy::of("autoscaling", "v2", "HorizontalPodAutoscaler").status("{}"),
    Strategy::of("batch", "v1", "CronJob").generations().status("{}"),
    Strategy::of("batch", "v1", "Job")
        .generations()
        .sources(&[field("status.successful", &["status.succeeded"], "0")])
        .status("{}"),
    Strategy::of("coordination.k8s.io", "v1", "Lease"),
    Strategy::of("discovery.k8s.io", "v1", "EndpointSlice").generations().counted(&["labels"]),
    Strategy::of("events.k8s.io", "v1", "Event"),
    Strategy::of("networking.k8s.io", "v1", "Ingress").generations().status(r#"{"loadBalancer":{}}"#),
    Strategy::of("networking.k8s.io", "v1", "IngressClass").generations(),
    Strategy::of("networking.k8s.io", "v1", "NetworkPolicy").generations(),
    Strategy::of("policy", "v1", "PodDisruptionBudget").generations().status("{}"),
    Strategy::of("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    Strategy::of("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    Strategy::of("rbac.authorization.k8s.io", "v1", "Role"),
    Strategy::of("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    Strategy::of("scheduling.k8s.io", "v1", "PriorityClass").generations(),
    Strategy::of("storage.k8s.io", "v1", "CSIDriver").returned(),
    Strategy::of("storage.k8s.io", "v1", "CSINode").returned(),
    Strategy::of("storage.k8s.io", "v1", "StorageClass").returned(),
    Strategy::of("storage.k8s.io", "v1", "VolumeAttachment")
        .returned()
        .status_keeps(&["labels", "annotations"])
        .status("{}"),
];

const NEW_POD: &str = r#"{"phase":"Pending","qosClass":"BestEffort"}"#;

const fn field(field: &'static str, paths: &'static [&'static str], otherwise: &'static str) -> FieldSource {
    FieldSource { field, paths, otherwise }
}

impl Strategy {
    const fn of(group: &'static str, version: &'static str, kind: &'static str) -> Self {
        Self {
            group,
            version,
            kind,
            generations: false,
            returned: false,
            counted_metadata: &[],
            status_keeps: &[],
            sources: &[],
            initial_status: None,
            accepts_initial_status: false,
        }
    }

    /// Sets the initial status of new objects, which replaces a status that the client sends.
    const fn status(self, initial: &'static str) -> Self {
        Self { initial_status: Some(initial), ..self }
    }

    /// Sets the initial status of new objects, which applies only if the client sends no status.
    const fn first_status(self, initial: &'static str) -> Self {
        Self { accepts_initial_status: true, ..self.status(initial) }
    }

    const fn generations(self) -> Self {
        Self { generations: true, ..self }
    }

    /// Sets the metadata fields whose changes increase the generation.
    const fn counted(self, counted_metadata: &'static [&'static str]) -> Self {
        Self { counted_metadata, ..self }
    }

    /// Sets the metadata fields that writes to `/status` do not change.
    const fn status_keeps(self, status_keeps: &'static [&'static str]) -> Self {
        Self { status_keeps, ..self }
    }

    const fn returned(self) -> Self {
        Self { returned: true, ..self }
    }

    /// Sets the sources of selectable fields whose value is not at the path that the field's name
    /// denotes.
    const fn sources(self, sources: &'static [FieldSource]) -> Self {
        Self { sources, ..self }
    }

    fn describe(&self) -> Option<ResourceKind> {
        let facts = Facts::find(self.group, self.version, self.kind)?;
        let mut kind = ResourceKind::namespaced(self.group, self.version, self.kind, facts.plural);
        kind.facts = Some(facts);
        kind.namespaced = facts.namespaced;
        kind.status_subresource = facts.has_subresource("status");
        kind.selectable_fields = owned(facts.selectable_fields);
        kind.short_names = owned(facts.short_names);
        kind.categories = owned(facts.categories);
        kind.columns = facts.columns();
        kind.scale = facts.has_subresource("scale").then(Scale::of_built_in);
        kind.sources = self.sources;
        kind.counts_generations = self.generations;
        kind.counted_metadata = self.counted_metadata;
        kind.status_keeps = self.status_keeps;
        kind.returns_deleted = self.returned;
        kind.initial_status = self.initial_status;
        kind.accepts_initial_status = self.accepts_initial_status;
        Some(kind)
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    //! Tests of the list of kinds.

    use super::{STRATEGIES, kinds};

    #[test]
    fn each_strategy_is_of_a_published_kind() {
        assert_eq!(kinds().count(), STRATEGIES.len());
    }
}
