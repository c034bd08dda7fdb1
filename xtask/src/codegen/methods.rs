//! Finds the public methods of a type of informer-factory. An accessor in a trait must not have the
//! name of such a method, because the method would hide it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use syn::{FnArg, ImplItem, Item, Type, Visibility};

use crate::workspace;

/// The names of methods that most types have from traits of the standard library.
const OF_TRAITS: [&str; 4] = ["borrow", "clone", "fmt", "to_owned"];

/// Returns the names of a type's public methods, and of methods that most types have from traits of
/// the standard library, such as `clone`.
pub(crate) fn of(root: &Path, type_name: &str) -> anyhow::Result<BTreeSet<String>> {
    let folder = root.join("informer-factory/src");
    let mut methods = BTreeSet::new();
    for path in workspace::files_below(&folder)? {
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        // The folder `groups` has only generated accessors. `expand` adds their names from the data.
        if is_rust && !path.starts_with(folder.join("groups")) {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let file = syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
            methods.extend(file.items.iter().flat_map(|item| of_item(item, type_name)));
        }
    }
    if methods.is_empty() {
        bail!(
            "found no public methods of `{type_name}` in informer-factory/src; correct the name of the type in \
             `xtask/src/codegen/built_in.rs`"
        );
    }
    methods.extend(OF_TRAITS.map(str::to_owned));
    Ok(methods)
}

fn of_item(item: &Item, type_name: &str) -> Vec<String> {
    let Item::Impl(block) = item else {
        return Vec::new();
    };
    let is_of_type = matches!(&*block.self_ty, Type::Path(path)
        if path.path.segments.last().is_some_and(|last| last.ident == type_name));
    if block.trait_.is_some() || !is_of_type {
        return Vec::new();
    }
    let functions = block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    });
    functions
        .filter(|function| matches!(function.vis, Visibility::Public(_)))
        .filter(|function| matches!(function.sig.inputs.first(), Some(FnArg::Receiver(_))))
        .map(|function| function.sig.ident.to_string())
        .collect()
}
