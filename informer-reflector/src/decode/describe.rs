//! [`describe`]: describes a decoding error without content of the object.
//!
//! Note: messages of `serde_json` quote values, as in `invalid type: string "hunter2"`. So only
//! serde's own words are used, with the path of field names.

/// The maximum depth of a path.
const MAX_DEPTH: usize = 16;

/// Describes a decoding error of `json` with the path of the field, or with the position if `json`
/// isn't JSON. A position in an object means nothing to readers, because pruned fields are missing.
pub(super) fn describe(error: &serde_json::Error, json: &[u8]) -> String {
    let (line, column) = (error.line(), error.column());
    if !error.is_data() {
        return format!("invalid JSON at line {line}, column {column}");
    }
    let path = path_at(&json[..offset(json, line, column)]);
    let place = if path.is_empty() { "the top".to_owned() } else { path };
    format!("{} at {place}", what(&error.to_string()))
}

/// Returns the parts of serde's message that contain no values.
fn what(message: &str) -> String {
    const KINDS: [&str; 8] =
        ["null", "boolean", "integer", "floating point", "string", "map", "sequence", "unit"];
    let quoted_name = |rest: &str| {
        let name = rest.split('`').next().filter(|name| is_plain(name.as_bytes()))?;
        Some(name.to_owned())
    };
    if let Some(rest) = message.strip_prefix("invalid type: ") {
        let kind = KINDS.iter().find(|kind| rest.starts_with(**kind));
        return format!("unexpected {}", kind.unwrap_or(&"type"));
    }
    // These are names that the type declares, not the object.
    if let Some(name) = message.strip_prefix("missing field `").and_then(quoted_name) {
        return format!("missing field \"{name}\"");
    }
    if let Some(name) = message.strip_prefix("duplicate field `").and_then(quoted_name) {
        return format!("duplicate field \"{name}\"");
    }
    "unsuitable value".to_owned()
}

fn offset(json: &[u8], line: usize, column: usize) -> usize {
    let line_start = match line {
        0 | 1 => 0,
        _ => memchr::memchr_iter(b'\n', json).nth(line - 2).map_or(json.len(), |newline| newline + 1),
    };
    json.len().min(line_start + column)
}

/// An object or array that is open at some point of a JSON text.
enum Open {
    Object { key: String, in_key: bool },
    Array { index: usize },
}

/// Returns the path of the value at the end of `prefix`, such as `spec.containers[2].image`, with
/// at most [`MAX_DEPTH`] levels.
fn path_at(prefix: &[u8]) -> String {
    let mut open = Vec::new();
    let mut deeper = 0_usize;
    let mut rest = prefix;
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'{' | b'[' if open.len() > MAX_DEPTH => deeper += 1,
            b'}' | b']' if deeper > 0 => deeper -= 1,
            b'"' if deeper > 0 => rest = split_string(rest).1,
            _ if deeper > 0 => {}
            b'{' => open.push(Open::Object { key: String::new(), in_key: true }),
            b'[' => open.push(Open::Array { index: 0 }),
            b'}' | b']' => drop(open.pop()),
            b':' => {
                if let Some(Open::Object { in_key, .. }) = open.last_mut() {
                    *in_key = false;
                }
            }
            b',' => match open.last_mut() {
                Some(Open::Array { index }) => *index += 1,
                Some(Open::Object { key, in_key }) => (*key, *in_key) = (String::new(), true),
                None => {}
            },
            b'"' => {
                let (text, after) = split_string(rest);
                rest = after;
                if let Some(Open::Object { key, in_key: true }) = open.last_mut() {
                    *key = field_name(text);
                }
            }
            _ => {}
        }
    }
    render(&open)
}

/// Splits the text after an opening quotation mark at the closing one.
fn split_string(rest: &[u8]) -> (&[u8], &[u8]) {
    let mut end = 0;
    while let Some(byte) = rest.get(end) {
        match byte {
            b'"' => return (&rest[..end], &rest[end + 1..]),
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    (rest, &[])
}

/// Returns a key for a message. Users choose the keys of maps, so only keys that look like field
/// names are shown.
fn field_name(key: &[u8]) -> String {
    if is_plain(key) { String::from_utf8_lossy(key).into_owned() } else { "*".to_owned() }
}

fn is_plain(name: &[u8]) -> bool {
    name.len() <= 63
        && name.first().is_some_and(u8::is_ascii_alphabetic)
        && name.iter().all(u8::is_ascii_alphanumeric)
}

fn render(open: &[Open]) -> String {
    let mut path = String::new();
    for part in open.iter().take(MAX_DEPTH) {
        match part {
            Open::Object { key, .. } if key.is_empty() => {}
            Open::Object { key, .. } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            Open::Array { index } => path.push_str(&format!("[{index}]")),
        }
    }
    if open.len() > MAX_DEPTH {
        path.push_str("...");
    }
    path
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret};
    use serde::de::DeserializeOwned;

    use super::*;

    fn described<K: DeserializeOwned>(json: &str) -> String {
        match serde_json::from_str::<K>(json) {
            Ok(_) => panic!("{json} was decoded"),
            Err(error) => describe(&error, json.as_bytes()),
        }
    }

    #[test]
    fn the_field_is_named_and_the_value_is_not() {
        let json =
            r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"x"},{"name":"y","tty":"hunter2"}]}}"#;
        let text = described::<Pod>(json);
        assert_eq!(text, "unexpected string at spec.containers[1].tty");
    }

    #[test]
    fn a_missing_field_is_named_where_it_is_missing() {
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
        let text = described::<Outer>(r#"{"spec": {"replicas": 1}}"#);
        assert_eq!(text, "missing field \"image\" at spec");
    }

    #[test]
    fn a_secret_stays_secret() {
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
    fn the_path_is_found_whatever_the_strings_contain() {
        let path = |prefix: &str| path_at(prefix.as_bytes());
        assert_eq!(path(r#"{"a":"}{][,:\"","b":[1,2,{"c":"\\","d":"#), "b[2].d");
        assert_eq!(path(r#"{"a":{"b":1},"c":"#), "c");
        assert_eq!(path(r#"{"a":{"b.c":{"d":"#), "a.*.d");
        assert_eq!(path("[[1],[2,3"), "[1][1]");
        assert_eq!(path(""), "");
        assert_eq!(path(r#"{"unclosed \"#), "*");
        assert_eq!(path(&"[".repeat(100)), format!("{}...", "[0]".repeat(MAX_DEPTH)));
        let deep = format!(r#"{{"a":{}"]{{"{},"b":"#, r#"{"x":["#.repeat(100), "]}".repeat(100));
        assert_eq!(path(&deep), "b");
    }
}
