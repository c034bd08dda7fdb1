//! The scope of a list or watch: one namespace or all, a label selector and a field selector.

mod field;
mod label;
mod label_text;

use crate::api::catalogue::Served;
use crate::api::status::{self, Refusal};
use crate::kinds::ResourceKind;
use crate::storage::Object;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;

#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    /// Parses the selectors of a request. An empty string selects everything.
    pub(crate) fn parse(
        served: &Served,
        namespace: Option<&str>,
        label_selector: &str,
        field_selector: &str,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            labels: LabelSelector::parse(label_selector).map_err(status::bad_request)?,
            fields: FieldSelector::parse(served, field_selector).map_err(status::bad_request)?,
        })
    }

    pub(crate) fn has_selectors(&self) -> bool {
        !(self.labels.is_everything() && self.fields.is_everything())
    }

    pub(crate) fn requires_one_value(&self, kind: &ResourceKind, field: &str) -> bool {
        self.fields.requires_one_value(kind, field)
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.is_in_scope(object) && self.selects_object(object)
    }

    pub(crate) fn is_in_scope(&self, object: &Object) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| object.namespace() == Some(namespace))
    }

    /// Returns whether the selectors match an object, whatever its namespace.
    pub(crate) fn selects_object(&self, object: &Object) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }

    /// Returns the prefix of the storage keys in scope.
    pub(crate) fn key_prefix(&self) -> String {
        self.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"))
    }
}
