//! The built-in kinds that the simulator can serve.
//!
//! Counterpart: the strategies in `pkg/registry` of Kubernetes.

use super::facts::Facts;
use super::resource::{CLIENT_METADATA, FieldSource, ResourceKind, Scale};

pub(crate) fn kinds() -> impl Iterator<Item = ResourceKind> {
    STRATEGIES.iter().filter_map(Strategy::describe)
}

/// How the server treats objects of one kind, in addition to the published [`Facts`]. See
/// [`ResourceKind`] for the meaning of the fields.
struct Strategy {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    counts_generations: bool,
    returns_deleted: bool,
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
        .default_status("{}"),
    Strategy::of("", "v1", "PersistentVolume").returns_deleted().status(r#"{"phase":"Pending"}"#),
    Strategy::of("", "v1", "PersistentVolumeClaim").returns_deleted().status(r#"{"phase":"Pending"}"#),
    Strategy::of("", "v1", "Pod")
        .returns_deleted()
        .counts_generations()
        .sources(&[field("spec.hostNetwork", &["spec.hostNetwork"], "false")])
        .status_keeps(&["ownerReferences"])
        .status(NEW_POD),
    Strategy::of("", "v1", "PodTemplate").returns_deleted().counts_generations(),
    Strategy::of("", "v1", "ReplicationController")
        .counts_generations()
        .sources(&[field("status.replicas", &["status.replicas"], "0")])
        .status(r#"{"replicas":0}"#),
    Strategy::of("", "v1", "ResourceQuota").returns_deleted().status("{}"),
    Strategy::of("", "v1", "Secret"),
    Strategy::of("", "v1", "Service").returns_deleted().status(r#"{"loadBalancer":{}}"#),
    Strategy::of("", "v1", "ServiceAccount").returns_deleted(),
    Strategy::of("apiextensions.k8s.io", "v1", "CustomResourceDefinition").counts_generations().status("{}"),
    Strategy::of("apps", "v1", "ControllerRevision"),
    Strategy::of("apps", "v1", "DaemonSet").counts_generations().status("{}"),
    Strategy::of("apps", "v1", "Deployment")
        .counts_generations()
        // The real Deployment controller copies annotations to the replica sets, so changes of
        // annotations increase the generation.
        .counted_metadata(&["annotations"])
        .status_keeps(&["labels"])
        .status("{}"),
    Strategy::of("apps", "v1", "ReplicaSet").counts_generations().status(r#"{"replicas":0}"#),
    Strategy::of("apps", "v1", "StatefulSet").counts_generations().status(r#"{"replicas":0}"#),
    Strategy::of("autoscaling", "v2", "HorizontalPodAutoscaler").status("{}"),
    Strategy::of("batch", "v1", "CronJob").counts_generations().status("{}"),
    Strategy::of("batch", "v1", "Job")
        .counts_generations()
        .sources(&[field("status.successful", &["status.succeeded"], "0")])
        .status("{}"),
    Strategy::of("coordination.k8s.io", "v1", "Lease"),
    Strategy::of("discovery.k8s.io", "v1", "EndpointSlice")
        .counts_generations()
        .counted_metadata(&["labels"]),
    Strategy::of("events.k8s.io", "v1", "Event"),
    Strategy::of("networking.k8s.io", "v1", "Ingress").counts_generations().status(r#"{"loadBalancer":{}}"#),
    Strategy::of("networking.k8s.io", "v1", "IngressClass").counts_generations(),
    Strategy::of("networking.k8s.io", "v1", "NetworkPolicy").counts_generations(),
    Strategy::of("policy", "v1", "PodDisruptionBudget").counts_generations().status("{}"),
    Strategy::of("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    Strategy::of("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    Strategy::of("rbac.authorization.k8s.io", "v1", "Role"),
    Strategy::of("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    Strategy::of("scheduling.k8s.io", "v1", "PriorityClass"),
    Strategy::of("storage.k8s.io", "v1", "CSIDriver").returns_deleted().counts_generations(),
    Strategy::of("storage.k8s.io", "v1", "CSINode").returns_deleted(),
    Strategy::of("storage.k8s.io", "v1", "StorageClass").returns_deleted(),
    Strategy::of("storage.k8s.io", "v1", "VolumeAttachment")
        .returns_deleted()
        .status_keeps(&CLIENT_METADATA)
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
            counts_generations: false,
            returns_deleted: false,
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
    const fn default_status(self, initial: &'static str) -> Self {
        Self { accepts_initial_status: true, ..self.status(initial) }
    }

    const fn counts_generations(self) -> Self {
        Self { counts_generations: true, ..self }
    }

    const fn counted_metadata(self, counted_metadata: &'static [&'static str]) -> Self {
        Self { counted_metadata, ..self }
    }

    const fn status_keeps(self, status_keeps: &'static [&'static str]) -> Self {
        Self { status_keeps, ..self }
    }

    const fn returns_deleted(self) -> Self {
        Self { returns_deleted: true, ..self }
    }

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
        kind.counts_generations = self.counts_generations;
        kind.counted_metadata = self.counted_metadata;
        kind.status_keeps = self.status_keeps;
        kind.returns_deleted = self.returns_deleted;
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
    fn each_strategy_has_published_facts() {
        assert_eq!(kinds().count(), STRATEGIES.len());
    }
}
