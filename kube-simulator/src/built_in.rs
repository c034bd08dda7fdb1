//! The table of built-in kinds that the simulator can serve.
//!
//! A row contains what clients can observe: names, scope, the status subresource, generations, the answer to a
//! delete, and the selectable fields with their sources.

use crate::resource::{FieldSource, ResourceKind, Scale};
use crate::shape::columns;

pub(crate) fn kinds() -> impl Iterator<Item = ResourceKind> {
    TABLE.iter().map(BuiltIn::describe)
}

/// One row; see [`ResourceKind`] for the meaning of the columns.
struct BuiltIn {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    status: bool,
    generations: bool,
    returned: bool,
    counted_metadata: &'static [&'static str],
    status_keeps: &'static [&'static str],
    fields: &'static [&'static str],
    sources: &'static [FieldSource],
    initial_status: Option<&'static str>,
    accepts_initial_status: bool,
    short_names: &'static [&'static str],
    category: Option<&'static str>,
    scaled: bool,
}

const TABLE: &[BuiltIn] = &[
    namespaced("", "v1", "ConfigMap", "configmaps").short(&["cm"]),
    namespaced("", "v1", "Endpoints", "endpoints").short(&["ep"]),
    namespaced("", "v1", "Event", "events").short(&["ev"]).fields(EVENT_FIELDS).sources(&[field(
        "source",
        &["source.component", "reportingComponent"],
        "",
    )]),
    namespaced("", "v1", "LimitRange", "limitranges").short(&["limits"]),
    cluster("", "v1", "Namespace", "namespaces")
        .short(&["ns"])
        .fields(&["status.phase"])
        .status(r#"{"phase":"Active"}"#),
    cluster("", "v1", "Node", "nodes")
        .short(&["no"])
        .fields(&["spec.unschedulable"])
        .sources(&[field("spec.unschedulable", &["spec.unschedulable"], "false")])
        .first_status("{}"),
    cluster("", "v1", "PersistentVolume", "persistentvolumes")
        .short(&["pv"])
        .returned()
        .status(r#"{"phase":"Pending"}"#),
    namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
        .short(&["pvc"])
        .returned()
        .status(r#"{"phase":"Pending"}"#),
    namespaced("", "v1", "Pod", "pods")
        .short(&["po"])
        .category("all")
        .returned()
        .generations()
        .fields(POD_FIELDS)
        .sources(&[field("spec.hostNetwork", &["spec.hostNetwork"], "false")])
        .status(NEW_POD),
    namespaced("", "v1", "PodTemplate", "podtemplates").returned().generations(),
    namespaced("", "v1", "ReplicationController", "replicationcontrollers")
        .short(&["rc"])
        .category("all")
        .scaled()
        .generations()
        .fields(&["status.replicas"])
        .sources(&[field("status.replicas", &["status.replicas"], "0")])
        .status(r#"{"replicas":0}"#),
    namespaced("", "v1", "ResourceQuota", "resourcequotas").short(&["quota"]).returned().status("{}"),
    namespaced("", "v1", "Secret", "secrets").fields(&["type"]),
    namespaced("", "v1", "Service", "services")
        .short(&["svc"])
        .category("all")
        .returned()
        .fields(&["spec.clusterIP", "spec.type"])
        .status(r#"{"loadBalancer":{}}"#),
    namespaced("", "v1", "ServiceAccount", "serviceaccounts").short(&["sa"]).returned(),
    cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
        .short(&["crd", "crds"])
        .category("api-extensions")
        .generations()
        .status("{}"),
    namespaced("apps", "v1", "ControllerRevision", "controllerrevisions"),
    namespaced("apps", "v1", "DaemonSet", "daemonsets")
        .short(&["ds"])
        .category("all")
        .generations()
        .status("{}"),
    namespaced("apps", "v1", "Deployment", "deployments")
        .short(&["deploy"])
        .category("all")
        .scaled()
        .generations()
        // Annotations are copied to the replica sets.
        .counted(&["annotations"])
        .status_keeps(&["labels"])
        .status("{}"),
    namespaced("apps", "v1", "ReplicaSet", "replicasets")
        .short(&["rs"])
        .category("all")
        .scaled()
        .generations()
        .status(r#"{"replicas":0}"#),
    namespaced("apps", "v1", "StatefulSet", "statefulsets")
        .short(&["sts"])
        .category("all")
        .scaled()
        .generations()
        .status(r#"{"replicas":0}"#),
    namespaced("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
        .short(&["hpa"])
        .category("all")
        .status("{}"),
    namespaced("batch", "v1", "CronJob", "cronjobs")
        .short(&["cj"])
        .category("all")
        .generations()
        .status("{}"),
    namespaced("batch", "v1", "Job", "jobs")
        .category("all")
        .generations()
        .fields(&["status.successful"])
        .sources(&[field("status.successful", &["status.succeeded"], "0")])
        .status("{}"),
    namespaced("coordination.k8s.io", "v1", "Lease", "leases"),
    namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
        .generations()
        .counted(&["labels"]),
    namespaced("events.k8s.io", "v1", "Event", "events").short(&["ev"]).fields(&[
        "reason",
        "regarding.apiVersion",
        "regarding.fieldPath",
        "regarding.kind",
        "regarding.name",
        "regarding.namespace",
        "regarding.resourceVersion",
        "regarding.uid",
        "reportingController",
        "type",
    ]),
    namespaced("networking.k8s.io", "v1", "Ingress", "ingresses")
        .short(&["ing"])
        .generations()
        .status(r#"{"loadBalancer":{}}"#),
    cluster("networking.k8s.io", "v1", "IngressClass", "ingressclasses").generations(),
    namespaced("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
        .short(&["netpol"])
        .generations(),
    namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
        .short(&["pdb"])
        .generations()
        .status("{}"),
    cluster("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    cluster("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
    namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    cluster("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses").short(&["pc"]).generations(),
    cluster("storage.k8s.io", "v1", "CSIDriver", "csidrivers").returned(),
    cluster("storage.k8s.io", "v1", "CSINode", "csinodes").returned(),
    cluster("storage.k8s.io", "v1", "StorageClass", "storageclasses").short(&["sc"]).returned(),
    cluster("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments")
        .returned()
        .status_keeps(&["labels", "annotations"])
        .status("{}"),
];

const NEW_POD: &str = r#"{"phase":"Pending","qosClass":"BestEffort"}"#;

const POD_FIELDS: &[&str] = &[
    "spec.hostNetwork",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
];

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

const fn namespaced(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> BuiltIn {
    BuiltIn {
        group,
        version,
        kind,
        plural,
        namespaced: true,
        status: false,
        generations: false,
        returned: false,
        counted_metadata: &[],
        status_keeps: &[],
        fields: &[],
        sources: &[],
        initial_status: None,
        accepts_initial_status: false,
        short_names: &[],
        category: None,
        scaled: false,
    }
}

const fn cluster(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> BuiltIn {
    BuiltIn { namespaced: false, ..namespaced(group, version, kind, plural) }
}

const fn field(field: &'static str, paths: &'static [&'static str], otherwise: &'static str) -> FieldSource {
    FieldSource { field, paths, otherwise }
}

/// Returns the fields of `/scale`, which are the same for all built-in kinds.
fn scale() -> Scale {
    Scale {
        spec_replicas: "spec.replicas".to_owned(),
        status_replicas: "status.replicas".to_owned(),
        selector: Some("spec.selector".to_owned()),
    }
}

impl BuiltIn {
    /// Serves `/status`, and sets the status of new objects.
    const fn status(self, initial: &'static str) -> Self {
        Self { status: true, initial_status: Some(initial), ..self }
    }

    /// Like [`status`](Self::status), unless the client sends a status.
    const fn first_status(self, initial: &'static str) -> Self {
        Self { accepts_initial_status: true, ..self.status(initial) }
    }

    const fn generations(self) -> Self {
        Self { generations: true, ..self }
    }

    /// Also counts changes of these parts of the metadata in the generation.
    const fn counted(self, counted_metadata: &'static [&'static str]) -> Self {
        Self { counted_metadata, ..self }
    }

    /// Sets the parts of the metadata that writes of the status do not change.
    const fn status_keeps(self, status_keeps: &'static [&'static str]) -> Self {
        Self { status_keeps, ..self }
    }

    const fn returned(self) -> Self {
        Self { returned: true, ..self }
    }

    const fn fields(self, fields: &'static [&'static str]) -> Self {
        Self { fields, ..self }
    }

    /// Sets the sources of selectable fields that are not at the path of the same name.
    const fn sources(self, sources: &'static [FieldSource]) -> Self {
        Self { sources, ..self }
    }

    const fn short(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    const fn category(self, category: &'static str) -> Self {
        Self { category: Some(category), ..self }
    }

    /// Serves `/scale`.
    const fn scaled(self) -> Self {
        Self { scaled: true, ..self }
    }

    fn describe(&self) -> ResourceKind {
        let mut kind = ResourceKind::namespaced(self.group, self.version, self.kind, self.plural);
        kind.namespaced = self.namespaced;
        kind.status_subresource = self.status;
        kind.selectable_fields = self.fields.iter().map(ToString::to_string).collect();
        kind.sources = self.sources;
        kind.counts_generations = self.generations;
        kind.counted_metadata = self.counted_metadata;
        kind.status_keeps = self.status_keeps;
        kind.returns_deleted = self.returned;
        kind.initial_status = self.initial_status;
        kind.accepts_initial_status = self.accepts_initial_status;
        kind.short_names = self.short_names.iter().map(ToString::to_string).collect();
        kind.categories = self.category.iter().map(ToString::to_string).collect();
        kind.scale = self.scaled.then(scale);
        kind.columns = columns::of(self.group, self.kind);
        kind
    }
}
