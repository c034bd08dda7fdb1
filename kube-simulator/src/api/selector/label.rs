//! Label selectors, such as `app=web,tier in (front, back),!legacy`.

use super::label_text;
use crate::storage::Object;

/// A conjunction of requirements. A selector without requirements selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

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
    /// Matches objects whose label has none of these values, and objects without the label.
    NotIn(Vec<String>),
    /// Matches label values that are integers greater than this number.
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
        self.matches_labels(|label| object.label(label))
    }

    /// Returns whether the selector matches labels. `value_of` returns the value of a label.
    pub(crate) fn matches_labels<'v>(&self, value_of: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(value_of(&requirement.label)))
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
