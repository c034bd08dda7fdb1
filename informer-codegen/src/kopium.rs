//! Runs kopium, the program that generates Rust types from schemas.
//!
//! kopium is not a dependency of this crate, because kopium depends on an older version of kube.
//! The version of kopium is pinned, because the output changes between versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::definition::Definition;
use crate::pipe;

/// The version of kopium that generates the types.
pub const VERSION: &str = "0.24.1";

/// The fixed arguments of kopium. The generated types do not derive `JsonSchema`, because users
/// already have the schema, in the file with the definition.
const ARGUMENTS: [&str; 9] = [
    "--hide-prelude",
    "--docs",
    "--smart-derive-elision",
    "--derive",
    "Default",
    "--derive",
    "PartialEq",
    "--filename",
    "-",
];

/// The fields by which kopium recognizes a condition.
const CONDITION: [&str; 5] = ["type", "status", "reason", "message", "lastTransitionTime"];

/// The program kopium in the required version.
#[derive(Debug)]
pub(crate) struct Kopium {
    program: PathBuf,
}

impl Kopium {
    /// Checks that `program` is kopium in the required version.
    pub(crate) fn new(program: &Path) -> anyhow::Result<Self> {
        let remedy = || {
            format!(
                "kopium generates the types; install it with `cargo install kopium --locked --version {VERSION}`"
            )
        };
        let name = program.display();
        let output = Command::new(program).arg("--version").output();
        let output = output.with_context(|| format!("cannot start `{name}`; {}", remedy()))?;
        let version = String::from_utf8_lossy(&output.stdout);
        if version.trim() != format!("kopium {VERSION}") {
            bail!("`{name}` is not kopium {VERSION} but `{}`; {}", version.trim(), remedy());
        }
        Ok(Self { program: program.to_owned() })
    }

    pub(crate) fn types(&self, definition: &Definition, version: &str) -> anyhow::Result<String> {
        let value = input(&definition.value, version);
        let mut command = Command::new(&self.program);
        command.args(["--api-version", version]).args(ARGUMENTS);
        if has_conditions_without_time(&value) {
            command.arg("--no-condition");
        }
        pipe::through(&mut command, value.to_string()).with_context(|| {
            let (kind, path) = (&definition.kind, definition.path.display());
            format!("cannot generate types for `{kind}` ({version}) in {path}; correct its schema")
        })
    }
}

/// Returns the input of kopium: the definition with only this version, whose schema is adapted to
/// kopium.
fn input(definition: &Value, version: &str) -> Value {
    let mut value = definition.clone();
    if let Some(versions) = value.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        versions.retain(|it| it["name"] == version);
    }
    // kopium would use a top-level field such as `podSpec` as a second `spec`.
    let fields = value.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties");
    if let Some(fields) = fields.and_then(Value::as_object_mut) {
        fields.retain(|name, _| name == "spec" || name == "status");
    }
    plain(&mut value);
    make_nullable_optional(&mut value);
    value
}

/// Removes nullable fields from the lists of required fields, so that their Rust type is an
/// `Option`. kopium ignores `nullable`.
fn make_nullable_optional(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let properties = fields.get("properties").and_then(Value::as_object);
            let nullable: Vec<String> = properties
                .into_iter()
                .flatten()
                .filter(|(_, schema)| schema["nullable"] == true)
                .map(|(name, _)| name.clone())
                .collect();
            if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
                required.retain(|name| !nullable.iter().any(|nullable| name == nullable));
            }
            fields.values_mut().for_each(make_nullable_optional);
        }
        Value::Array(items) => items.iter_mut().for_each(make_nullable_optional),
        _ => {}
    }
}

/// Returns whether kopium would use k8s-openapi's `Condition` for conditions whose
/// `lastTransitionTime` is optional. A `Condition` cannot be decoded without this time.
fn has_conditions_without_time(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let (properties, required) = (&value["items"]["properties"], &value["items"]["required"]);
            let is_condition = CONDITION.iter().all(|field| properties[*field].is_object());
            let requires_time = required
                .as_array()
                .is_some_and(|names| names.iter().any(|name| name == "lastTransitionTime"));
            (name == "conditions" && is_condition && !requires_time) || has_conditions_without_time(value)
        }),
        Value::Array(items) => items.iter().any(has_conditions_without_time),
        _ => false,
    }
}

