//! Finds the programs of a control plane, such as kube-apiserver and etcd: in the folder
//! `KUBEBUILDER_ASSETS`, like other Kubernetes tests, or among the programs that xtask builds from
//! source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::go_build;
use super::{OptionalProgram, Options};
use crate::signals::Signals;

const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// The programs that the folder `KUBEBUILDER_ASSETS` contains by convention.
const IN_ASSETS: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];

/// The paths of the programs of a control plane, by name.
#[derive(Debug)]
pub(crate) struct Programs {
    paths: BTreeMap<&'static str, PathBuf>,
}

impl Programs {
    /// Finds the programs that `options` need, and builds missing ones. Fails instead if
    /// `KUBEBUILDER_ASSETS` is set, and a program that must be in this folder is missing.
    pub(crate) fn find(options: &Options, signals: &Signals) -> anyhow::Result<Self> {
        let mut names = needed(options);
        let mut paths = BTreeMap::new();
        if let Some(assets) = std::env::var_os(ASSETS).filter(|assets| !assets.is_empty()) {
            for name in IN_ASSETS {
                if names.contains(&name) {
                    paths.insert(name, in_assets(Path::new(&assets), name)?);
                }
            }
            names.retain(|name| !IN_ASSETS.contains(name));
        }
        if !names.is_empty() {
            let folder = go_build::ensure(&names, signals)?;
            paths.extend(names.into_iter().map(|name| (name, folder.join(name))));
        }
        Ok(Self { paths })
    }

    pub(crate) fn path(&self, name: &str) -> anyhow::Result<&Path> {
        let path = self.paths.get(name);
        let path = path
            .with_context(|| format!("the program {name} was not prepared; report this as a bug of xtask"))?;
        Ok(path)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.paths.iter().map(|(name, path)| (*name, path.as_path()))
    }
}

fn needed(options: &Options) -> Vec<&'static str> {
    let extras = [
        (OptionalProgram::Kubectl, "kubectl"),
        (OptionalProgram::ControllerManager, "kube-controller-manager"),
        (OptionalProgram::Scheduler, "kube-scheduler"),
        (OptionalProgram::Kwok, go_build::KWOK),
    ];
    let extras = extras.into_iter().filter(|(extra, _)| options.wants(*extra)).map(|(_, name)| name);
    ["etcd", "kube-apiserver"].into_iter().chain(extras).collect()
}

fn in_assets(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    if !path.is_file() {
        bail!(
            "{ASSETS} is set, but {} does not exist; download the programs with \
             `setup-envtest use -p path`, or unset {ASSETS} to have them built with Go",
            path.display()
        );
    }
    std::path::absolute(&path).with_context(|| format!("cannot make the path {} absolute", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_determine_needed_programs() {
        assert_eq!(needed(&Options::default()), ["etcd", "kube-apiserver"]);
        let options =
            Options { with: vec![OptionalProgram::Kwok, OptionalProgram::Kubectl], ..Options::default() };
        assert_eq!(needed(&options), ["etcd", "kube-apiserver", "kubectl", "kwok"]);
    }

    #[test]
    fn folder_without_the_program_is_an_error_with_remedy() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let error = in_assets(dir.path(), "etcd").expect_err("the folder is empty").to_string();
        assert!(error.contains("setup-envtest"), "{error}");
    }
}
