//! [`diff`]: the fields in which two states of an object differ, and their values. The values of
//! the fields in a mask are hidden.
//!
//! Elements of a list are matched by their `name` or `type` if these are unique and not masked, for
//! example containers and conditions. Other elements are matched by position.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::mask::{MASKED, Remaining, hide};

/// Maximum number of differences that are shown for one change of an object.
const MAX_DIFFERENCES: usize = 100;
/// Maximum number of characters that are shown of a value that differs.
const MAX_TEXT: usize = 240;
/// The paths of fields that are not compared, because they change with almost every write.
const SKIPPED: [&str; 2] = ["metadata.managedFields", "metadata.resourceVersion"];

/// A field that differs between the old and the new state of an object. A state without the field
/// is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Difference {
    pub(super) path: String,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

pub(super) fn diff(old: &Value, new: &Value, mask: &Remaining<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(old), Some(new), Some(mask), &mut found);
    found
}

/// Compares the old and the new value of the field `path`, and adds their differences to `found`.
///
/// `mask` contains the masked fields inside this field. `None` hides all values of the field.
fn compare(
    path: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    mask: Option<&Remaining<'_>>,
    found: &mut Vec<Difference>,
) {
    if old == new || found.len() == MAX_DIFFERENCES || SKIPPED.contains(&path) {
        return;
    }
    match (old, new, mask) {
        (Some(Value::Object(old)), Some(Value::Object(new)), _) => {
            let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
            for name in names {
                let below = mask.and_then(|mask| mask.below(name));
                compare(&joined(path, name), old.get(name), new.get(name), below.as_ref(), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new)), Some(mask)) => {
            for (name, old, new) in pairs(old, new, mask) {
                compare(&format!("{path}[{name}]"), old, new, Some(mask), found);
            }
        }
        _ => found.push(Difference {
            path: path.to_owned(),
            old: old.map(|old| text(old, mask)),
            new: new.map(|new| text(new, mask)),
        }),
    }
}

fn joined(path: &str, name: &str) -> String {
    match (path, name.contains(['.', '/'])) {
        ("", _) => name.to_owned(),
        (_, true) => format!("{path}[{name}]"),
        (_, false) => format!("{path}.{name}"),
    }
}

/// The name of a list's element in a path, and the old and the new state of the element.
type Pair<'a> = (String, Option<&'a Value>, Option<&'a Value>);

/// Returns the elements of a list in pairs of the old and the new state. Elements are paired by
/// `name`, `type` or position.
fn pairs<'a>(old: &'a [Value], new: &'a [Value], mask: &Remaining<'_>) -> Vec<Pair<'a>> {
    // A masked `name` or `type` is not used, because the path of a difference would show it.
    for name in ["name", "type"].into_iter().filter(|name| mask.below(name).is_some()) {
        if let (Some(old_names), Some(new_names)) = (names(old, name), names(new, name)) {
            let in_old = |name: &str| old_names.iter().position(|other| *other == name).map(|at| &old[at]);
            let in_new = |name: &str| new_names.iter().position(|other| *other == name).map(|at| &new[at]);
            let removed = old_names.iter().filter(|name| !new_names.contains(name));
            let all = new_names.iter().chain(removed);
            return all.map(|name| ((*name).to_owned(), in_old(name), in_new(name))).collect();
        }
    }
    let longest = old.len().max(new.len());
    (0..longest).map(|index| (index.to_string(), old.get(index), new.get(index))).collect()
}

/// Returns the text in the field `name` of each element. Returns `None` if an element lacks this
/// text, or if two elements have the same text.
fn names<'a>(elements: &'a [Value], name: &str) -> Option<Vec<&'a str>> {
    let names: Vec<_> = elements.iter().map(|element| element[name].as_str()).collect::<Option<_>>()?;
    let unique: BTreeSet<_> = names.iter().collect();
    (unique.len() == names.len()).then_some(names)
}

fn text(value: &Value, mask: Option<&Remaining<'_>>) -> String {
    let mut value = value.clone();
    match mask {
        Some(mask) => mask.apply(&mut value),
        None if value.is_object() => hide(&mut value),
        None => return MASKED.to_owned(),
    }
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::mask::Mask;
    use super::*;

    fn lines(old: &Value, new: &Value, mask: &Mask) -> Vec<String> {
        let side = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let differences = diff(old, new, &mask.of(&[old, new], false)).into_iter();
        differences.map(|it| format!("{}: {} > {}", it.path, side(it.old), side(it.new))).collect()
    }

    #[test]
    fn elements_of_lists_are_matched_by_name_or_type() {
        let old = json!({ "conditions": [{ "type": "Ready", "status": "False" }], "args": ["a"] });
        let new = json!({
            "conditions": [{ "type": "Initialized", "status": "True" }, { "type": "Ready", "status": "True" }],
            "args": ["a", "b"], "labels": { "example.com/a": "1" },
        });
        let found = lines(&old, &new, &Mask::default());
        assert_eq!(
            found,
            [
                "args[1]: - > b",
                "conditions[Initialized]: - > {\"status\":\"True\",\"type\":\"Initialized\"}",
                "conditions[Ready].status: False > True",
                "labels: - > {\"example.com/a\":\"1\"}",
            ]
        );
    }

    #[test]
    fn change_of_a_secret_shows_the_entry_and_no_value() {
        let secret = |data: Value| json!({ "kind": "Secret", "data": data });
        let (old, new) = (secret(json!({ "a": "b25l" })), secret(json!({ "a": "dHdv", "b": "dHdv" })));
        let found = lines(&old, &new, &Mask::default());
        assert_eq!(found, [format!("data.a: {MASKED} > {MASKED}"), format!("data.b: - > {MASKED}")]);
        let created = lines(&json!({ "kind": "Secret" }), &new, &Mask::default());
        assert_eq!(created, [format!("data: - > {{\"a\":\"{MASKED}\",\"b\":\"{MASKED}\"}}")]);
    }

    #[test]
    fn masked_list_shows_no_element() {
        let mut mask = Mask::default();
        mask.add("spec.tokens").expect("a path");
        let object = |tokens: Value| json!({ "spec": { "tokens": tokens } });
        let found = lines(&object(json!(["t0p"])), &object(json!(["t0p", "s3cret"])), &mask);
        assert_eq!(found, [format!("spec.tokens: {MASKED} > {MASKED}")]);
    }

    #[test]
    fn masked_name_of_an_element_is_not_in_a_path() {
        let mut mask = Mask::default();
        mask.add("spec.tokens.name").expect("a path");
        let object = |ttl: u32| json!({ "spec": { "tokens": [{ "name": "s3cret", "ttl": ttl }] } });
        assert_eq!(lines(&object(1), &object(2), &mask), ["spec.tokens[0].ttl: 1 > 2"]);
    }

    #[test]
    fn long_values_and_many_differences_are_cut() {
        let long = lines(&json!({ "a": "x".repeat(1000) }), &json!({ "a": "y" }), &Mask::default());
        assert!(long[0].len() < 300, "{}", long[0]);
        let old: Value = (0..500).map(|number| (format!("f{number}"), json!(1))).collect();
        assert_eq!(lines(&old, &json!({}), &Mask::default()).len(), MAX_DIFFERENCES);
    }
}
