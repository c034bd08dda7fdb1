//! Generates Rust modules for Kubernetes' own kinds: their accessors, and lists of names that
//! accessors and indexes of custom resources must not have.
//!
//! Accessors are the methods that lead to an informer, such as `core`, `v1` and `pods` in
//! `factory.core().v1().pods()`.

use std::collections::BTreeSet;

use informer_codegen::__private::{Group, Module, Part, Version, accessors, doc, gated, on_factory};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

/// Returns the module that contains the modules of all groups.
pub(crate) fn root(groups: &[Group], docs: &str) -> Module {
    let files = groups.iter().map(|Group { accessor, .. }| quote!(mod #accessor;));
    let mut parts = vec![Part::Items(quote!(#(#files)*))];
    parts.extend(groups.iter().flat_map(exports));
    Module { docs: docs.lines().map(str::to_owned).collect(), parts }
}

fn exports(group: &Group) -> Vec<Part> {
    let Group { accessor, type_name, versions, .. } = group;
    let export = |names: &[&proc_macro2::Ident]| Part::Items(quote!(pub use self::#accessor::{#(#names),*};));
    let inner = |version: &&Version| version.gate == group.gate;
    let mut names = vec![type_name];
    names.extend(versions.iter().filter(inner).map(|version| &version.type_name));
    let mut parts = vec![export(&names)];
    for version in versions.iter().filter(|version| !inner(version)) {
        parts.extend(gated(&version.gate, vec![export(&[&version.type_name])]));
    }
    gated(&group.gate, parts)
}

pub(crate) fn built_in(group: &Group) -> Module {
    let on_factory = on_factory(group);
    let mut parts = vec![Part::Items(quote!(impl crate::SharedInformerFactory { #on_factory }))];
    parts.extend(accessors(group, &quote!(crate)));
    let docs = format!("The informers of {}.", group.title);
    Module { docs: vec![docs], parts: gated(&group.gate, parts) }
}

/// Returns the content of informer-macros' file `built_in.rs`: lists of the names of all built-in
/// kinds' accessors, and of the methods of a factory and of an informer. A trait method for one of
/// these types needs another name than the type's own methods, which would hide the trait method.
pub(crate) fn list(groups: &[Group], factory: &BTreeSet<String>, informer: &BTreeSet<String>) -> Module {
    let versions: Vec<&Version> = groups.iter().flat_map(|group| &group.versions).collect();
    let count = Literal::usize_unsuffixed(versions.len());
    let versions = versions.iter().map(|Version { api_version, kinds, .. }| {
        let accessors = kinds.iter().map(|kind| kind.accessor.to_string());
        quote!((#api_version, &[#(#accessors),*]))
    });
    let doc = doc(&["Every version of every group, with the accessors of its kinds.".to_owned()]);
    let list = quote!(#doc pub(crate) const ACCESSORS: [(&str, &[&str]); #count] = [#(#versions),*];);
    let docs = "The names of informer-factory's accessors for Kubernetes' own kinds, by group and version.";
    let factory = methods("FACTORY_METHODS", "factory", factory);
    let informer = methods("INFORMER_METHODS", "shared informer", informer);
    let parts = vec![Part::Items(list), Part::Items(factory), Part::Items(informer)];
    Module { docs: vec![docs.to_owned()], parts }
}

/// Returns the content of informer-codegen's file `taken.rs`: lists of the names of all built-in
/// groups' accessors, and of the other methods of a factory. Accessors for groups of custom
/// resources need other names.
pub(crate) fn taken(groups: &[Group], factory: &BTreeSet<String>) -> Module {
    let names: Vec<String> = groups.iter().map(|group| group.accessor.to_string()).collect();
    let count = Literal::usize_unsuffixed(names.len());
    let doc = doc(&["The accessors of Kubernetes' own groups.".to_owned()]);
    let groups = quote!(#doc pub(crate) const GROUPS: [&str; #count] = [#(#names),*];);
    let factory = methods("FACTORY_METHODS", "factory", factory);
    let docs = "The names on a factory that accessors of other groups cannot have.";
    Module { docs: vec![docs.to_owned()], parts: vec![Part::Items(groups), Part::Items(factory)] }
}

fn methods(constant: &str, of: &str, names: &BTreeSet<String>) -> TokenStream {
    let doc = doc(&[format!("The methods of a {of}, which hide methods of traits.")]);
    let (constant, count) = (quote::format_ident!("{constant}"), Literal::usize_unsuffixed(names.len()));
    quote!(#doc pub(crate) const #constant: [&str; #count] = [#(#names),*];)
}
