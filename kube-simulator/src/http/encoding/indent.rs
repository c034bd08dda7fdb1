//! Indents JSON by two spaces per level, in the format of Go's `json.MarshalIndent`.

pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut in_string = false;
    let mut is_escaped = false;
    for (at, &byte) in json.iter().enumerate() {
        if in_string {
            out.push(byte);
            in_string = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'{' | b'[' => {
                out.push(byte);
                depth += 1;
                // Empty objects and lists stay on one line.
                if !matches!(next_visible(&json[at + 1..]), Some(b'}' | b']')) {
                    begin_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !matches!(out.last(), Some(b'{' | b'[')) {
                    begin_line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                begin_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => {
                in_string = byte == b'"';
                out.push(byte);
            }
        }
    }
    out
}

fn next_visible(json: &[u8]) -> Option<u8> {
    json.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn begin_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    //! Tests against the output of Go's `json.Indent`.

    use super::indent;

    #[test]
    fn indent_formats_objects_and_lists_but_not_strings() {
        let json = br#"{"a":[1,2.0e3,{"b":"x{,:\"} \\"}],"c":{},"d":[ ],"e":null}
"#;
        let wanted = r#"{
  "a": [
    1,
    2.0e3,
    {
      "b": "x{,:\"} \\"
    }
  ],
  "c": {},
  "d": [],
  "e": null
}"#;
        assert_eq!(String::from_utf8_lossy(&indent(json)), wanted);
    }

    #[test]
    fn indent_keeps_scalars() {
        assert_eq!(indent(b"\"a b\""), b"\"a b\"");
        assert_eq!(indent(b"7"), b"7");
        assert_eq!(indent(b""), b"");
    }
}
