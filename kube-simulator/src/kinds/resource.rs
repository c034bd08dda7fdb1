//! [`ResourceKind`]: the description of a resource: its names, its scope, and how the server treats
//! its objects.

use std::any::TypeId;
use std::sync::Arc;

use kube::core::NamespaceResourceScope;
use serde_json::Value;

use super::built_in;
use super::column::Column;
use super::facts::Facts;
use super::merging;

/// A kind of resource that the simulator serves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceKind {
    /// The API group, empty for the core group.
    pub group: String,
    /// The API version within the group, such as `v1`.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
    /// The plural name in URLs, such as `pods`.
    pub plural: String,
    /// Whether each object belongs to a namespace.
    pub namespaced: bool,
    /// Whether `/status` is served. If so, a client's updates and patches of the object do not
    /// change its status.
    pub status_subresource: bool,
    /// The field paths for field selectors, besides `metadata.name` and `metadata.namespace`.
    pub selectable_fields: Vec<String>,
    /// The singular name in discovery, such as `pod`. Default: the kind in lower case.
    pub singular: String,
    /// Short names for `kubectl`, such as `po`.
    pub short_names: Vec<String>,
    /// The categories of the resource, such as `all`, which `kubectl get all` uses.
    pub categories: Vec<String>,
    /// The kind of lists. `None` means the kind with the suffix `List`.
    pub(crate) list_kind: Option<String>,
    pub(crate) scale: Option<Scale>,
    /// The names, verbs, subresources, selectable fields and table columns of the kind on a real
    /// API server. Only kinds of [`built_in::kinds`] and version 1 of the autoscaler have facts.
    pub(crate) facts: Option<&'static Facts>,
    pub(crate) columns: Vec<Column>,
    /// The structural schema of a custom resource.
    pub(crate) schema: Option<Arc<Value>>,
    /// Whether a client's updates and patches increase `metadata.generation` when they change a
    /// field outside `metadata` and `status`, such as `spec`.
    pub(crate) counts_generations: bool,
    /// The metadata fields whose changes also increase the generation, except through `/status`.
    pub(crate) counted_metadata: &'static [&'static str],
    /// The metadata fields that a write to `/status` does not change, such as `labels`. Contains
    /// only fields of [`CLIENT_METADATA`].
    pub(crate) status_keeps: &'static [&'static str],
    pub(crate) sources: &'static [FieldSource],
    /// Whether a delete returns the deleted object instead of a `Status`.
    pub(crate) returns_deleted: bool,
    /// The initial status of new objects if the kind has `/status`, as JSON.
    pub(crate) initial_status: Option<&'static str>,
    /// Whether a client can set the status of a new object although the kind has `/status`.
    pub(crate) accepts_initial_status: bool,
}

/// The metadata fields that writes to `/status` can change, depending on the kind. For all kinds,
/// these writes can also change `managedFields`.
pub(crate) const CLIENT_METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// The fields that `/scale` reads and writes, as dotted paths such as `spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    /// The path of the pod selector. `None` if `/scale` shows no selector. In the object, the
    /// selector can be a string, a `LabelSelector` or a map of labels.
    pub(crate) selector: Option<String>,
}

impl Scale {
    pub(crate) fn of_built_in() -> Self {
        Self {
            spec_replicas: "spec.replicas".to_owned(),
            status_replicas: "status.replicas".to_owned(),
            selector: Some("spec.selector".to_owned()),
        }
    }
}

/// The rule for reading one selectable field from an object. Without a rule, the name of the field
/// is also its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldSource {
    pub(crate) field: &'static str,
    /// The dotted paths of the value. The first path that has a value applies.
    pub(crate) paths: &'static [&'static str],
    /// The value if none of `paths` has one: the zero value in Go, such as `false` or `0`.
    pub(crate) otherwise: &'static str,
}

