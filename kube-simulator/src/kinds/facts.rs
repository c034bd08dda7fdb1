//! [`Facts`]: the names, verbs, subresources, selectable fields and table columns of a built-in
//! kind. They are the same on every API server of one Kubernetes version.

use super::column::Column;
use super::table::TABLE;

/// All verbs that a kind can support, in the order in which discovery lists them. Most kinds
/// support all of these verbs.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The API groups of reviews, such as `TokenReview`. Reviews cannot be listed, so [`TABLE`] does
/// not contain their kinds.
const GROUPS_OF_REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// The facts about one built-in kind: one row of [`TABLE`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) categories: &'static [&'static str],
    pub(crate) verbs: &'static [&'static str],
    /// One string per subresource: name, `apiVersion`, kind and verbs, separated by spaces.
    pub(crate) subresources: &'static [&'static str],
    /// The fields that field selectors can use, besides name and namespace.
    pub(crate) selectable_fields: &'static [&'static str],
    /// The type and name of each column in `kubectl get`, such as `string Ready`. A column such as
    /// `wide string IP` is shown only by `kubectl get -o wide`.
    pub(crate) columns: &'static [&'static str],
}

impl Facts {
    pub(crate) fn find(group: &str, version: &str, kind: &str) -> Option<&'static Self> {
        TABLE.iter().find(|facts| (facts.group, facts.version, facts.kind) == (group, version, kind))
    }

    /// Returns whether an API group belongs to Kubernetes itself.
    pub(crate) fn is_built_in(group: &str) -> bool {
        TABLE.iter().any(|facts| facts.group == group) || GROUPS_OF_REVIEWS.contains(&group)
    }

    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|text| text.split(' ').next() == Some(name))
    }

    /// Returns the columns of the kind's table in `kubectl get`. If the field `columns` is empty,
    /// returns the two columns `Name` and `Created At`.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let shown = if self.columns.is_empty() { &["string Name", "date Created At"] } else { self.columns };
        shown.iter().map(|text| column(text)).collect()
    }
}

fn column(text: &str) -> Column {
    let (priority, text) = text.strip_prefix("wide ").map_or((0, text), |text| (1, text));
    let (type_name, name) = text.split_once(' ').unwrap_or(("string", text));
    Column { priority, ..Column::new(name, type_name) }
}
