//! `cargo xtask bench --crates`: dependencies and compile times of the published crates.

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use anyhow::Context;

use super::types::cpu_of_children;
use crate::release::Packages;
use crate::signals::Signals;
use crate::{process, workspace};

/// The crates that are measured twice: with and without their default features. Only with these
/// features do the crates depend on k8s-openapi and kube-core.
const WITHOUT_KUBERNETES: [&str; 2] = ["informer-core", "informer-store"];

/// Compiles each published crate with an empty target folder, and prints a table.
pub(super) fn run(signals: &Signals) -> anyhow::Result<()> {
    println!("| crate | dependencies | CPU time | time |\n|---|---|---|---|");
    for package in &Packages::load()?.in_order {
        let name = package.name.as_str();
        if WITHOUT_KUBERNETES.contains(&name) {
            print(name, ", without default features", &["--no-default-features"], signals)?;
        }
        print(name, "", &[], signals)?;
    }
    Ok(())
}

fn print(name: &str, variant: &str, features: &[&str], signals: &Signals) -> anyhow::Result<()> {
    let count = dependencies(name, features)?;
    let target = workspace::root().join("target/crates");
    if target.exists() {
        fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;
    }
    let mut command = workspace::cargo();
    command.args(["build", "--quiet", "--package", name]).args(features);
    command.env("CARGO_TARGET_DIR", &target).env("CARGO_INCREMENTAL", "0");
    let (began, before) = (Instant::now(), cpu_of_children()?);
    process::run_or_fail(&mut command, signals, &format!("{name} does not compile; the message is above"))?;
    let (time, cpu) = (began.elapsed().as_secs_f64(), cpu_of_children()? - before);
    println!("| {name}{variant} | {count} | {cpu:.0} s | {time:.0} s |");
    Ok(())
}

/// Counts direct and indirect dependencies, including those of build scripts but not of tests.
fn dependencies(name: &str, features: &[&str]) -> anyhow::Result<usize> {
    let tree = workspace::tree(name, "normal,build", features)?;
    // Each line begins with name and version of a package. A package can appear several times.
    let packages: BTreeSet<Vec<&str>> = tree
        .lines()
        .map(|line| line.split(' ').take(2).collect())
        .filter(|words: &Vec<&str>| words.len() == 2)
        .collect();
    Ok(packages.len().saturating_sub(1))
}
