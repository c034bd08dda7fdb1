//! Checks dependencies: for example, no HTTP in the core and no Kubernetes in the work queue.

use std::path::Path;

use anyhow::Context;

use super::Finding;
use crate::workspace;

/// The forbidden dependencies of a crate.
#[derive(Debug)]
struct Layer {
    name: &'static str,
    /// Arguments of `cargo tree` that select the features of the crate.
    features: &'static [&'static str],
    /// The crates that must be neither direct nor indirect dependencies.
    never: &'static [&'static str],
    /// The crates that must not be direct dependencies. They can be indirect dependencies.
    not_directly: &'static [&'static str],
    /// The reason why these dependencies are forbidden. Part of the message about a violation.
    because: &'static str,
}

/// Crates that make HTTP requests.
const CLIENTS: &[&str] = &["kube-client", "hyper", "hyper-util", "reqwest", "ureq", "isahc", "curl"];

/// The forbidden dependencies of a crate that must be independent of Kubernetes.
const KUBERNETES: &[&str] = &["kube-core", "kube-client", "k8s-openapi", "informer-core", "informer-store"];

/// Kubernetes' types and client, which take long to compile.
const TYPES: &[&str] = &["kube-core", "kube-client", "k8s-openapi"];

const NO_DEFAULT_FEATURES: &[&str] = &["--no-default-features"];

const LAYERS: [Layer; 9] = [
    Layer {
        name: "informer-core",
        features: &[],
        never: CLIENTS,
        not_directly: &[],
        because: "the core must work with any source of objects",
    },
    Layer {
        name: "informer-store",
        features: &[],
        never: CLIENTS,
        not_directly: &["tokio"],
        because: "the store must work without a runtime",
    },
    Layer {
        name: "informer-macros",
        features: &[],
        never: &["informer-core", "informer-factory", "informer-reflector", "informer-store", "kube-core"],
        not_directly: &[],
        because: "generated code must use only informer-factory",
    },
    Layer {
        name: "informer-codegen",
        features: &[],
        never: KUBERNETES,
        not_directly: &[],
        because: "build scripts must not compile the crates that generated code uses",
    },
    Layer {
        name: "kube-simulator",
        features: &[],
        never: &["informer-core", "informer-store", "informer-reflector", "informer-factory"],
        not_directly: &[],
        because: "the simulator tests informers, so it must work without them",
    },
    Layer {
        name: "informer-workqueue",
        features: &[],
        never: KUBERNETES,
        not_directly: &[],
        because: "the work queue must work for keys of any kind",
    },
    Layer {
        name: "informer-top",
        features: &[],
        never: KUBERNETES,
        not_directly: &[],
        because: "the program must be small to install, and read programs with other versions of informer-monitor",
    },
    Layer {
        name: "informer-core",
        features: NO_DEFAULT_FEATURES,
        never: TYPES,
        not_directly: &[],
        because: "without the feature `kubernetes`, the core must work for plain structs",
    },
    Layer {
        name: "informer-store",
        features: NO_DEFAULT_FEATURES,
        never: TYPES,
        not_directly: &[],
        because: "without the feature `kubernetes`, the store must work for plain structs",
    },
];

pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for layer in &LAYERS {
        let all = dependencies(layer.name, layer.features)?;
        let direct = dependencies(layer.name, &[layer.features, &["--depth", "1"]].concat())?;
        let file = format!("{}/Cargo.toml", layer.name);
        let manifest =
            std::fs::read_to_string(root.join(&file)).with_context(|| format!("cannot read {file}"))?;
        for name in offenders(layer, &all, &direct) {
            let remedy = format!(
                "{} must not depend on {name}: {}; `cargo tree -p {} -e normal -i {name}` shows why",
                layer.name, layer.because, layer.name
            );
            findings.push(Finding::new(&file, line_of(&manifest, name), remedy));
        }
    }
    Ok(findings)
}

fn offenders(layer: &Layer, all: &[String], direct: &[String]) -> Vec<&'static str> {
    let never = layer.never.iter().filter(|name| has(all, name));
    let not_directly = layer.not_directly.iter().filter(|name| has(direct, name));
    never.chain(not_directly).copied().collect()
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|other| other == name)
}

/// Returns the package and its dependencies, without those of tests and build scripts. `extra` has
/// further arguments of `cargo tree`.
fn dependencies(package: &str, extra: &[&str]) -> anyhow::Result<Vec<String>> {
    let tree = workspace::tree(package, "normal", extra)?;
    Ok(tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// Returns the number of the first line in the manifest that begins with the dependency's name, or
/// 1 if no line does.
fn line_of(manifest: &str, name: &str) -> usize {
    let named = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '.', '=']));
    manifest.lines().position(named).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_dependency_is_found() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|n| (*n).into()).collect() };
        let [core, store, macros, _codegen, _simulator, workqueue, _top, plain, _plain_store] = &LAYERS;
        let all = names(&["informer-store", "informer-core", "tokio"]);
        assert_eq!(offenders(core, &all, &all), [""; 0]);
        assert_eq!(offenders(store, &all, &names(&["informer-core"])), [""; 0]);
        assert_eq!(offenders(store, &all, &all), ["tokio"]);
        assert_eq!(offenders(core, &names(&["hyper"]), &[]), ["hyper"]);
        assert_eq!(offenders(macros, &all, &[]), ["informer-core", "informer-store"]);
        assert_eq!(offenders(plain, &names(&["k8s-openapi"]), &[]), ["k8s-openapi"]);
        assert_eq!(offenders(workqueue, &names(&["kube-core"]), &[]), ["kube-core"]);
    }

    #[test]
    fn finding_has_the_line_of_the_dependency() {
        let manifest = "[dependencies]\ntokio-util.workspace = true\ntokio.workspace = true\n";
        assert_eq!(line_of(manifest, "tokio"), 3);
        assert_eq!(line_of(manifest, "hyper"), 1);
    }
}
