//! `cargo xtask gateway-api`: code generation shown on definitions that others wrote. Gateway API's, read from its Go
//! module, become types and accessors; a program with them is built, and follows the kinds on a real server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::apiserver;
use crate::codegen;
use crate::controlplane::{Options, Programs};
use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// The Go module, in a version that the Go of `xtask/controlplane` can read.
const MODULE: &str = "sigs.k8s.io/gateway-api@v1.6.2";

/// Where the definitions are in it.
const DEFINITIONS: &str = "config/crd/standard";

/// The program, without what is generated.
const MAIN: &str = include_str!("../gateway-api/main.rs");

/// Its manifest. It has the dependencies of a user's program, and is no member of the workspace.
const MANIFEST: &str = include_str!("../gateway-api/manifest.toml");

/// Generates, builds and runs the program.
pub(crate) fn run(signals: &Signals) -> anyhow::Result<ExitCode> {
    let root = workspace::root();
    let folder = root.join("target/gateway-api");
    let definitions = definitions(&download(&folder)?)?;
    codegen::for_definitions(&definitions, &folder.join("src/groups"), signals)?;
    write(&root, &folder)?;
    // Without network: whatever it needs is in the workspace's lock file.
    let mut build = cargo(&folder, "build");
    if !process::run(&mut build, signals, || Ok(()))?.success() {
        bail!("the program with the generated code does not build; see the message above");
    }
    let options = Options::default();
    let programs = Programs::find(&options, signals)?;
    let mut cluster = apiserver::start(&options, &programs, signals)?;
    let mut command = cargo(&folder, "run");
    command.arg("--").args(&definitions);
    apiserver::run_against(&mut cluster, &programs, &mut command, signals)
}

/// Has Go fetch the module, and returns its folder.
fn download(folder: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder.join("src"))
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let output = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .current_dir(folder)
        .output()
        .context("cannot start `go`, which fetches Gateway API's definitions; install Go")?;
    let answer: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("`go mod download {MODULE}` failed: {}", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    match (answer["Dir"].as_str(), answer["Error"].as_str()) {
        (Some(folder), None) => Ok(PathBuf::from(folder).join(DEFINITIONS)),
        (_, error) => bail!("`go mod download {MODULE}` failed: {}", error.unwrap_or("it names no folder")),
    }
}

/// The files with definitions. There are others beside them, with policies.
fn definitions(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let context = || format!("cannot list {}", folder.display());
    let mut definitions = Vec::new();
    for entry in fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if text.contains("\nkind: CustomResourceDefinition\n") {
            definitions.push(path);
        }
    }
    definitions.sort();
    Ok(definitions)
}

/// Writes the parts of the program that are not generated.
fn write(root: &Path, folder: &Path) -> anyhow::Result<()> {
    // As the workspace has it: cargo takes what it needs, and leaves out the rest.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
    for (name, text) in [("Cargo.toml", MANIFEST), ("src/main.rs", MAIN)] {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn cargo(folder: &Path, what: &str) -> Command {
    let mut command = workspace::cargo();
    command.current_dir(folder).args([what, "--quiet", "--offline"]);
    // Most of what it depends on has been built for the workspace.
    command.env("CARGO_TARGET_DIR", workspace::root().join("target"));
    command
}
