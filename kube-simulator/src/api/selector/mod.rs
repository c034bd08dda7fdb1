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
        let is_in_scope =
            self.namespace.as_deref().is_none_or(|namespace| object.namespace() == Some(namespace));
        is_in_scope && self.selects_object(object)
    }

    /// Returns whether a watch of etcd reads this object. Such a watch reads one key, one namespace
    /// or all namespaces. The server evaluates all other requirements afterwards.
    ///
    /// Counterpart: `WatchPredicate` in `k8s.io/apiserver/pkg/registry/generic/registry`.
    pub(crate) fn is_read_from_etcd(&self, object: &Object) -> bool {
        let (name, in_selector) = self.fields.required_key();
        let namespace = self.namespace.as_deref().or(in_selector);
        // Without a namespace, the server cannot compute the key of a namespaced object.
        let name = name.filter(|_| namespace.is_some() || object.namespace().is_none());
        namespace.is_none_or(|namespace| object.namespace() == Some(namespace))
            && name.is_none_or(|name| object.name() == name)
    }

    /// Returns whether the selectors match an object. Ignores the namespace of the request.
    pub(crate) fn selects_object(&self, object: &Object) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }

    /// Returns the prefix of the storage keys in scope.
    pub(crate) fn key_prefix(&self) -> String {
        self.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"))
    }
}
