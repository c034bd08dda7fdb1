//! API groups, versions and kinds, with the names of the methods that are generated for them, such
//! as in `factory.core().v1().pods()`.

use std::collections::BTreeSet;

use anyhow::bail;
use proc_macro2::{Ident, TokenStream};

use crate::shared::gate::Gate;

/// An API group.
#[derive(Debug)]
pub struct Group {
    /// The factory's method for the group, such as `core` in `factory.core().v1().pods()`.
    pub accessor: Ident,
    /// The type that `accessor` returns, for example `Core`.
    pub type_name: Ident,
    /// The name of the group in documentation, such as "the group `apps`".
    pub title: String,
    /// The Kubernetes versions that have the group.
    pub gate: Gate,
    /// Sorted by the name of the accessor.
    pub versions: Vec<Version>,
}

/// A version of an API group.
#[derive(Debug)]
pub struct Version {
    /// The method for the version, such as `v1` in `factory.core().v1().pods()`.
    pub accessor: Ident,
    /// The type that `accessor` returns, for example `CoreV1`.
    pub type_name: Ident,
    /// The `apiVersion`, for example `apps/v1`.
    pub api_version: String,
    /// The Kubernetes versions that have this version of the group.
    pub gate: Gate,
    /// Sorted by the name of the accessor.
    pub kinds: Vec<Kind>,
}

/// A kind in a version of an API group.
#[derive(Debug)]
pub struct Kind {
    /// The method that returns the informer, such as `pods` in `factory.core().v1().pods()`.
    pub accessor: Ident,
    /// The Rust type, for example `k8s_openapi::api::core::v1::ConfigMap`.
    pub path: TokenStream,
    /// The name of the kind, for example `ConfigMap`.
    pub name: String,
    /// Whether objects of the kind belong to namespaces.
    pub namespaced: bool,
    /// The short names of the resource, which become `doc(alias)`es, except a name that equals
    /// `accessor`.
    pub short: Vec<String>,
    /// A description for the documentation of the accessor.
    pub what: Option<String>,
    /// Whether the Rust type derives `Informer`.
    pub derived: bool,
    /// The Kubernetes versions that have the kind.
    pub gate: Gate,
}

/// Sorts items by name. Fails if two items have the same name, or if there are no items. `what` is
/// the word for an item in errors, such as `kind`.
pub fn sort<T>(items: &mut [T], what: &str, name: impl Fn(&T) -> &Ident) -> anyhow::Result<()> {
    if items.is_empty() {
        bail!("the input has no {what}; add at least one {what} to it");
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = items.iter().map(&name).find(|name| !seen.insert(*name)) {
        bail!("the {what} `{twice}` exists twice; remove one");
    }
    items.sort_by(|a, b| name(a).cmp(name(b)));
    Ok(())
}
