//! From names to Rust code: what the accessors look like, and nothing else.

use proc_macro2::TokenStream;
use quote::quote;

use super::lower::{Group, Kind, Version};

/// The content of a file.
#[derive(Debug)]
pub(crate) struct Module {
    /// The documentation that opens it.
    pub(crate) docs: Vec<String>,
    /// What is apart from each other by a blank line.
    pub(crate) parts: Vec<TokenStream>,
}

/// The module with the accessors on the factory, and the groups they return.
pub(crate) fn root(groups: &[Group]) -> Module {
    let versions = || groups.iter().flat_map(|group| &group.versions);
    let files = versions().map(|version| &version.file);
    let exports = versions().map(|Version { file, type_name, .. }| quote!(pub use self::#file::#type_name;));
    let on_factory = groups.iter().map(on_factory);
    let mut parts = vec![
        quote!(#(mod #files;)*),
        quote!(#(#exports)*),
        quote!(
            use crate::SharedInformerFactory;
        ),
        quote!(impl SharedInformerFactory { #(#on_factory)* }),
    ];
    parts.extend(groups.iter().flat_map(group));
    let docs = [
        "The informers of Kubernetes' built-in kinds, by group and version: `factory.core().v1().pods()`.",
        "",
        "Each is what [`SharedInformerFactory::informer`] returns for the kind.",
    ];
    Module { docs: docs.map(str::to_owned).to_vec(), parts }
}

/// The module of a version.
pub(crate) fn version(group: &Group, version: &Version) -> Module {
    let Version { type_name, module, api_version, .. } = version;
    let doc = format!(" The informers of {} in the version `{}`.", group.title, version.accessor);
    let accessors = version.kinds.iter().map(|kind| accessor(version, kind));
    let parts = vec![
        quote!(use #module;),
        quote!(
            use crate::{SharedIndexInformer, SharedInformerFactory};
        ),
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug)]
            pub struct #type_name<'a> {
                pub(super) factory: &'a SharedInformerFactory,
            }
        },
        quote! {
            impl<'a> #type_name<'a> {
                #(#accessors)*

                /// Returns the factory, for accessors of one's own.
                #[must_use]
                pub fn factory(&self) -> &'a SharedInformerFactory {
                    self.factory
                }
            }
        },
    ];
    Module { docs: vec![format!("The informers of the kinds in `{api_version}`.")], parts }
}

fn on_factory(group: &Group) -> TokenStream {
    let Group { accessor, type_name, title, versions } = group;
    let versions: Vec<String> = versions.iter().map(|version| format!("`{}`", version.accessor)).collect();
    let doc = format!(" Returns the informers of {title} ({}).", versions.join(", "));
    quote! {
        #[doc = #doc]
        #[must_use]
        pub fn #accessor(&self) -> #type_name<'_> {
            #type_name { factory: self }
        }
    }
}

fn group(group: &Group) -> [TokenStream; 2] {
    let Group { type_name, title, versions, .. } = group;
    let doc = format!(" The informers of {title}, by version.");
    let versions = versions.iter().map(|version| {
        let Version { accessor, type_name, .. } = version;
        let doc = format!(" Returns the informers of `{}`.", version.api_version);
        quote! {
            #[doc = #doc]
            #[must_use]
            pub fn #accessor(&self) -> #type_name<'a> {
                #type_name { factory: self.factory }
            }
        }
    });
    [
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug)]
            pub struct #type_name<'a> {
                factory: &'a SharedInformerFactory,
            }
        },
        quote!(impl<'a> #type_name<'a> { #(#versions)* }),
    ]
}

fn accessor(version: &Version, kind: &Kind) -> TokenStream {
    let Kind { accessor, type_name, namespaced } = kind;
    let types = &version.accessor;
    let doc = format!(
        " Returns the shared informer of {} (`{type_name}`, `{}`, {}).",
        accessor.to_string().replace('_', " "),
        version.api_version,
        if *namespaced { "namespaced" } else { "cluster-scoped" },
    );
    quote! {
        #[doc = #doc]
        #[must_use]
        pub fn #accessor(&self) -> SharedIndexInformer<#types::#type_name> {
            self.factory.informer()
        }
    }
}
