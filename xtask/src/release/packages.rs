//! The published crates of the workspace, in the order of their dependencies, and the rules for their metadata.

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::{process, workspace};

/// Maximum number of keywords of a crate on crates.io.
const MAX_KEYWORDS: usize = 5;

/// Maximum length of a keyword on crates.io, in ASCII characters.
const MAX_KEYWORD: usize = 20;

/// Maximum number of categories of a crate on crates.io.
const MAX_CATEGORIES: usize = 5;

#[derive(Debug)]
pub(crate) struct Packages {
    /// `repository` in `[workspace.package]`; empty until the project has a public repository.
    pub(crate) repository: String,
    /// Each crate comes after its dependencies.
    pub(crate) in_order: Vec<Package>,
}

/// One crate, as `cargo metadata` describes it.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) manifest: PathBuf,
    /// The features except `default`.
    pub(crate) features: Vec<String>,
    /// `features` in `[package.metadata.docs.rs]`.
    pub(crate) docs_features: Vec<String>,
    /// `cargo-args` in `[package.metadata.docs.rs]`.
    pub(crate) docs_args: Vec<String>,
    /// The names of dependencies that must be published before this crate.
    dependencies: Vec<String>,
    /// Whether the package has a library or procedural macros.
    pub(crate) has_library: bool,
    /// Whether the crate depends on k8s-openapi, kube or kube-core, directly or through another
    /// published crate of the workspace.
    uses_kubernetes: bool,
    metadata: Value,
}

impl Packages {
    pub(crate) fn load() -> anyhow::Result<Self> {
        let output = workspace::cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .context("cannot start `cargo metadata`")?;
        let metadata = process::stdout(output, "cargo metadata")?;
        let metadata: Value =
            serde_json::from_slice(&metadata).context("`cargo metadata` printed no JSON")?;
        Self::from_metadata(&metadata)
    }

    fn from_metadata(metadata: &Value) -> anyhow::Result<Self> {
        let all = metadata["packages"].as_array().context("`cargo metadata` printed no packages")?;
        // `cargo metadata` prints `publish = false` as an empty list of registries.
        let published = all.iter().filter(|package| package["publish"] != Value::Array(Vec::new()));
        let mut in_order = sort(published.map(Package::new).collect())?;
        for index in 0..in_order.len() {
            let (before, rest) = in_order.split_at_mut(index);
            let package = &mut rest[0];
            let uses_kubernetes = package.library_dependencies().any(|name| {
                ["k8s-openapi", "kube", "kube-core"].contains(&name)
                    || before.iter().any(|other| other.name == name && other.uses_kubernetes)
            });
            package.uses_kubernetes = uses_kubernetes;
        }
        let repository = in_order.first().map_or("", |package| package.text("repository")).to_owned();
        Ok(Self { repository, in_order })
    }

    /// Returns the oldest supported version of Rust, which is the same for all crates.
    pub(crate) fn rust_version(&self) -> &str {
        self.in_order.first().map_or("", |package| package.text("rust_version"))
    }

    /// Returns the arguments of cargo that select these crates.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.in_order.iter().flat_map(|package| ["--package", &package.name])
    }

    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Package> {
        self.in_order.iter().filter(|package| package.has_library)
    }
}

impl Package {
    fn new(metadata: &Value) -> Self {
        let docs = &metadata["metadata"]["docs"]["rs"];
        let features = metadata["features"].as_object();
        // A published package lacks development dependencies that have no version in Cargo.toml.
        let dependencies = list(&metadata["dependencies"]).filter(|dependency| {
            let is_local = dependency["path"].is_string();
            !(dependency["kind"] == "dev" && (!is_local || dependency["req"] == "*"))
        });
        Self {
            name: metadata["name"].as_str().unwrap_or_default().to_owned(),
            version: metadata["version"].as_str().unwrap_or_default().to_owned(),
            manifest: metadata["manifest_path"].as_str().unwrap_or_default().into(),
            features: features
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .filter(|name| name != "default")
                .collect(),
            docs_features: strings(&docs["features"]),
            docs_args: strings(&docs["cargo-args"]),
            dependencies: dependencies.filter_map(|it| Some(it["name"].as_str()?.to_owned())).collect(),
            has_library: list(&metadata["targets"])
                .flat_map(|target| list(&target["kind"]))
                .any(|kind| kind == "lib" || kind == "proc-macro"),
            uses_kubernetes: false,
            metadata: metadata.clone(),
        }
    }

    /// Returns a package that has only a version.
    #[cfg(test)]
    pub(super) fn of_version(version: &str) -> Self {
        Self { version: version.to_owned(), ..Self::default() }
    }

    /// Excludes development dependencies.
    fn library_dependencies(&self) -> impl Iterator<Item = &str> {
        list(&self.metadata["dependencies"])
            .filter(|dependency| dependency["kind"] != "dev")
            .filter_map(|dependency| dependency["name"].as_str())
    }

    fn text(&self, field: &str) -> &str {
        self.metadata[field].as_str().unwrap_or_default()
    }

