//! [`Column`]: the definition of one column of a table, as `kubectl get` prints it.

/// The definition of a table column. The HTTP layer computes the cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
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
        vec![Self::new("Name", "string"), Self::new("Age", "string")]
    }
}
