//! `cargo xtask release`: checks that each crate is ready for crates.io, and publishes all of them.

mod files;
mod packages;
mod readme;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};

pub(crate) use self::packages::{Package, Packages};
use crate::signals::Signals;
use crate::{process, workspace};

/// Arguments of `cargo xtask release`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Only check metadata, files, links and packages; publish nothing
    #[arg(long)]
    check: bool,
    /// Also compile each package from its packaged files, and build the documentation of each
    /// library with the settings for docs.rs; takes some minutes
    #[arg(long, requires = "check")]
    compile: bool,
}

impl Args {
    pub(crate) const CHECK: Self = Self { check: true, compile: false };
    pub(crate) const COMPILE: Self = Self { check: true, compile: true };
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let root = workspace::root();
    let packages = Packages::load()?;
    check(&root, &packages, signals)?;
    if args.compile {
        // Compiles each package like `cargo publish`, and sends nothing.
        publish(&packages, &["--dry-run", "--allow-dirty"], signals)?;
        for package in packages.libraries() {
            document(&root, package, signals)?;
        }
    }
    if !args.check {
        check_publishable(&root, &packages)?;
        publish(&packages, &[], signals)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn check(root: &Path, packages: &Packages, signals: &Signals) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    for package in &packages.in_order {
        problems.extend(package.problems());
        problems.extend(files::problems(root, package)?);
        problems.extend(readme::problems(root, package, &packages.repository)?);
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    if !problems.is_empty() {
        bail!("{} problems, which are listed above, would break a release", problems.len());
    }
    // Writes the archives into `target/package`. Fails if a dependency, except a development
    // dependency, lacks a version.
    let mut command = workspace::cargo();
    command.args(["package", "--quiet", "--no-verify", "--allow-dirty"]).args(packages.arguments());
    process::run_or_fail(&mut command, signals, "`cargo package` failed; its message is above")?;
    let names: Vec<&str> = packages.in_order.iter().map(|package| package.name.as_str()).collect();
    eprintln!("release: {} crates can be packaged, in this order: {}", names.len(), names.join(", "));
    if packages.repository.is_empty() {
        eprintln!("release: before you publish, set `repository` in `[workspace.package]` of Cargo.toml");
    }
    Ok(())
}

/// Fails if Cargo.toml has no repository URL, or if CHANGELOG.md has no section for a package's
/// current version.
fn check_publishable(root: &Path, packages: &Packages) -> anyhow::Result<()> {
    if packages.repository.is_empty() {
        bail!("set `repository` in `[workspace.package]` of Cargo.toml to the URL of the public repository");
    }
    let changelog = std::fs::read_to_string(root.join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    for package in &packages.in_order {
        let heading = format!("## [{}]", package.version);
        if !changelog.lines().any(|line| line.starts_with(&heading)) {
            bail!("add a section `{heading} - YYYY-MM-DD` to CHANGELOG.md");
        }
    }
    Ok(())
}

/// Runs `cargo publish` once for all packages. With `--dry-run` in `args`, cargo compiles the
/// packages but uploads nothing.
fn publish(packages: &Packages, args: &[&str], signals: &Signals) -> anyhow::Result<()> {
    let mut command = workspace::cargo();
    command.arg("publish").args(args).args(packages.arguments());
    process::run_or_fail(&mut command, signals, "`cargo publish` failed; its message is above")
}

/// Builds the documentation of one crate alone, as docs.rs does.
fn document(root: &Path, package: &Package, signals: &Signals) -> anyhow::Result<()> {
    let mut command = workspace::cargo();
    command.args(["doc", "--lib", "--no-deps", "--quiet", "--manifest-path"]).arg(&package.manifest);
    if !package.docs_features.is_empty() {
        command.arg("--features").arg(package.docs_features.join(","));
    }
    command.args(&package.docs_args);
    // Outside of the workspace's folder, because docs.rs does not read `.cargo/config.toml`.
    command.current_dir(std::env::temp_dir()).env_remove("K8S_OPENAPI_ENABLED_VERSION");
    command.env("CARGO_TARGET_DIR", root.join("target/docs-rs")).env("RUSTDOCFLAGS", "-D warnings");
    let name = &package.name;
    let problem =
        format!("the documentation of {name}, built alone as docs.rs does, has errors; rustdoc printed them");
    process::run_or_fail(&mut command, signals, &problem)?;
    eprintln!("release: built the documentation of {name} alone, as docs.rs does; it has no errors");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_without_repository_or_changelog_section_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("CHANGELOG.md"), "# Changelog\n\n## [0.1.0] - 2030-01-01\n")
            .expect("a file");
        let packages = |repository: &str, version: &str| Packages {
            repository: repository.to_owned(),
            in_order: vec![Package::of_version(version)],
        };
        let url = "https://example.com/informers";
        assert!(check_publishable(folder.path(), &packages("", "0.1.0")).is_err());
        assert!(check_publishable(folder.path(), &packages(url, "0.2.0")).is_err());
        assert!(check_publishable(folder.path(), &packages(url, "0.1.0")).is_ok());
    }
}
