//! [`Coverage`]: decides from an object's metadata whether a source can list or watch the object.
//!
//! A program that waits until an informer has a written object stops waiting if `Coverage` excludes
//! the object. So `Coverage` excludes an object only if the source certainly cannot list it.

use std::collections::BTreeMap;

use informer_core::parse_selector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{Selector, SelectorExt};

/// The namespace and the selectors of a source. Of the field selector, only requirements on name
/// and namespace are compared, and none if the selector has a backslash.
#[derive(Debug, Clone, Default)]
pub(super) struct Coverage {
    namespace: Option<String>,
    labels: Selector,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone)]
struct FieldRequirement {
    /// Returns the field of an object that is compared with `value`.
    field: fn(&ObjectMeta) -> &Option<String>,
    value: String,
    equal: bool,
}

impl Coverage {
    pub(super) fn in_namespace(&self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self.clone() }
    }

    pub(super) fn new(namespace: Option<&str>) -> Self {
        Self { namespace: namespace.map(str::to_owned), ..Self::default() }
    }

    /// Sets the label selector. If the selector can't be parsed, no object is excluded because of
    /// its labels.
    pub(super) fn set_label_selector(&mut self, selector: &str) {
        // The server rejects an invalid selector, but accepts valid ones with `>` or `<`, which
        // can't be parsed here.
        self.labels = parse_selector(selector).unwrap_or_default();
    }

    pub(super) fn set_field_selector(&mut self, selector: &str) {
        // A backslash can escape a comma, so a selector with one can't be split at its commas.
        let selector = if selector.contains('\\') { "" } else { selector };
        self.fields = selector.split(',').filter_map(FieldRequirement::parse).collect();
    }

    pub(super) fn includes(&self, object: &ObjectMeta) -> bool {
        let no_labels = BTreeMap::new();
        self.namespace.as_deref().is_none_or(|namespace| object.namespace.as_deref() == Some(namespace))
            && self.labels.matches(object.labels.as_ref().unwrap_or(&no_labels))
            && self.fields.iter().all(|field| field.matches(object))
    }
}

impl FieldRequirement {
    /// Parses one requirement of a field selector. Returns `None` if it has no operator, or is not
    /// about name or namespace.
    fn parse(text: &str) -> Option<Self> {
        let (field, value, equal) = if let Some((field, value)) = text.split_once("!=") {
            (field, value, false)
        } else {
            let (field, value) = text.split_once("==").or_else(|| text.split_once('='))?;
            (field, value, true)
        };
        let field: fn(&ObjectMeta) -> &Option<String> = match field {
            "metadata.name" => |object| &object.name,
            "metadata.namespace" => |object| &object.namespace,
            _ => return None,
        };
        Some(Self { field, value: value.to_owned(), equal })
    }

    fn matches(&self, object: &ObjectMeta) -> bool {
        ((self.field)(object).as_deref().unwrap_or_default() == self.value) == self.equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(namespace: &str, name: &str, app: &str) -> ObjectMeta {
        ObjectMeta {
            namespace: Some(namespace.into()),
            name: Some(name.into()),
            labels: Some([("app".to_owned(), app.to_owned())].into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn an_object_is_covered_if_namespace_labels_and_name_match() {
        let table = [
            (None, "", "", true),
            (Some("shop"), "", "", true),
            (Some("else"), "", "", false),
            (None, "app=web", "", true),
            (None, "app in (db),tier", "", false),
            (None, "app!=web", "", false),
            (None, "", "metadata.name=a", true),
            (None, "", "metadata.name==b", false),
            (None, "", "metadata.name!=a", false),
            // A server does not remove blanks.
            (None, "", "metadata.name!= a", true),
            (None, "", "metadata.namespace=else", false),
            (Some("shop"), "app=web", "spec.nodeName=n1,metadata.namespace!=else", true),
        ];
        for (namespace, labels, fields, expected) in table {
            let mut coverage = Coverage::new(namespace);
            coverage.set_label_selector(labels);
            coverage.set_field_selector(fields);
            let covered = coverage.includes(&object("shop", "a", "web"));
            assert_eq!(covered, expected, "{namespace:?} {labels:?} {fields:?}");
        }
    }

    #[test]
    fn unparsable_selector_covers_everything() {
        let mut coverage = Coverage::default();
        coverage.set_label_selector("app>>5");
        coverage.set_field_selector("status.phase=Running,nonsense");
        assert!(coverage.includes(&ObjectMeta::default()));
        coverage.set_field_selector(r"metadata.name=a\,b");
        assert!(coverage.includes(&ObjectMeta { name: Some("a,b".into()), ..ObjectMeta::default() }));
    }
}
