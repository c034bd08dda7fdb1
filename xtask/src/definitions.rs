//! `cargo xtask definitions`: generates and compiles code for public `CustomResourceDefinition`s
//! from Go modules. The code is in two packages:
//!
//! - `program` has the types of Gateway API, and watches objects of these types on a real server.
//! - `collection` is a library with the types of all definitions, and is only compiled.

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

/// Arguments of `cargo xtask definitions`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only generate and compile the code; run nothing on a server
    #[arg(long)]
    compile_only: bool,
    /// Use only the definitions of Gateway API; the others take minutes to compile
    #[arg(long)]
    gateway_api_only: bool,
}

impl Args {
    pub(crate) const CI: Self = Self { compile_only: false, gateway_api_only: true };
    pub(crate) const LONG: Self = Self { compile_only: true, gateway_api_only: false };
}

/// A Go module with its version, and the folder in it that contains the definitions.
type Module = (&'static str, &'static str);

/// The module of Gateway API. Before you select a later version, check that its `go.mod` needs no
/// newer version of Go than `xtask/controlplane/go.mod`.
const GATEWAY_API: Module = ("sigs.k8s.io/gateway-api@v1.6.2", "config/crd/standard");

/// All modules with definitions, except [`GATEWAY_API`]. The code for these definitions is
/// generated and compiled, but not run.
const OTHERS: [Module; 6] = [
    ("github.com/cert-manager/cert-manager@v1.16.2", "deploy/crds"),
    ("github.com/crossplane/crossplane@v1.18.2", "cluster/crds"),
    ("github.com/kedacore/keda/v2@v2.16.1", "config/crd/bases"),
    ("github.com/prometheus-operator/prometheus-operator@v0.79.2", "example/prometheus-operator-crd"),
    ("istio.io/api@v1.24.2", "kubernetes"),
    ("sigs.k8s.io/karpenter@v1.1.1", "pkg/apis/crds"),
];

/// The `main.rs` of the package `program`. The package's other source files are generated.
const MAIN: &str = include_str!("../definitions/main.rs");

/// The `lib.rs` of the package `collection`. The package's other source files are generated.
const LIBRARY: &str = "//! Types and accessors for a broad collection of definitions.\n\npub mod groups;\n";

/// The `Cargo.toml` of the packages `program` and `collection`. These packages are not members of
/// the workspace.
const MANIFEST: &str = include_str!("../definitions/manifest.toml");

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let folder = workspace::root().join("target/definitions");
    let program = Package { folder: folder.join("program"), file: "main.rs", text: MAIN };
    program.write()?;
    let definitions = definitions(GATEWAY_API, &program.folder)?;
    program.compile("build", &definitions, signals)?;
    if !args.gateway_api_only {
        check_collection(&folder, definitions.clone(), signals)?;
    }
    if args.compile_only {
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::default();
    let programs = Programs::find(&options, signals)?;
    let mut cluster = apiserver::start(&options, &programs, signals)?;
    let mut command = cargo(&program.folder, "run");
    command.arg("--").args(&definitions);
    apiserver::run_against(&mut cluster, &programs, &mut command, signals)
}

/// Generates and compiles the package `collection`. Its definitions are in the files `files`, and
/// in the Go modules [`OTHERS`].
fn check_collection(folder: &Path, mut files: Vec<PathBuf>, signals: &Signals) -> anyhow::Result<()> {
    let all = Package { folder: folder.join("collection"), file: "lib.rs", text: LIBRARY };
    all.write()?;
    for module in OTHERS {
        files.extend(definitions(module, &all.folder)?);
    }
    all.compile("check", &files, signals)
}

/// A cargo package below `target/definitions`, with generated code and one fixed source file.
struct Package {
    folder: PathBuf,
    /// The name of the fixed source file in `src`: `main.rs` or `lib.rs`.
    file: &'static str,
    /// The content of the fixed source file.
    text: &'static str,
}

impl Package {
    /// Writes all files of the package except the generated code.
    fn write(&self) -> anyhow::Result<()> {
        let source = self.folder.join("src");
        fs::create_dir_all(&source)
            .with_context(|| format!("cannot create the folder {}", source.display()))?;
        // A copy of the workspace's lock file; cargo removes unused entries.
        let lock = workspace::root().join("Cargo.lock");
        fs::copy(lock, self.folder.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
        for (path, text) in [(self.folder.join("Cargo.toml"), MANIFEST), (source.join(self.file), self.text)]
        {
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Generates the code for `definitions`, and compiles it with `cargo build` or `cargo check`.
    fn compile(&self, command: &str, definitions: &[PathBuf], signals: &Signals) -> anyhow::Result<()> {
        codegen::for_definitions(definitions, &self.folder.join("src/groups"), false, signals)?;
        let folder = self.folder.display();
        let problem = format!("the generated code in {folder} does not compile; see the message above");
        process::run_or_fail(&mut cargo(&self.folder, command), signals, &problem)
    }
}

/// Downloads a Go module, and returns the files with definitions in its folder `path`. Go runs in
/// `folder`.
fn definitions((module, path): Module, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let found = definitions_in(&download(module, folder)?.join(path))?;
    if found.is_empty() {
        bail!(
            "the folder {path} of the Go module {module} has no CustomResourceDefinitions; correct \
             the folder in xtask/src/definitions.rs"
        );
    }
    Ok(found)
}

/// Downloads a Go module, and returns the module's folder in Go's cache. Go runs in `folder`.
fn download(module: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(folder)
        .output()
        .context("cannot start `go`, which downloads the definitions; install Go")?;
    let answer: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("`go mod download {module}` failed: {}", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    match (answer["Dir"].as_str(), answer["Error"].as_str()) {
        (Some(folder), None) => Ok(PathBuf::from(folder)),
        (_, error) => bail!("`go mod download {module}` failed: {}", error.unwrap_or("it printed no folder")),
    }
}

fn definitions_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let context = || format!("cannot list {}", folder.display());
    let mut definitions = Vec::new();
    for entry in fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if text.contains("\nkind: CustomResourceDefinition\n") {
            definitions.push(path);
        }
    }
    definitions.sort();
    Ok(definitions)
}

fn cargo(folder: &Path, what: &str) -> Command {
    let mut command = workspace::cargo();
    // Offline, because all dependencies are in the workspace's lock file.
    command.current_dir(folder).args([what, "--quiet", "--offline"]);
    // Reuses the workspace's builds of dependencies that have the same features and profile.
    command.env("CARGO_TARGET_DIR", workspace::root().join("target"));
    command
}
