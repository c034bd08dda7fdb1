//! Generates the simulator's table of built-in kinds.

use proc_macro2::TokenStream;
use quote::quote;

use informer_codegen::__private::{Module, Part};

use super::data::{Data, Kind};

const DOCS: &str =
    "The published facts about all built-in kinds of Kubernetes that can be listed and watched.";

/// Returns the content of the simulator's file `table.rs`: one row for each kind of the Kubernetes
/// version `data.kubernetes`.
pub(crate) fn table(data: &Data) -> Module {
    let versions = data.groups.iter().flat_map(|group| group.versions.iter().map(move |it| (group, it)));
    let rows = versions.flat_map(|(group, version)| {
        let kinds = version.kinds.iter().filter(|kind| kind.is_in(&data.kubernetes));
        kinds.map(move |kind| row(&group.group, &version.version, kind))
    });
    let table = quote! {
        use super::facts::{ALL_VERBS, Facts};
        /// One row for each kind, sorted by group, version and kind.
        pub(super) static TABLE: &[Facts] = &[#(#rows),*];
    };
    Module { docs: vec![DOCS.to_owned()], parts: vec![Part::Items(table)] }
}

fn row(group: &str, version: &str, facts: &Kind) -> TokenStream {
    let Kind { kind, plural, namespaced, short, categories, verbs, subresources, fields, columns, .. } =
        facts;
    let verbs = if verbs.is_empty() { quote!(ALL_VERBS) } else { quote!(&[#(#verbs),*]) };
    quote! {
        Facts {
            group: #group,
            version: #version,
            kind: #kind,
            plural: #plural,
            namespaced: #namespaced,
            short_names: &[#(#short),*],
            categories: &[#(#categories),*],
            verbs: #verbs,
            subresources: &[#(#subresources),*],
            selectable_fields: &[#(#fields),*],
            columns: &[#(#columns),*],
        }
    }
}