    /// Returns a message for each rule that the manifest breaks.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for field in ["description", "license", "readme", "rust_version"] {
            if self.text(field).is_empty() {
                problems.push(format!("set `{}`", field.replace('_', "-")));
            }
        }
        if self.metadata["repository"].is_null() {
            problems.push("add `repository.workspace = true`".to_owned());
        }
        let keywords = strings(&self.metadata["keywords"]);
        let is_keyword = |word: &String| {
            word.len() <= MAX_KEYWORD
                && word.starts_with(|letter: char| letter.is_ascii_alphanumeric())
                && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-+".contains(letter))
        };
        if !(1..=MAX_KEYWORDS).contains(&keywords.len()) || !keywords.iter().all(is_keyword) {
            let rule = format!("1 to {MAX_KEYWORDS} keywords of at most {MAX_KEYWORD} ASCII characters");
            problems.push(format!("set {rule}"));
        }
        if !(1..=MAX_CATEGORIES).contains(&strings(&self.metadata["categories"]).len()) {
            problems.push(format!("set 1 to {MAX_CATEGORIES} categories"));
        }
        // Without a Kubernetes version, k8s-openapi does not compile.
        let has_version = self.docs_features.iter().any(|feature| feature.starts_with("k8s-openapi/"))
            || self.docs_args.iter().any(|arg| arg.contains("K8S_OPENAPI_ENABLED_VERSION"));
        if self.uses_kubernetes && !has_version {
            problems.push(
                "select a Kubernetes version in `[package.metadata.docs.rs]`: the feature `k8s-openapi/latest`, \
                 or `cargo-args` that set `K8S_OPENAPI_ENABLED_VERSION`"
                    .to_owned(),
            );
        }
        problems.into_iter().map(|problem| format!("{}/Cargo.toml: {problem}", self.name)).collect()
    }
}

/// Each crate comes after its dependencies.
fn sort(mut packages: Vec<Package>) -> anyhow::Result<Vec<Package>> {
    let mut sorted: Vec<Package> = Vec::new();
    while !packages.is_empty() {
        let is_waiting =
            |package: &Package| packages.iter().any(|other| package.dependencies.contains(&other.name));
        let Some(index) = packages.iter().position(|package| !is_waiting(package)) else {
            let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
            bail!(
                "no order of publishing is possible, because some of these crates depend on each other: {}; \
                 give a development dependency a path without a version, so that packages do not contain it",
                names.join(", ")
            );
        };
        sorted.push(packages.remove(index));
    }
    Ok(sorted)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn strings(value: &Value) -> Vec<String> {
    list(value).filter_map(|value| Some(value.as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, dependencies: &Value) -> Value {
        json!({
            "name": name, "version": "0.1.0", "manifest_path": format!("/{name}/Cargo.toml"), "publish": null,
            "description": "A.", "license": "Apache-2.0", "readme": "README.md", "rust_version": "1.89",
            "repository": "", "keywords": ["a"], "categories": ["caching"], "dependencies": dependencies,
            "metadata": null, "targets": [{ "kind": ["lib"] }],
        })
    }

    fn dependency(name: &str, kind: Option<&str>, requirement: &str) -> Value {
        json!({ "name": name, "kind": kind, "req": requirement, "path": format!("/{name}") })
    }

    fn load(packages: &[Value]) -> anyhow::Result<Packages> {
        Packages::from_metadata(&json!({ "packages": packages }))
    }

    #[test]
    fn crates_come_after_their_dependencies() {
        let upper = package("upper", &json!([dependency("lower", None, "^0.1.0")]));
        // Without a version, this dependency is not in the package.
        let lower = package("lower", &json!([dependency("upper", Some("dev"), "*")]));
        let mut private = package("private", &json!([]));
        private["publish"] = json!([]);
        let packages = load(&[upper, private, lower]).expect("an order");
        assert_eq!(packages.arguments().collect::<Vec<_>>(), ["--package", "lower", "--package", "upper"]);
        assert!(packages.in_order.iter().all(|package| package.problems().is_empty()));
    }

    #[test]
    fn package_of_a_program_has_no_library() {
        let mut program = package("program", &json!([]));
        program["targets"] = json!([{ "kind": ["bin"] }, { "kind": ["test"] }]);
        let packages = load(&[program, package("library", &json!([]))]).expect("an order");
        let libraries: Vec<_> = packages.libraries().map(|package| package.name.as_str()).collect();
        assert_eq!((libraries, packages.in_order.len()), (vec!["library"], 2));
    }

    #[test]
    fn versioned_cycle_of_dev_dependencies_is_refused() {
        let upper = package("upper", &json!([dependency("lower", None, "^0.1.0")]));
        let lower = package("lower", &json!([dependency("upper", Some("dev"), "^0.1.0")]));
        let error = load(&[upper, lower]).expect_err("a cycle");
        assert!(error.to_string().contains("upper, lower"), "{error}");
    }

    #[test]
    fn missing_metadata_is_found() {
        let mut broken = package("broken", &json!([]));
        for field in
            ["description", "license", "readme", "rust_version", "repository", "keywords", "categories"]
        {
            broken[field] = Value::Null;
        }
        assert_eq!(load(&[broken]).expect("an order").in_order[0].problems().len(), 7);
    }

    #[test]
    fn missing_kubernetes_version_for_docs_is_found() {
        let core = package("core", &json!([dependency("k8s-openapi", None, "^0.29")]));
        let mut store = package("store", &json!([dependency("core", None, "^0.1.0")]));
        let problems = |packages: &[Value]| -> Vec<usize> {
            let packages = load(packages).expect("an order");
            packages.in_order.iter().map(|package| package.problems().len()).collect()
        };
        assert_eq!(problems(&[core.clone(), store.clone()]), [1, 1]);
        store["metadata"] = json!({ "docs": { "rs": { "features": ["k8s-openapi/latest"] } } });
        assert_eq!(problems(&[core, store]), [1, 0]);
    }
}
