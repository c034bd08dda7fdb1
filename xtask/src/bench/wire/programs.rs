//! Builds the client programs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use serde::Deserialize;

use super::fabric8::{self, Fabric8};
use super::forms::Program;
use crate::signals::Signals;
use crate::{client_go, process, workspace};

#[derive(Debug)]
pub(crate) struct Programs {
    /// The programs of `xtask/wire`, by the name of their target.
    ours: HashMap<String, PathBuf>,
    /// The path of the built client-go program. `None` if Go is not installed.
    client_go: Option<PathBuf>,
    /// The built fabric8 program. `None` if Maven or a JDK is not installed.
    fabric8: Option<Fabric8>,
}

/// The used fields of a JSON message of `cargo build`.
#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

impl Programs {
    /// Builds all client programs in release mode, except those whose tools are not installed.
    pub(crate) fn build(signals: &Signals) -> anyhow::Result<Self> {
        let output = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
        let mut command = workspace::cargo();
        command
            .args(["build", "--release", "--package", "wire-clients", "--benches"])
            .arg("--message-format=json-render-diagnostics")
            .stdout(Stdio::from(output.reopen()?));
        process::run_or_fail(&mut command, signals, "the clients do not build; see the message above")?;
        let messages = std::fs::read_to_string(output.path()).context("the output of cargo is not text")?;
        let client_go = client_go::build("./wire", "clientgowire", signals)?;
        if client_go.is_none() {
            eprintln!("Go is not installed; skipping client-go, which needs Go 1.26 or newer");
        }
        let fabric8 = fabric8::build(signals)?;
        if fabric8.is_none() {
            eprintln!(
                "`mvn` or `javac` is not installed; skipping fabric8, which needs Maven and JDK 17 or newer"
            );
        }
        Ok(Self { ours: messages.lines().filter_map(executable).collect(), client_go, fabric8 })
    }

    /// Returns the program that records the responses of an API server.
    pub(crate) fn recorder(&self) -> &Path {
        self.ours.get("wire-record").map_or(Path::new("wire-record"), PathBuf::as_path)
    }

    /// Returns the command that starts `program`; `None` if the program is not built.
    pub(crate) fn command(&self, program: Program) -> Option<Command> {
        let path = match program {
            Program::Ours => self.ours.get("wire-ours"),
            Program::OursWithSystemAllocator => self.ours.get("wire-ours-system"),
            Program::KubeRs => self.ours.get("wire-kube-rs"),
            Program::ClientGo => self.client_go.as_ref(),
            Program::Fabric8 => return self.fabric8.as_ref().map(Fabric8::command),
        };
        path.map(Command::new)
    }
}

fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: Message = serde_json::from_str(message).ok()?;
    Some((message.target?.name, message.executable?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_is_read_from_a_message() {
        let message = r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":"/b/a-1"}"#;
        assert_eq!(executable(message), Some(("a".to_owned(), "/b/a-1".into())));
        assert_eq!(executable(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
