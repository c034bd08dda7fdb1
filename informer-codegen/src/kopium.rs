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
        let mut value = definition.value.clone();
        plain(&mut value);
        let mut command = Command::new(&self.program);
        command.args(["--api-version", version]).args(ARGUMENTS);
        pipe::through(&mut command, value.to_string()).with_context(|| {
            let (kind, path) = (&definition.kind, definition.path.display());
            format!("cannot generate types for `{kind}` ({version}) in {path}; correct its schema")
        })
    }
}

/// Changes the descriptions in a schema so that rustdoc does not test them. Rustdoc would treat
/// indented text and code blocks as examples in Rust.
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
    let mut lines: Vec<&str> = Vec::new();
    let mut code = None;
    for line in text.lines() {
        let bare = line.trim();
        match (code, fence(bare)) {
            (None, None) => lines.push(bare),
            (None, Some((mark, opening))) => {
                lines.push(opening);
                code = Some(mark);
            }
            (Some(open), Some((mark, _))) if open == mark => {
                lines.push(mark);
                code = None;
            }
            (Some(_), _) => lines.push(line.trim_end()),
        }
    }
    lines.extend(code);
    lines.join("\n")
}

/// If this line can open or close a code block, returns two lines with the same characters. The
/// first closes a block, and the second opens a block that rustdoc does not test.
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
    fn code_within_a_line_opens_no_block() {
        let text = "Run:\n```kubectl get pods```\n  or\n``` `a` ```\nlast";
        assert_eq!(plain_text(text), "Run:\n```kubectl get pods```\nor\n``` `a` ```\nlast");
    }
}
