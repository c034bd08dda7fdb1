//! [`JsonPath`]: paths of printer columns, such as
//! `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Only the part of Kubernetes' JSON paths that custom resource definitions use is supported:
//! fields with escaped or quoted dots, indexes, `[*]`, and filters for equality.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    Each,
    /// The list elements whose value at the path, formatted as text, is this string.
    Where(JsonPath, String),
}

impl JsonPath {
    /// Returns `None` if a bracket is not closed or its content is unsupported. Other unsupported
    /// syntax counts as a field name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (step, after) = match rest.strip_prefix('[') {
                Some(inside) => {
                    let end = closing_bracket(inside)?;
                    (parse_bracket(&inside[..end])?, &inside[end + 1..])
                }
                None => parse_field(rest.strip_prefix('.').unwrap_or(rest)),
            };
            // An empty field, as in `.` or `..name`, selects the value itself.
            if step != Step::Field(String::new()) {
                steps.push(step);
            }
            rest = after;
        }
        Some(Self(steps))
    }

    /// Returns the first value at the path.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        find(&self.0, value)
    }
}

fn find<'v>(steps: &[Step], value: &'v Value) -> Option<&'v Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    match step {
        Step::Field(name) => find(rest, value.get(name)?),
        Step::Index(index) => find(rest, value.get(index)?),
        Step::Each => value.as_array()?.iter().find_map(|element| find(rest, element)),
        Step::Where(path, wanted) => {
            let is_wanted =
                |element: &&Value| path.find(element).is_some_and(|found| text_of(found) == *wanted);
            value.as_array()?.iter().filter(is_wanted).find_map(|element| find(rest, element))
        }
    }
}

/// Formats a value as text: a string without quotes, any other value as JSON.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the field at the start of `text`, and the remaining text.
fn parse_field(text: &str) -> (Step, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '.' | '[' => return (Step::Field(name), &text[at..]),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            other => name.push(other),
        }
    }
    (Step::Field(name), "")
}

/// Returns the position of the matching closing bracket. `text` begins after the opening bracket.
fn closing_bracket(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn parse_bracket(inside: &str) -> Option<Step> {
    if inside == "*" {
        return Some(Step::Each);
    }
    if let Some(name) = unquoted(inside) {
        return Some(Step::Field(name.to_owned()));
    }
    let Some(filter) = inside.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) else {
        return inside.parse().ok().map(Step::Index);
    };
    let (path, wanted) = filter.split_once("==")?;
    let path = JsonPath::parse(path.trim().strip_prefix('@')?)?;
    let wanted = wanted.trim();
    Some(Step::Where(path, unquoted(wanted).unwrap_or(wanted).to_owned()))
}

fn unquoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

#[cfg(test)]
mod tests {
    //! Tests of paths.

    use serde_json::{Value, json};

    use super::JsonPath;

    #[test]
    fn json_path_finds_values_of_printer_columns() {
        let object = json!({
            "metadata": { "labels": { "example.com/tier": "front" } },
            "spec": { "replicas": 3, "images": [{ "name": "a" }, { "name": "b" }] },
            "status": { "conditions": [{ "type": "Other", "status": "x" }, { "type": "Ready", "status": "True" }] },
        });
        let cases: [(&str, Value); 7] = [
            (".spec.replicas", 3.into()),
            ("spec.replicas", 3.into()),
            (".spec.images[1].name", "b".into()),
            (".spec.images[*].name", "a".into()),
            (r".metadata.labels.example\.com/tier", "front".into()),
            (".metadata.labels['example.com/tier']", "front".into()),
            (r#".status.conditions[?(@.type=="Ready")].status"#, "True".into()),
        ];
        for (path, expected) in cases {
            assert_eq!(JsonPath::parse(path).expect(path).find(&object), Some(&expected), "{path}");
        }
        assert_eq!(JsonPath::parse(".spec.none.deeper").unwrap().find(&object), None);
        assert_eq!(JsonPath::parse(".spec[?(@.a<3)]"), None, "unsupported filter");
    }

    #[test]
    fn path_of_a_million_dots_selects_the_whole_object() {
        let object = json!({ "kind": "Widget" });
        assert_eq!(JsonPath::parse(&".".repeat(1_000_000)).unwrap().find(&object), Some(&object));
    }
}