/// Changes the descriptions in a schema so that rustdoc does not test them. Rustdoc would treat
/// indented text, and code blocks that name no other language, as examples in Rust.
fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "description" => *text = plain_text(text),
                    value => plain(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

fn plain_text(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut code = None;
    for line in text.lines() {
        let bare = line.trim();
        match (code, fence(bare)) {
            (None, None) => lines.push(without_nested_code(bare)),
            (None, Some((mark, opening))) => {
                lines.push(opening.to_owned());
                code = Some(mark);
            }
            (Some(open), Some((mark, _))) if open == mark => {
                lines.push(mark.to_owned());
                code = None;
            }
            (Some(_), _) => lines.push(line.trim_end().to_owned()),
        }
    }
    lines.extend(code.map(str::to_owned));
    lines.join("\n")
}

/// Turns code after a quote or list marker into text. For example, `>     one`, which Markdown
/// treats as indented code, becomes `> one`.
fn without_nested_code(line: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_marker =
        |word: &str| matches!(word, "-" | "*" | "+") || word.strip_suffix(['.', ')']).is_some_and(is_number);
    let quote = line.strip_prefix('>').map(|rest| (">", rest));
    let item = || line.split_once([' ', '\t']).filter(|(word, _)| is_marker(word));
    let Some((marker, rest)) = quote.or_else(item) else { return line.to_owned() };
    let rest = rest.trim_start();
    let rest = if fence(rest).is_some() { format!("\\{rest}") } else { without_nested_code(rest) };
    format!("{marker} {rest}")
}

/// Returns two replacements for a code fence in Markdown; `None` for a line that is no fence.
///
/// If the fence closes a code block, the caller uses the first replacement. If the fence opens a
/// code block, the caller uses the second one: rustdoc does not test code that is marked as `text`.
/// For example, `~~~yaml` gives `~~~` and `~~~text`.
fn fence(line: &str) -> Option<(&'static str, &'static str)> {
    // "```kubectl get pods```" is text: a line that opens a block has no further backticks.
    let is_text = |rest: &str| rest.trim_start_matches('`').contains('`');
    if line.strip_prefix("```").is_some_and(|rest| !is_text(rest)) {
        return Some(("```", "```text"));
    }
    line.starts_with("~~~").then_some(("~~~", "~~~text"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn readme_installs_the_pinned_version() {
        assert!(include_str!("../README.md").contains(&format!("kopium --locked --version {VERSION} ")));
    }

    #[test]
    fn nullable_fields_are_not_required() {
        let mut schema = json!({
            "properties": {
                "required": { "items": {
                    "properties": { "a": { "nullable": true }, "b": { "nullable": false } },
                    "required": ["a", "b"],
                } },
                "c": { "nullable": true },
            },
            "required": ["required", "c"],
        });
        make_nullable_optional(&mut schema);
        assert_eq!(schema["required"], json!(["required"]));
        assert_eq!(schema["properties"]["required"]["items"]["required"], json!(["b"]));
    }

    #[test]
    fn condition_type_is_used_only_if_its_time_is_required() {
        let properties: Value = CONDITION.iter().map(|field| (*field, json!({ "type": "string" }))).collect();
        let conditions = |required: &[&str]| {
            let list = json!({ "items": { "properties": properties, "required": required } });
            has_conditions_without_time(&json!({ "properties": { "conditions": list } }))
        };
        assert!(!conditions(&["type", "lastTransitionTime"]));
        assert!(conditions(&["type", "status"]));
        let other = json!({ "items": { "properties": { "type": {} } } });
        assert!(!has_conditions_without_time(&json!({ "conditions": other })));
    }

    #[test]
    fn kopium_reads_only_spec_and_status_of_one_version() {
        let version = |name: &str, fields: Value| json!({ "name": name, "schema": { "openAPIV3Schema": { "properties": fields } } });
        let definition = |versions: Value| json!({ "spec": { "versions": versions } });
        let (all, kept) =
            (json!({ "podSpec": {}, "spec": {}, "status": {} }), json!({ "spec": {}, "status": {} }));
        let both = definition(json!([version("v2", json!({})), version("v1", all)]));
        assert_eq!(input(&both, "v1"), definition(json!([version("v1", kept)])));
    }

    #[test]
    fn descriptions_contain_no_code_that_rustdoc_tests() {
        let mut schema = json!({
            "description": "One:\n\n    two \n```go\n  three\n```\nfour\n```\nfive",
            "properties": { "description": { "type": "string", "description": "\tsix" } },
            "allOf": [{ "description": " seven" }],
        });
        plain(&mut schema);
        assert_eq!(
            schema,
            json!({
                "description": "One:\n\ntwo\n```text\n  three\n```\nfour\n```text\nfive\n```",
                "properties": { "description": { "type": "string", "description": "six" } },
                "allOf": [{ "description": "seven" }],
            })
        );
    }

    #[test]
    fn code_blocks_with_tildes_are_not_tested_either() {
        let text = "one\n~~~\n  two\n```\n~~~\nthree\n~~~~yaml\n  four";
        let expected = "one\n~~~text\n  two\n```\n~~~\nthree\n~~~text\n  four\n~~~";
        assert_eq!(plain_text(text), expected);
    }

    #[test]
    fn quotes_and_list_items_contain_no_code() {
        for (text, expected) in [
            (">     one", "> one"),
            ("> ```\n> one\n> ```\ntwo", "> \\```\n> one\n> \\```\ntwo"),
            ("-     one", "- one"),
            ("10.     one  two", "10. one  two"),
            ("> *     one", "> * one"),
            ("a     b", "a     b"),
        ] {
            assert_eq!(plain_text(text), expected);
        }
    }

    #[test]
    fn code_within_a_line_opens_no_block() {
        let text = "Run:\n```kubectl get pods```\n  or\n``` `a` ```\nlast";
        assert_eq!(plain_text(text), "Run:\n```kubectl get pods```\nor\n``` `a` ```\nlast");
    }
}
