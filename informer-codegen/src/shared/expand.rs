//! Generates Rust code from the model of API groups, versions and kinds: methods that return
//! informers, such as `factory.core().v1().pods()`.
//!
//! Code can have a gate, which is a condition on the version of Kubernetes. Macros of k8s-openapi
//! around the code, such as `k8s_if_ge_1_36!`, remove the code from programs for other versions.

use proc_macro2::TokenStream;
use quote::quote;

use crate::shared::gate::Gate;
use crate::shared::model::{Group, Kind, Version};

/// Maximum length of a wrapped documentation line after `/// `, in characters. Only a longer word
/// exceeds it.
const WIDTH: usize = 104;

/// The content of a generated file.
#[derive(Debug)]
pub struct Module {
    /// The lines of the documentation at the start of the file.
    pub docs: Vec<String>,
    /// The parts of the file, in their order.
    pub parts: Vec<Part>,
}

/// A part of a generated file. Blank lines separate the parts.
#[derive(Debug)]
pub enum Part {
    /// Rust items without a gate of their own.
    Items(TokenStream),
    /// Parts that exist only in the Kubernetes versions that the gate allows.
    Gated(Gate, Vec<Part>),
}

/// Combines the parts into one [`Part::Gated`]. Returns the parts unchanged if `gate` allows every
/// version of Kubernetes.
pub fn gated(gate: &Gate, parts: Vec<Part>) -> Vec<Part> {
    if gate.macros.is_empty() { parts } else { vec![Part::Gated(gate.clone(), parts)] }
}

/// Returns the code of the factory's accessor method for a group.
pub fn on_factory(group: &Group) -> TokenStream {
    let Group { accessor, type_name, title, versions, .. } = group;
    let versions: Vec<String> = versions.iter().map(|version| format!("`{}`", version.accessor)).collect();
    let doc = doc(&[format!("Returns the informers of {title} ({}).", versions.join(", "))]);
    quote! {
        #doc
        #[must_use]
        pub fn #accessor(&self) -> #type_name<'_> {
            #type_name { factory: self }
        }
    }
}

/// Generates one type for the group, with a method for each version, and one type for each version,
/// with a method for each kind. `front` is the path of the crate informer-factory in the generated
/// code.
pub fn accessors(group: &Group, front: &TokenStream) -> Vec<Part> {
    let Group { type_name, title, versions, .. } = group;
    let doc = doc(&[format!("The informers of {title}, by version.")]);
    let mut parts = vec![Part::Items(quote! {
        #doc
        #[derive(Clone, Copy, Debug)]
        pub struct #type_name<'a> {
            factory: &'a #front::SharedInformerFactory,
        }
    })];
    parts.extend(by_gate(
        versions,
        |version| &version.gate,
        &group.gate,
        |versions| {
            let versions = versions.iter().map(|version| on_group(version));
            quote!(impl<'a> #type_name<'a> { #(#versions)* })
        },
    ));
    for other in versions {
        let parts_of_version = version(group, other, front);
        parts.extend(match other.gate == group.gate {
            true => parts_of_version,
            false => gated(&other.gate, parts_of_version),
        });
    }
    parts
}

fn on_group(version: &Version) -> TokenStream {
    let Version { accessor, type_name, api_version, .. } = version;
    let doc = doc(&[format!("Returns the informers of `{api_version}`.")]);
    quote! {
        #doc
        #[must_use]
        pub fn #accessor(&self) -> #type_name<'a> {
            #type_name { factory: self.factory }
        }
    }
}

fn version(group: &Group, version: &Version, front: &TokenStream) -> Vec<Part> {
    let Version { type_name, kinds, .. } = version;
    let doc = doc(&[format!("The informers of {} in the version `{}`.", group.title, version.accessor)]);
    let mut parts = vec![Part::Items(quote! {
        #doc
        #[derive(Clone, Copy, Debug)]
        pub struct #type_name<'a> {
            factory: &'a #front::SharedInformerFactory,
        }

        impl<'a> #type_name<'a> {
            /// Returns the factory, for extension traits that add accessors to this type.
            #[must_use]
            pub fn factory(&self) -> &'a #front::SharedInformerFactory {
                self.factory
            }
        }
    })];
    parts.extend(by_gate(
        kinds,
        |kind| &kind.gate,
        &version.gate,
        |kinds| {
            let kinds = kinds.iter().map(|kind| on_version(version, kind, front));
            quote!(impl #type_name<'_> { #(#kinds)* })
        },
    ));
    parts
}

