//! Describes where decoding failed, for error messages: the path of a field, or the position in
//! invalid JSON. A [`Tape`] is an object as a list of tokens.
//!
//! The descriptions contain no values of the object, because values can be secret. Names that do
//! not look like field names are shown as `*`, because users choose the keys of maps.

use serde::de::IgnoredAny;

use super::tape::{Tape, Token};

/// The maximum number of levels in the path of a field.
const MAX_DEPTH: usize = 16;

impl Tape<'_> {
    /// Returns the path of the field whose token has this index in the tape, such as
    /// `spec.containers[2].image`.
    pub(super) fn path(&self, index: usize) -> String {
        let (mut path, mut at) = (String::new(), 0);
        for depth in 0.. {
            let Some((part, inner)) = self.child_with(at, index) else { break };
            if depth == MAX_DEPTH {
                path.push_str("...");
                break;
            }
            if !path.is_empty() && !part.starts_with('[') {
                path.push('.');
            }
            path.push_str(&part);
            at = inner;
        }
        path
    }

    /// Finds the member or element of the object or array `container` that contains `token`.
    /// Returns its name in a path, such as `image` or `[2]`, and the index of its value.
    fn child_with(&self, container: usize, token: usize) -> Option<(String, usize)> {
        let contains = |value: &usize| (*value..self.index_after(*value)).contains(&token);
        match self.token(container) {
            Token::Object(_) => {
                let mut members = self.members(container);
                // `token` can also be the name of the member.
                let (name, value) = members.find(|(_, value)| value - 1 == token || contains(value))?;
                Some((field_name(name).to_owned(), value))
            }
            Token::Array(extent) => {
                let mut element = container + 1;
                for place in 0..extent.len {
                    if contains(&element) {
                        return Some((format!("[{place}]"), element));
                    }
                    element = self.index_after(element);
                }
                None
            }
            _ => None,
        }
    }
}

/// Describes the position at which the bytes are not valid JSON.
pub(super) fn invalid_json(bytes: &[u8]) -> String {
    match serde_json::from_slice::<IgnoredAny>(bytes) {
        Ok(_) => "invalid JSON".to_owned(),
        Err(error) => format!("invalid JSON at line {}, column {}", error.line(), error.column()),
    }
}

/// Returns the name if it looks like the name of a field, otherwise `*`.
fn field_name(name: &str) -> &str {
    let is_plain = name.len() <= 63
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { name } else { "*" }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret};
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::decode::deserialize::deserialize;
    use crate::decode::json::read;
    use crate::decode::prune_paths::NOTHING_PRUNED;

    fn described<K: DeserializeOwned>(json: &str) -> String {
        let Ok(value) = read(json, &NOTHING_PRUNED) else { return invalid_json(json.as_bytes()) };
        match deserialize::<K>(&value.tape) {
            Ok(_) => panic!("{json} was decoded"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn error_names_the_field_and_no_value() {
        let json =
            r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"x"},{"name":"y","tty":"hunter2"}]}}"#;
        let text = described::<Pod>(json);
        assert_eq!(text, "unexpected string at spec.containers[1].tty");
    }

    #[test]
    fn missing_field_is_named_with_its_object() {
        #[derive(serde::Deserialize)]
        struct Outer {
            #[serde(rename = "spec")]
            _spec: Inner,
        }
        #[derive(serde::Deserialize)]
        struct Inner {
            #[serde(rename = "image")]
            _image: String,
        }
        assert_eq!(described::<Outer>(r#"{"spec": {"replicas": 1}}"#), "missing field \"image\" at spec");
        assert_eq!(described::<Outer>(r#"{"replicas": 1}"#), "missing field \"spec\" at the top level");
    }

    #[test]
    fn error_contains_no_secret() {
        for json in [
            r#"{"data": {"tls.key": "hunter2 is not base64"}}"#,
            r#"{"data": "hunter2"}"#,
            r#"{"kind": "hunter2"}"#,
            r#"{"apiVersion": "missing field `hunter2`"}"#,
            r#"{"immutable": "hunter2"}"#,
            r#"{"data": {"hunter2.and.more": 5}}"#,
            r#"{"data": hunter2}"#,
            "\n\n\n{\"data\":\n\"hunter2\"}",
        ] {
            let text = described::<Secret>(json);
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn path_has_no_keys_of_maps_and_a_limited_depth() {
        let path = |json: &str, index| read(json, &NOTHING_PRUNED).expect("JSON").tape.path(index);
        assert_eq!(path(r#"{"a":1,"b":[1,2,{"c":"d"}]}"#, 8), "b[2].c");
        assert_eq!(path(r#"{"a":{"b.c":{"d":1}}}"#, 6), "a.*.d");
        assert_eq!(path("[[1],[2,3]]", 5), "[1][1]");
        assert_eq!(path("{}", 0), "");
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(path(&deep, 99), format!("{}...", "[0]".repeat(MAX_DEPTH)));
    }
}
