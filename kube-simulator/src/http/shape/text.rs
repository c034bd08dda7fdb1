//! Formats JSON values as `kubectl get` prints them.

use serde_json::{Map, Value};

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

/// Joins the first `shown` strings with commas, and appends the number of omitted strings.
pub(super) fn at_most(shown: usize, texts: Vec<String>) -> String {
    if texts.is_empty() {
        return "<none>".to_owned();
    }
    let more = texts.len().saturating_sub(shown);
    let first = texts.into_iter().take(shown).collect::<Vec<_>>().join(",");
    if more == 0 { first } else { format!("{first} + {more} more...") }
}

/// Formats labels as `key=value`, sorted and separated by commas.
pub(super) fn map_text(labels: &Value) -> String {
    let mut pairs = pairs(labels.as_object());
    pairs.sort();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

fn pairs(labels: Option<&Map<String, Value>>) -> Vec<String> {
    labels.into_iter().flatten().map(|(name, value)| format!("{name}={}", text(value))).collect()
}

pub(super) fn label_selector(selector: &Value) -> String {
    let mut requirements = pairs(selector["matchLabels"].as_object());
    requirements.extend(elements(&selector["matchExpressions"]).iter().map(|requirement| {
        let mut values: Vec<&str> = elements(&requirement["values"]).iter().map(text).collect();
        values.sort_unstable();
        let (key, values) = (text(&requirement["key"]), values.join(","));
        match text(&requirement["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        }
    }));
    requirements.sort_by(|left, right| left.trim_start_matches('!').cmp(right.trim_start_matches('!')));
    if requirements.is_empty() { "<none>".to_owned() } else { requirements.join(",") }
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