/// Generates one [`Part`] for all items that have the same [`Gate`]. `expand` generates the code of
/// these items, and `outer` is the gate of the surrounding code.
fn by_gate<T>(
    items: &[T],
    gate: impl Fn(&T) -> &Gate,
    outer: &Gate,
    expand: impl Fn(&[&T]) -> TokenStream,
) -> Vec<Part> {
    let mut gates: Vec<&Gate> = Vec::new();
    for item in items {
        if !gates.contains(&gate(item)) {
            gates.push(gate(item));
        }
    }
    gates.sort_by_key(|gate| *gate != outer);
    let expand = |of: &Gate| {
        let items: Vec<&T> = items.iter().filter(|item| gate(item) == of).collect();
        let part = vec![Part::Items(expand(&items))];
        // The surrounding code already has the macros of `outer`.
        if of == outer { part } else { gated(of, part) }
    };
    gates.into_iter().flat_map(expand).collect()
}

fn on_version(version: &Version, kind: &Kind, front: &TokenStream) -> TokenStream {
    let Kind { accessor, path, name, namespaced, short, what, derived, gate } = kind;
    // The compiler rejects a method whose alias is its own name.
    let short: Vec<&String> = short.iter().filter(|name| *accessor != **name).collect();
    let words = accessor.to_string().replace('_', " ");
    let what = what.as_ref().map_or_else(String::new, |what| format!(": {what}"));
    let scope = if *namespaced { "namespaced" } else { "cluster-scoped" };
    let mut facts = format!("Kind `{name}` of `{}`, {scope}", version.api_version);
    if !short.is_empty() {
        let short: Vec<String> = short.iter().map(|name| format!("`{name}`")).collect();
        facts += &format!("; for kubectl also {}", short.join(", "));
    }
    facts += ".";
    if let Some(title) = &gate.title {
        facts += &format!(" Only with k8s-openapi's {title}.");
    }
    let doc = doc(&[format!("Returns the shared informer of {words}{what}."), facts]);
    let informer = match derived {
        true => quote!(informer_with(#path::new_informer)),
        false => quote!(informer()),
    };
    // Inlined, so that the code of an informer is compiled only where the accessor is used.
    quote! {
        #doc
        #(#[doc(alias = #short)])*
        #[inline]
        #[must_use]
        pub fn #accessor(&self) -> #front::SharedIndexInformer<#path> {
            self.factory.#informer
        }
    }
}

/// Returns `#[doc]` attributes with these paragraphs.
pub fn doc(paragraphs: &[String]) -> TokenStream {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in paragraphs {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(wrapped(paragraph).into_iter().map(|line| format!(" {line}")));
    }
    quote!(#(#[doc = #lines])*)
}

/// Splits a paragraph into lines of at most [`WIDTH`] characters, or of one longer word.
pub(crate) fn wrapped(paragraph: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + word.chars().count() < WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use quote::format_ident;

    use super::*;

    #[test]
    fn short_name_equal_to_the_accessor_is_no_alias() {
        let kind = Kind {
            accessor: format_ident!("widgets"),
            path: quote!(Widget),
            name: "Widget".into(),
            namespaced: true,
            short: vec!["widgets".into(), "wd".into()],
            what: None,
            derived: true,
            gate: Gate::default(),
        };
        let version = Version {
            accessor: format_ident!("v1"),
            type_name: format_ident!("StableV1"),
            api_version: "stable.example.com/v1".into(),
            gate: Gate::default(),
            kinds: Vec::new(),
        };
        let code = on_version(&version, &kind, &quote!(informer_factory)).to_string();
        assert_eq!(code.matches("alias =").count(), 1, "{code}");
        assert!(code.contains("alias = \"wd\"") && code.contains("kubectl also `wd`."), "{code}");
    }
}
