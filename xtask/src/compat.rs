//! `cargo xtask compat`: compiles the published crates in unusual configurations, and compares
//! their public interfaces with those of the last release.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::release::{Package, Packages};
use crate::signals::Signals;
use crate::tools::Tool;
use crate::{process, workspace};

const SEMVER_CHECKS: Tool = Tool { name: "cargo-semver-checks", version: "0.51.0", args: &[] };

const TARGET: &str = "target/compat";

/// A check of `cargo xtask compat`. The user can select checks by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Check {
    /// Compile each crate alone, with each set of its features
    Features,
    /// Compile all crates with the Rust version in `[workspace.package]`
    Msrv,
    /// Compile all crates with the lowest versions of their dependencies that Cargo.toml allows
    MinimalVersions,
    /// Compare the public interfaces with those of the last release
    Semver,
}

/// Arguments of `cargo xtask compat`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The checks to run; all by default
    checks: Vec<Check>,
    /// The commit or tag that the check `semver` compares with; by default the newest tag `v…`
    #[arg(long, value_name = "REV")]
    baseline: Option<String>,
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let packages = Packages::load()?;
    let is_selected = |check| args.checks.is_empty() || args.checks.contains(&check);
    if is_selected(Check::Features) {
        for package in &packages.in_order {
            features(package, signals)?;
        }
    }
    if is_selected(Check::Msrv) {
        msrv(&packages, signals)?;
    }
    if is_selected(Check::MinimalVersions) {
        minimal_versions(&packages, signals)?;
    }
    if is_selected(Check::Semver) {
        semver(&packages, args.baseline.as_deref(), signals)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compiles one crate alone, once with each combination of the crate's features. If several crates
/// were compiled together, each of them could use features of a dependency that only another one
/// enables. A missing feature in its own Cargo.toml would not be found.
fn features(package: &Package, signals: &Signals) -> anyhow::Result<()> {
    let name = &package.name;
    for set in subsets(&package.features) {
        let set = set.join(",");
        let mut command = workspace::cargo();
        command.args(["clippy", "--quiet", "--package", name, "--no-default-features", "--features", &set]);
        command.args(["--", "-D", "warnings"]).env("CARGO_TARGET_DIR", workspace::root().join(TARGET));
        run_step(&mut command, &format!("{name} with the features `{set}`"), signals)?;
    }
    Ok(())
}

fn subsets(features: &[String]) -> Vec<Vec<&str>> {
    features.iter().fold(vec![Vec::new()], |sets, feature| {
        let with = sets.iter().map(|set| [set.as_slice(), &[feature.as_str()]].concat());
        sets.iter().cloned().chain(with.collect::<Vec<_>>()).collect()
    })
}

fn msrv(packages: &Packages, signals: &Signals) -> anyhow::Result<()> {
    let version = packages.rust_version();
    let has_compiler = Command::new("rustup").args(["run", version, "rustc", "--version"]).output();
    if !has_compiler.context("cannot start `rustup`, which installs compilers")?.status.success() {
        let mut install = Command::new("rustup");
        install.args(["toolchain", "install", version, "--profile", "minimal"]);
        run_step(&mut install, &format!("the installation of Rust {version}"), signals)?;
    }
    let mut command = Command::new("rustup");
    command.current_dir(workspace::root()).args(["run", version, "cargo", "check", "--quiet", "--locked"]);
    command.arg("--all-features").args(packages.arguments());
    workspace::remove_toolchain_variables(&mut command);
    command.env("CARGO_TARGET_DIR", workspace::root().join(TARGET));
    run_step(&mut command, &format!("all crates with Rust {version}"), signals)
}

fn minimal_versions(packages: &Packages, signals: &Signals) -> anyhow::Result<()> {
    let root = workspace::root();
    let copy = root.join("target/minimal-versions");
    workspace::copy_sources(&copy)?;
    std::fs::remove_file(copy.join("Cargo.lock"))
        .context("cannot remove target/minimal-versions/Cargo.lock, a copy of the workspace's file")?;
    let mut update = workspace::cargo();
    // The option `-Z` is unstable. With this variable, a stable cargo accepts it.
    update.current_dir(&copy).env("RUSTC_BOOTSTRAP", "1");
    update.args(["update", "--quiet", "-Z", "direct-minimal-versions"]);
    run_step(&mut update, "the selection of the lowest versions", signals)?;
    let mut command = workspace::cargo();
    command.current_dir(&copy).args(["check", "--quiet", "--locked", "--all-features"]);
    command.args(packages.arguments()).env("CARGO_TARGET_DIR", root.join(TARGET));
    run_step(&mut command, "all crates with the lowest versions", signals)
}

/// Compares the public interfaces with those of `baseline`, a commit or tag. Fails if the changes
/// need a higher version in Cargo.toml. `None` selects the newest tag `v…`.
fn semver(packages: &Packages, baseline: Option<&str>, signals: &Signals) -> anyhow::Result<()> {
    let root = workspace::root();
    let baseline = match baseline {
        Some(baseline) => Some(baseline.to_owned()),
        None => last_release(&root)?,
    };
    let Some(baseline) = baseline else {
        eprintln!(
            "compat: skipping the comparison of public interfaces with the last release, because no git tag \
             begins with `v`; `--baseline` selects another commit"
        );
        return Ok(());
    };
    let mut command = Command::new(SEMVER_CHECKS.ensure(&root, signals)?);
    command.current_dir(&root).args(["semver-checks", "--baseline-rev", &baseline]);
    // Programs have no interface to compare. The newest version of Kubernetes is selected instead
    // of the one in `.cargo/config.toml`, so that the accessors of its new kinds are compared too.
    let libraries = packages.libraries().flat_map(|package| ["--package", &package.name]);
    command.args(libraries).env("K8S_OPENAPI_ENABLED_VERSION", "1.37");
    workspace::remove_package_variables(&mut command);
    run_step(&mut command, &format!("the comparison of interfaces with {baseline}"), signals)
}

/// Returns the newest tag `v…`; `None` if there is none.
fn last_release(root: &Path) -> anyhow::Result<Option<String>> {
    let mut command = Command::new("git");
    // With the suffix, `v0.2.0-rc.1` is older than `v0.2.0`.
    command.current_dir(root).args(["-c", "versionsort.suffix=-"]);
    command.args(["tag", "--list", "v*", "--sort=-version:refname"]);
    // A git hook sets this variable, which has precedence over the folder.
    command.env_remove("GIT_DIR");
    let output = command.output().context("cannot start `git`, which lists tags")?;
    if !output.status.success() {
        bail!(
            "cannot find the last release, because `git tag` failed; select a commit with `--baseline`; git says: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned))
}

fn run_step(command: &mut Command, what: &str, signals: &Signals) -> anyhow::Result<()> {
    process::run_or_fail(command, signals, &format!("{what} failed; its message is above"))?;
    eprintln!("compat: {what} passed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_contain_each_combination_once() {
        let features = ["a".to_owned(), "b".to_owned()];
        assert_eq!(subsets(&features), [vec![], vec!["a"], vec!["b"], vec!["a", "b"]]);
        assert_eq!(subsets(&[]), [Vec::<&str>::new()]);
    }

    #[test]
    fn failed_git_is_not_a_missing_tag() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        // Without this invalid file, git would look for a repository in the parent folders.
        std::fs::write(dir.path().join(".git"), "invalid").expect("the folder is writable");
        let error = last_release(dir.path()).expect_err("git fails").to_string();
        assert!(error.contains("`git tag` failed"), "{error}");
    }
}
