//! Formats JSON values as `kubectl get` prints them.

use serde_json::Value;

use crate::api::writes::selector_text;

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

pub(super) fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the value, or `otherwise` if the value is null or an empty string.
pub(super) fn text_or(value: &Value, otherwise: &str) -> Value {
    if value.is_null() || value == "" { otherwise.into() } else { value.clone() }
}

pub(super) fn or_none(value: &Value) -> Value {
    text_or(value, "<none>")
}

/// Joins the first `shown` strings with the separator, and appends the number of omitted strings, if
/// any.
pub(super) fn at_most(shown: usize, separator: &str, texts: Vec<String>) -> String {
    let more = texts.len().saturating_sub(shown);
    let first = texts.into_iter().take(shown).collect::<Vec<_>>().join(separator);
    if more == 0 { first } else { format!("{first} + {more} more...") }
}

/// Formats labels as `key=value`, sorted and separated by commas.
pub(super) fn map_text(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let mut pairs: Vec<String> = labels.map(|(name, value)| format!("{name}={}", text(value))).collect();
    pairs.sort();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

pub(super) fn label_selector(selector: &Value) -> String {
    let formatted = selector_text(selector);
    if formatted.is_empty() { "<none>".to_owned() } else { formatted }
}

/// Returns the values of a string field in all containers of a pod spec, joined by commas.
pub(super) fn containers(spec: &Value, field: &str) -> String {
    elements(&spec["containers"])
        .iter()
        .map(|container| text(&container[field]))
        .collect::<Vec<_>>()
        .join(",")
}

pub(super) fn access_modes(modes: &Value) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given = short.iter().filter(|(mode, _)| elements(modes).iter().any(|given| given == mode));
    given.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}
