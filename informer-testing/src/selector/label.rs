//! Label selectors in the text form of the `labelSelector` parameter: `app=web,tier in (front, back),!legacy`.

use crate::object::Object;

/// All requirements must hold; no requirement selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    label: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    /// Also holds for objects without the label.
    NotIn(Vec<String>),
}

impl LabelSelector {
    /// Parses a selector; the error is the message for the client.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let requirements = split_outside_parentheses(text)
            .into_iter()
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| parse_requirement(part).ok_or_else(|| format!("unable to parse requirement: {part}")))
            .collect::<Result<_, _>>()?;
        Ok(Self { requirements })
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
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
            Test::In(values) => is_one_of(values),
            Test::NotIn(values) => !is_one_of(values),
        }
    }
}

/// Splits at commas, except those within the parentheses of a set.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|c| {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        c == ',' && !inside
    })
    .collect()
}

fn parse_requirement(text: &str) -> Option<Requirement> {
    if let Some(label) = text.strip_prefix('!') {
        return requirement(label, Test::Missing);
    }
    if let Some((label, value)) = text.split_once("!=") {
        return requirement(label, Test::NotIn(vec![label_value(value)?]));
    }
    if let Some((label, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return requirement(label, Test::In(vec![label_value(value)?]));
    }
    let Some((label, set)) = text.split_once(char::is_whitespace) else {
        return requirement(text, Test::Exists);
    };
    let set = set.trim_start();
    if let Some(values) = set.strip_prefix("notin") {
        return requirement(label, Test::NotIn(parse_set(values)?));
    }
    requirement(label, Test::In(parse_set(set.strip_prefix("in")?)?))
}

fn requirement(label: &str, test: Test) -> Option<Requirement> {
    let label = label.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    (!label.is_empty() && label.chars().all(plain)).then(|| Requirement { label: label.to_owned(), test })
}

fn parse_set(text: &str) -> Option<Vec<String>> {
    let values = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    values.split(',').map(label_value).collect()
}

fn label_value(text: &str) -> Option<String> {
    let value = text.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    value.chars().all(plain).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    //! What is selected, and what is refused.

    use serde_json::{Map, json};

    use super::LabelSelector;
    use crate::object::Object;
    use crate::resource::ResourceKind;

    fn selects(selector: &str, labels: &serde_json::Value) -> bool {
        let kind = ResourceKind::namespaced("", "v1", "Pod", "pods");
        let value = Map::from_iter([("metadata".to_owned(), json!({ "labels": labels }))]);
        let object = Object::encode(&kind, "a/b".to_owned(), value, 1);
        LabelSelector::parse(selector).expect("selector").matches(&object)
    }

    #[test]
    fn each_operator_selects_as_in_kubernetes() {
        let web = json!({"app": "web", "tier": "front"});
        for selector in [
            "",
            "app=web",
            "app==web",
            "app != db",
            "app,tier",
            "!gone",
            "app in (db, web),tier notin (back)",
        ] {
            assert!(selects(selector, &web), "{selector}");
        }
        for selector in
            ["app=db", "app!=web", "!app", "gone", "gone=x", "app notin (web)", "app in (db),tier=front"]
        {
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
        for selector in ["a b", "a in x", "a in (x", "=x", "a=b=c", "a in (x)y", "!"] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
