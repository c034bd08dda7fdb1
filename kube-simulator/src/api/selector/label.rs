//! Label selectors, such as `app=web,tier in (front, back),!legacy`.

use super::label_text;
use crate::storage::Object;

/// A conjunction of requirements. Without requirements, it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// The requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    pub(super) label: String,
    pub(super) test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    /// Also matches objects without the label.
    NotIn(Vec<String>),
    /// Matches only integer values.
    GreaterThan(i64),
    LessThan(i64),
}

impl LabelSelector {
    /// Parses a selector. The error is the message for the client.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { requirements: label_text::parse(text)? })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(object.label(&requirement.label)))
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let is_one_of = |values: &[String]| value.is_some_and(|value| values.iter().any(|v| v == value));
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
            Test::In(values) => is_one_of(values),
            Test::NotIn(values) => !is_one_of(values),
            Test::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Test::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Selected objects and invalid selectors.

    use serde_json::{Map, json};

    use super::LabelSelector;
    use crate::kinds::ResourceKind;
    use crate::storage::Object;

    fn selects(selector: &str, labels: &serde_json::Value) -> bool {
        let kind = ResourceKind::namespaced("", "v1", "Pod", "pods");
        let value = Map::from_iter([("metadata".to_owned(), json!({ "labels": labels }))]);
        let object = Object::encode(&kind, "a/b".to_owned(), value, 1);
        LabelSelector::parse(selector).expect("selector").matches(&object)
    }

    #[test]
    fn each_operator_selects_as_in_kubernetes() {
        let web = json!({"app": "web", "tier": "front", "level": "7"});
        for selector in [
            "",
            "app=web",
            "app==web",
            "app != db",
            "app,tier",
            "!gone",
            "app in (db, web),tier notin (back)",
            "level>6,level<10",
        ] {
            assert!(selects(selector, &web), "{selector}");
        }
        for selector in [
            "app=db",
            "app!=web",
            "!app",
            "gone",
            "gone=x",
            "app notin (web)",
            "app in (db),tier=front",
            "level>7",
            "app<8",
        ] {
            assert!(!selects(selector, &web), "{selector}");
        }
    }

    #[test]
    fn inequality_and_notin_hold_for_objects_without_the_label() {
        assert!(selects("gone!=x", &json!({})));
        assert!(selects("gone notin (x)", &json!({})));
    }

    #[test]
    fn malformed_selectors_are_refused() {
        for selector in ["a b", "a in x", "a in (x", "=x", "a=b=c", "a in (x)y", "!", "a>b", "a,"] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