impl ResourceKind {
    /// Describes a namespaced custom resource with a status subresource.
    #[must_use]
    pub fn namespaced(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            status_subresource: true,
            selectable_fields: Vec::new(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            list_kind: None,
            scale: None,
            facts: None,
            columns: Column::name_and_age(),
            schema: None,
            counts_generations: true,
            counted_metadata: &[],
            status_keeps: &CLIENT_METADATA,
            sources: &[],
            returns_deleted: false,
            initial_status: None,
            accepts_initial_status: false,
        }
    }

    /// Describes a cluster-scoped custom resource with a status subresource.
    #[must_use]
    pub fn cluster_scoped(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self { namespaced: false, ..Self::namespaced(group, version, kind, plural) }
    }

    /// Describes the resource of a Rust type.
    ///
    /// For one of the [built-in kinds](crate::SimulatorBuilder::built_in_kinds), the description
    /// includes the rules of a real server for that kind (selectable fields, initial status and so
    /// on). Any other type is described like a custom resource, with the scope of
    /// [`kube::Resource::Scope`].
    #[must_use]
    pub fn of<K>() -> Self
    where
        K: kube::Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        let (group, version, plural) = (K::group(&()), K::version(&()), K::plural(&()));
        let known = built_in::kinds()
            .find(|known| known.group == group && known.version == version && known.plural == plural);
        known.unwrap_or_else(|| Self {
            namespaced: TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
            ..Self::namespaced(&group, &version, &K::kind(&()), &plural)
        })
    }

    /// Adds a field for field selectors, as a dotted path such as `spec.nodeName`.
    #[must_use]
    pub fn selectable_field(mut self, path: &str) -> Self {
        self.selectable_fields.push(path.to_owned());
        self
    }

    /// Adds a short name, such as `po` for pods.
    #[must_use]
    pub fn short_name(mut self, name: &str) -> Self {
        self.short_names.push(name.to_owned());
        self
    }

    /// Serves `/scale`. The arguments are the dotted paths of the wanted and the current number of
    /// replicas, such as `spec.replicas` and `status.replicas`.
    #[must_use]
    pub fn scale_subresource(mut self, spec_replicas: &str, status_replicas: &str) -> Self {
        self.scale = Some(Scale {
            spec_replicas: spec_replicas.to_owned(),
            status_replicas: status_replicas.to_owned(),
            selector: None,
        });
        self
    }

    /// Serves the resource without `/status`, so that updates and patches of the object can change
    /// its status. For a custom resource, the generation then also counts changes of the status.
    #[must_use]
    pub fn without_status_subresource(mut self) -> Self {
        self.status_subresource = false;
        self
    }

    /// Returns the group and version in the form of `apiVersion`, such as `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the kind of lists of the resource, such as `PodList`.
    pub(crate) fn list_kind(&self) -> String {
        self.list_kind.clone().unwrap_or_else(|| format!("{}List", self.kind))
    }

    /// Returns the URL path of the resource over all namespaces, such as `/api/v1/pods`.
    #[must_use]
    pub fn collection_path(&self) -> String {
        format!("/{}/{}", self.group_version_path(), self.plural)
    }

    /// Returns the URL path of group and version, without outer slashes: `api/v1` or
    /// `apis/apps/v1`.
    pub(crate) fn group_version_path(&self) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        format!("{root}/{}", self.api_version())
    }

    /// Returns the plural with its group, as in error messages, such as `deployments.apps`.
    pub(crate) fn qualified_plural(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn is_built_in(&self) -> bool {
        Facts::is_built_in(&self.group)
    }

    /// Returns whether a client's update (PUT) of an existing object must contain
    /// `metadata.resourceVersion`.
    pub(crate) fn needs_version(&self) -> bool {
        let built_in = [
            "customresourcedefinitions",
            "poddisruptionbudgets",
            "csidrivers",
            "csinodes",
            "volumeattachments",
            "leases",
            "runtimeclasses",
        ];
        !self.is_built_in() || built_in.contains(&self.plural.as_str())
    }

    /// Returns whether the server sets `metadata.generation` to 1 in new objects.
    pub(crate) fn has_first_generation(&self) -> bool {
        match (self.group.as_str(), self.plural.as_str()) {
            // Updates never increase the generation of this kind.
            ("scheduling.k8s.io", "priorityclasses") => true,
            // The server sets no generation until the spec first changes.
            ("storage.k8s.io", "csidrivers") => false,
            _ => self.counts_generations,
        }
    }

    /// Returns whether the default propagation policy of the kind is `Orphan`, so that dependants
    /// of a deleted object remain. Kinds with this rule are older than owner references
    /// (`DefaultGarbageCollectionPolicy` in the real server).
    pub(crate) fn orphans_by_default(&self) -> bool {
        let kinds = [("", "replicationcontrollers"), ("batch", "jobs")];
        self.version == "v1" && kinds.contains(&(self.group.as_str(), self.plural.as_str()))
    }

    /// Returns whether an update (PUT) of a missing object creates the object.
    pub(crate) fn is_created_by_update(&self) -> bool {
        match self.group.as_str() {
            "" => ["endpoints", "events", "limitranges", "services"].contains(&self.plural.as_str()),
            "events.k8s.io" | "coordination.k8s.io" | "rbac.authorization.k8s.io" => true,
            "node.k8s.io" => self.plural == "runtimeclasses",
            _ => false,
        }
    }

    /// Returns the server's Go type of the kind, as in error messages, such as `core.Pod`.
    pub(crate) fn go_type(&self) -> String {
        let package = match self.group.split('.').next().unwrap_or_default() {
            _ if !self.is_built_in() => return "unstructured.Unstructured".to_owned(),
            // `events.k8s.io` has no internal types of its own.
            "" | "events" => "core",
            package => package,
        };
        format!("{package}.{}", self.kind)
    }

    /// Returns the schema that determines how lists and maps of the kind are merged.
    pub(crate) fn merging(&self) -> Option<&Value> {
        match &self.schema {
            Some(schema) => Some(schema),
            None => merging::of_kind(&self.api_version(), &self.kind),
        }
    }

    /// Returns the schema that determines how lists and maps in one top-level field are merged.
    pub(crate) fn merging_of(&self, field: &str) -> Option<&Value> {
        match field {
            "metadata" => Some(merging::of_metadata()),
            _ => self.merging()?.get("properties")?.get(field),
        }
    }

    /// Returns whether the watch cache holds the resource. API servers do not cache Event objects,
    /// because there are too many.
    pub(crate) fn is_cached(&self) -> bool {
        !(self.plural == "events" && matches!(self.group.as_str(), "" | "events.k8s.io"))
    }

    /// Returns the field by which the watch cache indexes the watches of the resource, if any.
    /// Watches that select one value of this field can have smaller buffers than others.
    pub(crate) fn trigger_field(&self) -> Option<&'static str> {
        match (self.group.as_str(), self.plural.as_str()) {
            ("", "pods") => Some("spec.nodeName"),
            ("resource.k8s.io", "resourceslices") => Some("spec.nodeName"),
            _ => None,
        }
    }

    /// Returns the storage key of an object: `namespace/name`, or only the name for a
    /// cluster-scoped object.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            Some(namespace) if self.namespaced => format!("{namespace}/{name}"),
            _ => name.to_owned(),
        }
    }

    /// Returns whether names are DNS labels. The names of other kinds can contain dots and be
    /// longer.
    pub(crate) fn is_named_by_label(&self) -> bool {
        self.group.is_empty() && matches!(self.kind.as_str(), "Namespace" | "Service")
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.kind == "Namespace" && self.group.is_empty()
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.kind == "CustomResourceDefinition" && self.group == "apiextensions.k8s.io"
    }

    /// Splits a storage key into namespace and name.
    pub(crate) fn split_key<'k>(&self, key: &'k str) -> (Option<&'k str>, &'k str) {
        match key.split_once('/') {
            Some((namespace, name)) if self.namespaced => (Some(namespace), name),
            _ => (None, key),
        }
    }
}
