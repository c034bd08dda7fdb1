//! kopium, the program that generates Rust types from schemas: finds, installs and runs it.
//!
//! It is a program and not a dependency, because it uses an older kube. Its output depends on its version, which is pinned.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::definition::Definition;
use crate::codegen::pipe;
use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// The version of the checked-in code.
const VERSION: &str = "0.24.1";

/// Its options: documentation, and `Default` and `PartialEq` if a type can have them. No schema, because users with definitions as
/// files do not install them from Rust.
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

/// The program.
#[derive(Debug)]
pub(crate) struct Kopium {
    program: PathBuf,
}

impl Kopium {
    /// Finds it here or on the PATH, in the right version, or installs it here.
    pub(crate) fn find(root: &Path, signals: &Signals) -> anyhow::Result<Self> {
        let folder = root.join("target/tools").join(format!("kopium-{VERSION}"));
        let here = folder.join("bin").join(format!("kopium{}", std::env::consts::EXE_SUFFIX));
        for program in [here.clone(), PathBuf::from("kopium")] {
            let output = Command::new(&program).arg("--version").output();
            if output.is_ok_and(|output| output.stdout.trim_ascii() == format!("kopium {VERSION}").as_bytes())
            {
                return Ok(Self { program });
            }
        }
        eprintln!(
            "codegen: installing kopium {VERSION} into {}, once; this takes some minutes",
            folder.display()
        );
        let build = root.join("target/tools/build");
        let mut command = workspace::cargo();
        // Without optimization, because compiling it would take longer than running it. Not in the workspace's folder, whose settings do not
        // apply.
        command.args(["install", "kopium", "--locked", "--debug", "--version", VERSION, "--root"]);
        command.arg(&folder).env("CARGO_TARGET_DIR", &build).env_remove("K8S_OPENAPI_ENABLED_VERSION");
        fs::create_dir_all(&build).with_context(|| format!("cannot make the folder {}", build.display()))?;
        command.current_dir(std::env::temp_dir());
        if !process::run(&mut command, signals, || Ok(()))?.success() {
            bail!("`cargo install kopium` failed; its message is above");
        }
        fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))?;
        Ok(Self { program: here })
    }

    /// Returns the types of a definition in one version.
    pub(crate) fn types(&self, definition: &Definition, version: &str) -> anyhow::Result<String> {
        let mut value = definition.value.clone();
        plain(&mut value);
        let mut command = Command::new(&self.program);
        command.args(["--api-version", version]).args(ARGUMENTS);
        pipe::through(&mut command, value.to_string()).with_context(|| {
            let (kind, path) = (&definition.kind, definition.path.display());
            format!("no types can be made of `{kind}` ({version}) in {path}")
        })
    }
}

/// Adapts descriptions to rustdoc, which tests indented text as code.
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
    let mut in_code = false;
    for line in text.lines() {
        let bare = line.trim();
        if bare.starts_with("```") {
            lines.push(if in_code { "```" } else { "```text" });
            in_code = !in_code;
        } else {
            lines.push(if in_code { line.trim_end() } else { bare });
        }
    }
    if in_code {
        lines.push("```");
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn descriptions_hold_nothing_that_rustdoc_would_test() {
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
}
