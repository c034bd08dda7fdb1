//! The built-in kinds of Kubernetes that the simulator can serve, as a table.
//!
//! A row says what clients can observe: names, scope, whether there is a status subresource, whether generations
//! are counted, whether a delete returns the object, and which fields selectors may name.

use crate::resource::ResourceKind;

/// Lists the built-in kinds.
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
    fields: &'static [&'static str],
    initial_status: Option<&'static str>,
}

const TABLE: &[BuiltIn] = &[
    namespaced("", "v1", "ConfigMap", "configmaps"),
    namespaced("", "v1", "Endpoints", "endpoints"),
    namespaced("", "v1", "Event", "events").fields(EVENT_FIELDS),
    namespaced("", "v1", "LimitRange", "limitranges"),
    cluster("", "v1", "Namespace", "namespaces").fields(&["status.phase"]).status(r#"{"phase":"Active"}"#),
    cluster("", "v1", "Node", "nodes").fields(&["spec.unschedulable"]).status("{}"),
    cluster("", "v1", "PersistentVolume", "persistentvolumes").returned().status(r#"{"phase":"Pending"}"#),
    namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
        .returned()
        .status(r#"{"phase":"Pending"}"#),
    namespaced("", "v1", "Pod", "pods").returned().generations().fields(POD_FIELDS).status(NEW_POD),
    namespaced("", "v1", "PodTemplate", "podtemplates").returned().generations(),
    namespaced("", "v1", "ReplicationController", "replicationcontrollers")
        .generations()
        .fields(&["status.replicas"])
        .status(r#"{"replicas":0}"#),
    namespaced("", "v1", "ResourceQuota", "resourcequotas").returned().status("{}"),
    namespaced("", "v1", "Secret", "secrets").fields(&["type"]),
    namespaced("", "v1", "Service", "services")
        .returned()
        .fields(&["spec.clusterIP", "spec.type"])
        .status(r#"{"loadBalancer":{}}"#),
    namespaced("", "v1", "ServiceAccount", "serviceaccounts").returned(),
    cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
        .generations()
        .status("{}"),
    namespaced("apps", "v1", "ControllerRevision", "controllerrevisions"),
    namespaced("apps", "v1", "DaemonSet", "daemonsets").generations().status("{}"),
    namespaced("apps", "v1", "Deployment", "deployments").generations().status("{}"),
    namespaced("apps", "v1", "ReplicaSet", "replicasets").generations().status(r#"{"replicas":0}"#),
    namespaced("apps", "v1", "StatefulSet", "statefulsets").generations().status(r#"{"replicas":0}"#),
    namespaced("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers").status("{}"),
    namespaced("batch", "v1", "CronJob", "cronjobs").generations().status("{}"),
    namespaced("batch", "v1", "Job", "jobs").generations().fields(&["status.successful"]).status("{}"),
    namespaced("coordination.k8s.io", "v1", "Lease", "leases"),
    namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices").generations(),
    namespaced("events.k8s.io", "v1", "Event", "events").fields(&["reason", "reportingController", "type"]),
    namespaced("networking.k8s.io", "v1", "Ingress", "ingresses")
        .generations()
        .status(r#"{"loadBalancer":{}}"#),
    cluster("networking.k8s.io", "v1", "IngressClass", "ingressclasses").generations(),
    namespaced("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies").generations(),
    namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets").generations().status("{}"),
    cluster("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    cluster("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
    namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    cluster("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses").generations(),
    cluster("storage.k8s.io", "v1", "CSIDriver", "csidrivers").returned(),
    cluster("storage.k8s.io", "v1", "CSINode", "csinodes").returned(),
    cluster("storage.k8s.io", "v1", "StorageClass", "storageclasses").returned(),
    cluster("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments").returned().status("{}"),
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
        fields: &[],
        initial_status: None,
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

impl BuiltIn {
    /// Serves `/status` and gives new objects this status.
    const fn status(self, initial: &'static str) -> Self {
        Self { status: true, initial_status: Some(initial), ..self }
    }

    const fn generations(self) -> Self {
        Self { generations: true, ..self }
    }

    const fn returned(self) -> Self {
        Self { returned: true, ..self }
    }

    const fn fields(self, fields: &'static [&'static str]) -> Self {
        Self { fields, ..self }
    }

    fn describe(&self) -> ResourceKind {
        let mut kind = ResourceKind::namespaced(self.group, self.version, self.kind, self.plural);
        kind.namespaced = self.namespaced;
        kind.status_subresource = self.status;
        kind.selectable_fields = self.fields.iter().map(ToString::to_string).collect();
        kind.counts_generations = self.generations;
        kind.returns_deleted = self.returned;
        kind.initial_status = self.initial_status;
        kind
    }
}
