//! Groups, versions and kinds with the names of their accessors.

use std::collections::BTreeSet;

use anyhow::bail;
use proc_macro2::{Ident, TokenStream};

use crate::shared::gate::Gate;

/// A group with its accessor on the factory.
#[derive(Debug)]
pub struct Group {
    /// `core`.
    pub accessor: Ident,
    /// `Core`.
    pub type_name: Ident,
    /// The name in documentation.
    pub title: String,
    /// The Kubernetes versions that have it.
    pub gate: Gate,
    /// Sorted by accessor.
    pub versions: Vec<Version>,
}

/// A version of a group.
#[derive(Debug)]
pub struct Version {
    /// `v1`.
    pub accessor: Ident,
    /// `CoreV1`.
    pub type_name: Ident,
    /// The `apiVersion`: `v1`, `apps/v1`.
    pub api_version: String,
    /// The Kubernetes versions that have it.
    pub gate: Gate,
    /// Sorted by accessor.
    pub kinds: Vec<Kind>,
}

/// A kind with its accessor on the version.
#[derive(Debug)]
pub struct Kind {
    /// `config_maps`.
    pub accessor: Ident,
    /// The type: `k8s_openapi::api::core::v1::ConfigMap`.
    pub path: TokenStream,
    /// `ConfigMap`.
    pub name: String,
    /// Whether objects belong to namespaces.
    pub namespaced: bool,
    /// Aliases for searches in the documentation.
    pub short: Vec<String>,
    /// A short description.
    pub what: Option<String>,
    /// Whether its type derives `Informer`.
    pub derived: bool,
    /// The Kubernetes versions that have it.
    pub gate: Gate,
}

/// Sorts by name, and fails for duplicates and missing entries.
pub fn sort<T>(items: &mut [T], what: &str, name: impl Fn(&T) -> &Ident) -> anyhow::Result<()> {
    if items.is_empty() {
        bail!("there is no {what}; add one, or remove the empty entry");
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = items.iter().map(&name).find(|name| !seen.insert(*name)) {
        bail!("the {what} `{twice}` is duplicate; remove one");
    }
    items.sort_by(|a, b| name(a).cmp(name(b)));
    Ok(())
}
