//! The types of a kind: turns the output of kopium into a complete source file.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};
use heck::ToUpperCamelCase;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};

use crate::definition::Definition;
use crate::generator::MARK;
use crate::indexes::{self, Index};
use crate::shared::format;

/// The names that kopium's code uses without importing them, by module.
const NAMES: [(&str, &[&str]); 6] = [
    ("k8s_openapi::api::core::v1", &["ObjectReference"]),
    ("k8s_openapi::apimachinery::pkg::apis::meta::v1", &["Condition"]),
    ("k8s_openapi::apimachinery::pkg::util::intstr", &["IntOrString"]),
    ("kube", &["CustomResource"]),
    ("serde", &["Deserialize", "Serialize"]),
    ("std::collections", &["BTreeMap"]),
];

/// Texts in kopium's code, and their replacements. Users then do not need the crate chrono, and
/// `gen` is a keyword in the edition 2024.
// `NaiveDate` is a date without a time. Kubernetes has no such type.
const REPLACED: [(&str, &str); 3] = [
    ("DateTime<Utc>", "k8s_openapi::apimachinery::pkg::apis::meta::v1::Time"),
    ("NaiveDate", "String"),
    ("pub gen:", "pub r#gen:"),
];

/// What a user can do if kopium's output for a definition is not usable.
pub(crate) const INSTEAD: &str = "do not pass this definition, and use kube's DynamicObject for its objects";

/// The start of the derive attribute of kopium's spec type.
const SPEC: &str = "#[derive(CustomResource, ";

/// Returns the name of kopium's type for a kind: `HTTPRoute` becomes `HttpRoute`. kopium converts
/// names with the same crate (heck) as this function.
pub(crate) fn root_name(kind: &str) -> String {
    kind.to_upper_camel_case()
}

/// The generated Rust types of a kind in one version.
#[derive(Debug)]
pub(crate) struct Types {
    root: Ident,
    /// The code of the generated file.
    source: String,
    indexes: Vec<Index>,
}

