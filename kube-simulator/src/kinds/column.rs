//! [`Column`]: the definition of one column of a table, as `kubectl get` prints it.

/// The description of `metadata.creationTimestamp` in Kubernetes.
const CREATION_TIMESTAMP: &str = "\
    CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to \
    be set in happens-before order across separate operations. Clients may not set this value. It is represented in \
    RFC3339 form and is in UTC.\n\n\
    Populated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The definition of a table column. The HTTP layer computes the cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`. The type in a custom resource definition
    /// is not checked.
    pub(crate) type_name: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// Above 0 for columns that only `kubectl get -o wide` shows.
    pub(crate) priority: i64,
    /// The path of the value in a custom resource, such as `.spec.replicas`.
    pub(crate) json_path: Option<String>,
}

impl Column {
    pub(crate) fn new(name: &str, type_name: &str) -> Self {
        let is_name = name == "Name";
        let description = if is_name { "Name must be unique within a namespace." } else { "" };
        Self {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            format: if is_name { "name" } else { "" }.to_owned(),
            description: description.to_owned(),
            priority: 0,
            json_path: None,
        }
    }

    /// Returns the default columns, for custom resources that define no columns.
    pub(crate) fn name_and_age() -> Vec<Self> {
        let age = Self { description: CREATION_TIMESTAMP.to_owned(), ..Self::new("Age", "date") };
        vec![Self::new("Name", "string"), age]
    }
}
