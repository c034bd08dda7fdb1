//! Finds most rules of a schema that a real server enforces and the simulator does not.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Value;

use super::of_field;
use super::place::Place;

const UNCHECKED: [&str; 12] = [
    "x-kubernetes-validations",
    "pattern",
    "oneOf",
    "anyOf",
    "allOf",
    "not",
    "multipleOf",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// The values of `format` that a real server checks for strings, except `uuid3`, `uuid5`,
/// `k8s-short-name` and `k8s-long-name`.
const FORMATS: [&str; 22] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "mac",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid4",
];

/// Maximum number of fields that one warning names.
const MAX_NAMED: usize = 3;

/// The fields to which one unchecked keyword, such as `pattern`, applies.
#[derive(Default)]
struct Fields {
    named: BTreeSet<String>,
    count: usize,
}

/// Returns one warning for each unchecked keyword that applies to the object.
pub(crate) fn unchecked(schema: &Value, object: &Value) -> Vec<String> {
    let mut found = BTreeMap::new();
    walk(schema, object, &Place::Root, &mut found);
    found.into_iter().map(|(keyword, fields)| describe(keyword, &fields)).collect()
}

fn describe(keyword: &str, fields: &Fields) -> String {
    let named: Vec<&str> = fields.named.iter().map(String::as_str).collect();
    let more = match fields.count - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the simulator does not check the schema's \"{keyword}\" for {}{more}", named.join(", "))
}

fn walk(schema: &Value, value: &Value, path: &Place<'_>, found: &mut BTreeMap<&'static str, Fields>) {
    for keyword in UNCHECKED.into_iter().filter(|keyword| needs_warning(schema, keyword)) {
        note(found, keyword, path);
    }
    if value.is_string() && schema["format"].as_str().is_some_and(|format| FORMATS.contains(&format)) {
        note(found, "format", path);
    }
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                if let Some(schema) = of_field(schema, name) {
                    walk(schema, inner, &path.field(name), found);
                }
            }
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                walk(&schema["items"], element, &path.element(at), found);
            }
        }
        _ => {}
    }
}

/// Returns whether `keyword` causes a warning. In a schema with `x-kubernetes-int-or-string`,
/// `anyOf` and `allOf` cause none: usually, they only repeat that the value is an integer or a
/// string.
fn needs_warning(schema: &Value, keyword: &str) -> bool {
    let is_set = schema.get(keyword).is_some_and(|value| *value != false);
    is_set && !(schema["x-kubernetes-int-or-string"] == true && matches!(keyword, "anyOf" | "allOf"))
}

fn note(found: &mut BTreeMap<&'static str, Fields>, keyword: &'static str, path: &Place<'_>) {
    let fields = found.entry(keyword).or_default();
    fields.count += 1;
    if fields.named.len() < MAX_NAMED {
        fields.named.insert(if path.is_root() { "the object".to_owned() } else { path.to_string() });
    }
}