impl Types {
    /// Parses the output of kopium. Adds the missing imports and types, the derive `Informer`, and
    /// the indexes for selectable fields.
    pub(crate) fn parse(definition: &Definition, version: &str, source: &str) -> anyhow::Result<Self> {
        let place = || format!("`{}` ({version}) of {}", definition.kind, definition.path.display());
        // Skip the comments at the start, which contain the command line of kopium.
        let lines = source.lines().skip_while(|line| line.is_empty() || line.starts_with("// "));
        let replaced = |line: &str| {
            // An attribute can contain a JSON name such as `startNaiveDate`.
            let is_code = !line.trim_start().starts_with(['#', '/']);
            let replacements = REPLACED.iter().filter(|_| is_code);
            // Lines of documentation can end with a space, which rustfmt keeps.
            replacements.fold(line.trim_end().to_owned(), |line, (from, to)| line.replace(from, to))
        };
        let source = lines.map(replaced).collect::<Vec<_>>().join("\n");
        let file: syn::File = syn::parse_str(&source)
            .with_context(|| format!("kopium generated invalid Rust for {}; {INSTEAD}", place()))?;
        let mut named = BTreeSet::new();
        collect(file.to_token_stream(), &mut named);
        let root = root_name(&definition.kind);
        let mut defined: BTreeSet<String> = BTreeSet::new();
        for name in file.items.iter().filter_map(name) {
            if name == root || defined.contains(&name) {
                bail!("two types of {} have the name `{name}`; {INSTEAD}", place());
            }
            defined.insert(name);
        }
        if !defined.contains(&format!("{root}Spec")) {
            bail!("kopium generated no type `{root}Spec` for {}; {INSTEAD}", place());
        }
        let mut uses = String::new();
        for (module, names) in NAMES {
            let needed = |name: &&&str| named.contains(**name) && !defined.contains(**name) && **name != root;
            match names.iter().filter(needed).copied().collect::<Vec<_>>().as_slice() {
                [] => {}
                [name] => uses += &format!("use {module}::{name};\n"),
                names => uses += &format!("use {module}::{{{}}};\n", names.join(", ")),
            }
        }
        let source = with_missing(&open_enums(&source, &file), &root, &file, &defined);
        let source = without_missing_status(source, &root, &defined);
        let indexes = indexes::indexes(definition, version, &root, &file);
        let of_indexes = indexes_name(&root);
        // A type that is only named gets an alias.
        if !indexes.is_empty() && named.contains(&of_indexes) {
            bail!(
                "a type of {} and the trait for its indexes both have the name `{of_indexes}`; {INSTEAD}",
                place()
            );
        }
        if source.lines().filter(|line| line.starts_with(SPEC)).count() > 1 {
            bail!("kopium marked two types of {} as custom resources; {INSTEAD}", place());
        }
        let spec = source.split_once(SPEC).and_then(|(before, after)| {
            let (derives, after) = after.split_once(")]")?;
            Some((before, derives, after))
        });
        let Some((before, derives, after)) = spec else {
            bail!(
                "kopium did not mark `{root}Spec` of {} as a custom resource; report this as a bug of informer-codegen",
                place()
            );
        };
        let attributes = indexes.iter().map(Index::attribute);
        let attribute = quote!(#[informer(no_accessor #(, #attributes)*)]);
        let source =
            format!("{uses}\n{before}{SPEC}informer_factory::Informer, {derives})]\n{attribute}{after}");
        Ok(Self { root: Ident::new(&root, Span::call_site()), source, indexes })
    }

    /// Returns the exported names: the type of the objects and, if there are indexes, the trait
    /// with the lookup methods of the indexes.
    pub(crate) fn exports(&self) -> TokenStream {
        let root = &self.root;
        match self.index_trait().map(|name| format_ident!("{name}")) {
            None => quote!(#root),
            Some(index_trait) => quote!({#root, #index_trait}),
        }
    }

    /// Returns the name of the trait with the lookup methods of the indexes. `None` if there are no
    /// indexes.
    pub(crate) fn index_trait(&self) -> Option<String> {
        (!self.indexes.is_empty()).then(|| indexes_name(&self.root.to_string()))
    }

    pub(crate) fn text(
        &self,
        folder: &Path,
        definition: &Definition,
        version: &str,
    ) -> anyhow::Result<String> {
        let (kind, group, source) = (&definition.kind, &definition.group, &self.source);
        let head = format!("//! `{kind}` of `{group}/{version}`.\n// {MARK}; do not edit.\n");
        format::rustfmt(folder, format!("{head}\n{source}\n"))
    }
}

/// Returns the name of the trait that the derive `Informer` generates for the indexes of a kind.
fn indexes_name(root: &str) -> String {
    format!("{root}Indices")
}

fn name(item: &syn::Item) -> Option<String> {
    match item {
        syn::Item::Struct(item) => Some(item.ident.to_string()),
        syn::Item::Enum(item) => Some(item.ident.to_string()),
        _ => None,
    }
}

/// Adds a variant for unknown values to enums without fields, so that objects with values of a
/// newer definition can be decoded. Skips `Copy` enums, and enums that have all names for the
/// variant already.
fn open_enums(source: &str, file: &syn::File) -> String {
    let mut opened = source.to_owned();
    for item in &file.items {
        let syn::Item::Enum(item) = item else { continue };
        let has_fields = item.variants.iter().any(|variant| !matches!(variant.fields, syn::Fields::Unit));
        let is_copy = item.attrs.iter().any(|attribute| {
            attribute.path().is_ident("derive") && attribute.to_token_stream().to_string().contains("Copy")
        });
        // A `Copy` enum cannot contain an unknown value, which is a `String`.
        if has_fields || is_copy {
            continue;
        }
        let is_taken = |name: &str| item.variants.iter().any(|variant| variant.ident == name);
        let Some(name) = ["Other", "OtherValue", "AnyOther"].into_iter().find(|name| !is_taken(name)) else {
            continue;
        };
        let head = format!("pub enum {} {{\n", item.ident);
        let end = opened.find(&head).and_then(|start| opened[start..].find("\n}").map(|end| start + end + 1));
        if let Some(end) = end {
            let variant = format!(
                "    /// A value that this definition doesn't name.\n    #[serde(untagged)]\n    {name}(String),\n"
            );
            opened.insert_str(end, &variant);
        }
    }
    opened
}

/// Appends an alias of `serde_json::Value` to `source` for each type that kopium's code uses and
/// does not define, if the name of the type begins with `root`. `file` is kopium's code, and
/// `defined` has the names of its types.
fn with_missing(source: &str, root: &str, file: &syn::File, defined: &BTreeSet<String>) -> String {
    let mut named = BTreeSet::new();
    for item in &file.items {
        match item {
            syn::Item::Struct(item) => types_of(&item.fields, &mut named),
            syn::Item::Enum(item) => {
                item.variants.iter().for_each(|variant| types_of(&variant.fields, &mut named));
            }
            _ => {}
        }
    }
    // kopium does not define a type if the schema does not name its fields. The names of these
    // types begin with the name of the kind's own type.
    let is_imported = |name: &String| NAMES.iter().any(|(_, names)| names.contains(&name.as_str()));
    let missing = named.iter().filter(|name| {
        name.starts_with(root) && *name != root && !defined.contains(*name) && !is_imported(name)
    });
    missing.fold(source.to_owned(), |source, name| {
        format!(
            "{source}\n\n/// Any value: the definition does not name its fields.\npub type {name} = serde_json::Value;\n"
        )
    })
}

/// Removes the attribute for the status if its type does not exist.
fn without_missing_status(source: String, root: &str, defined: &BTreeSet<String>) -> String {
    let status = format!("{root}Status");
    if defined.contains(&status) {
        return source;
    }
    // kopium prints the attribute for a status without properties if the name of another type ends
    // in `Status`.
    source.replace(&format!("#[kube(status = \"{status}\")]\n"), "")
}

fn types_of(fields: &syn::Fields, named: &mut BTreeSet<String>) {
    for field in fields {
        collect(field.ty.to_token_stream(), named);
    }
}

/// Adds all identifiers of the code to `named`, except words in documentation.
fn collect(tokens: TokenStream, named: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                named.insert(ident.to_string());
            }
            TokenTree::Group(group) => collect(group.stream(), named),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
