//! [`Path`]: names fields of an object, such as `spec.containers.image`.
//!
//! Segments are separated by dots, or are in brackets: `metadata.annotations[example.com/owner]`.
//! Indexes such as `data[0]` are errors. Quotes make `0` the name of a field: `data['0']`. If the
//! name of a field contains dots, several segments match this field: the last two segments of
//! `data.tls.key` match the field `tls.key`.
//!
//! The segment `*` matches any field. It also matches the rest of a name with dots: `tls.*` matches
//! the field `tls.key`. Lists have no segment: `containers.image` is the `image` of every element.

use std::fmt;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Field(String),
    Any,
}

/// The error for text that is not a valid path of field names. A valid path is
/// `spec.containers.image`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    path: String,
    reason: &'static str,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid path {:?}: {}", self.path, self.reason)
    }
}

impl std::error::Error for PathError {}

impl Path {
    /// Parses a path such as `spec.containers.image`. Rejects notations of other path languages,
    /// such as `$.spec`, `/spec` and `a[0].b`, because they would silently match no field.
    pub(super) fn parse(text: &str) -> Result<Self, PathError> {
        let error = |reason| PathError { path: text.to_owned(), reason };
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() || segments.is_empty() {
            let (segment, after) = match rest.strip_prefix('[') {
                Some(inner) => inner.split_once(']').ok_or(error("a bracket is not closed"))?,
                None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
            };
            let is_bracket = rest.starts_with('[');
            let quoted =
                ['"', '\''].iter().find_map(|quote| segment.strip_prefix(*quote)?.strip_suffix(*quote));
            let (name, is_quoted) = (quoted.unwrap_or(segment), quoted.is_some());
            // No top-level field of an object has a slash in its name.
            let is_pointer = segments.is_empty() && segment.contains('/');
            if name.is_empty() || !is_quoted && (is_pointer || is_expression(segment)) {
                return Err(error(
                    "expected field names separated by dots, as in spec.nodeName or data.tls.key",
                ));
            }
            if is_index(segment) || is_bracket && segment == "*" {
                return Err(error(
                    "in lists, write containers.image, not containers[0].image; as a field name, quote it: data['0']",
                ));
            }
            segments.push(match segment {
                "*" => Segment::Any,
                _ => Segment::Field(name.to_owned()),
            });
            rest = match after.strip_prefix('.') {
                Some("") => return Err(error("a path must not end with a dot")),
                Some(next) => next,
                None if after.is_empty() || after.starts_with('[') => after,
                None => return Err(error("expected a dot after the bracket")),
            };
        }
        Ok(Self { segments })
    }

    pub(super) fn of_fields(fields: &[&str]) -> Self {
        Self { segments: fields.iter().map(|field| Segment::Field((*field).to_owned())).collect() }
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns whether `is_it` returns `true` for any value at this path in `object`.
    pub(super) fn any(&self, object: &Value, is_it: &dyn Fn(&Value) -> bool) -> bool {
        any(&self.segments, object, is_it)
    }
}

/// Returns the rest of a path after the name of a field: `c` for the path `a.b.c` and the field
/// `a.b`. Returns `None` if the path does not begin with this name.
pub(super) fn below<'a>(segments: &'a [Segment], field: &str) -> Option<&'a [Segment]> {
    let mut left = field;
    for (index, segment) in segments.iter().enumerate() {
        // `*` matches the rest of the name.
        let Segment::Field(name) = segment else { return segments.get(index + 1..) };
        left = left.strip_prefix(name.as_str())?;
        if left.is_empty() {
            return segments.get(index + 1..);
        }
        left = left.strip_prefix('.')?;
    }
    None
}

/// Returns whether the segment has a meaning in other path languages, such as the filter
/// `?(@.name=="a")` of `JSONPath` or the glob `tls*`. Kubernetes allows no such names for labels,
/// annotations and data.
fn is_expression(segment: &str) -> bool {
    segment == "$"
        || segment != "*" && segment.contains('*')
        || segment.trim() != segment
        || segment.starts_with(['@', '('])
        || segment.contains(['?', '{', '}', '\\', '"', '\''])
}

/// Returns whether the segment selects elements of a list in other path languages: `0`, `-1`, `0:2`
/// or `0,1`.
fn is_index(segment: &str) -> bool {
    segment.split([':', ',']).map(str::trim).all(|number| {
        let digits = number.strip_prefix('-').unwrap_or(number);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn any(segments: &[Segment], value: &Value, is_it: &dyn Fn(&Value) -> bool) -> bool {
    if let Value::Array(elements) = value {
        let is_list_itself = segments.is_empty() && is_it(value);
        return is_list_itself || elements.iter().any(|element| any(segments, element, is_it));
    }
    match value {
        value if segments.is_empty() => is_it(value),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| below(segments, name).is_some_and(|rest| any(rest, value, is_it))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn has(path: &str, object: &Value) -> bool {
        Path::parse(path).expect("a path").any(object, &|_| true)
    }

    #[test]
    fn path_continues_in_every_element_of_a_list() {
        let object = json!({ "spec": { "containers": [{ "image": "a" }, { "image": "b" }] } });
        let is_b = |value: &Value| value == "b";
        assert!(Path::parse("spec.containers.image").expect("a path").any(&object, &is_b));
        assert!(Path::parse("spec.*.image").expect("a path").any(&object, &is_b));
        assert!(!has("spec.containers.name", &object));
    }

    #[test]
    fn names_with_dots_need_no_brackets() {
        let object = json!({ "metadata": { "annotations": { "example.com/a": "1" } } });
        assert!(has("metadata.annotations[example.com/a]", &object));
        assert!(has("[metadata].annotations[\"example.com/a\"]", &object));
        assert!(has("metadata.annotations.example.com/a", &object));
        assert!(has("metadata.annotations.*", &object));
        assert!(has("metadata.annotations.example.*", &object));
        assert!(!has("metadata.annotations.other.*", &object));
        assert!(!has("metadata.annotations.example.com/b", &object));
        assert!(!has("metadata.annotations.example", &object));
    }

    #[test]
    fn other_path_languages_are_rejected() {
        for text in ["", ".spec", "$.spec", "spec.", "spec..a", "a[0].b", "a[*].b", "a.0.b", "a[b", "a[b]c"] {
            assert!(Path::parse(text).is_err(), "{text:?}");
        }
        for text in ["/spec/token", "spec/token", "{.spec.token}", "@.spec", "data.tls\\.key", "spec "] {
            assert!(Path::parse(text).is_err(), "{text:?}");
        }
        for text in ["data.\"tls.key\"", "a.'b.c'", "spec?.token", "data[\"a]", "data.tls*", "spec.**"] {
            assert!(Path::parse(text).is_err(), "{text:?}");
        }
        for part in ["-1", "0:2", ":2", "0, 1", "?(@.b==\"c\")", "?b=='c'", "(@.length-1)", "\"\"", " b"] {
            assert!(Path::parse(&format!("a[{part}].b")).is_err(), "{part:?}");
        }
    }

    #[test]
    fn quoted_name_can_look_like_an_index_or_expression() {
        for name in ["0", "-1", "0:2", "?a", "{a}", " a", "2024-01-01"] {
            assert!(has(&format!("data[\"{name}\"]"), &json!({ "data": { name: "1" } })), "{name:?}");
        }
        assert!(has("data[2024-01-01]", &json!({ "data": { "2024-01-01": "1" } })));
    }
}
