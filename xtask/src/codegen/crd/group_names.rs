//! The names of accessors for custom groups.
//!
//! `factory.stable()` is for `stable.example.com`: the first label of the group. If that is taken, or is no name in Rust, the next
//! label is added: `networking.example.com` is `networking_example()`, because the factory's own `networking()` would hide a trait's
//! method.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;

use crate::codegen::names::ident;

/// The methods of the factory, which hide a trait's method of the same name.
const METHODS: [&str; 22] = [
    "add_namespace",
    "builder",
    "clone",
    "dynamic",
    "for_resource",
    "in_all_namespaces",
    "in_namespace",
    "informer",
    "informer_with",
    "informers",
    "metadata",
    "namespaces",
    "new",
    "remove_namespace",
    "shutdown",
    "start",
    "stop",
    "wait_for_cache_sync",
    "wait_for_cache_sync_of",
    "wait_for_cache_sync_within",
    "with_fields",
    "with_labels",
];

/// Returns the accessor of each group. `taken` are those of Kubernetes' own groups.
pub(crate) fn accessors<'a>(
    groups: &BTreeSet<&'a str>,
    taken: &BTreeSet<String>,
) -> anyhow::Result<BTreeMap<&'a str, String>> {
    let free = |name: &str| ident(name).is_ok() && !taken.contains(name) && !METHODS.contains(&name);
    let longest = groups.iter().map(|group| group.split('.').count()).max().unwrap_or_default();
    let mut lengths: BTreeMap<&str, usize> = groups.iter().map(|group| (*group, 1)).collect();
    for _ in 0..=longest {
        let names: BTreeMap<&str, String> =
            lengths.iter().map(|(group, labels)| (*group, name(group, *labels))).collect();
        let shared = |name: &String| names.values().filter(|other| *other == name).count() > 1;
        let long: Vec<_> =
            names.iter().filter(|(_, name)| shared(name) || !free(name)).map(|(group, _)| *group).collect();
        if long.is_empty() {
            return Ok(names);
        }
        for group in long {
            lengths.entry(group).and_modify(|labels| *labels += 1);
        }
    }
    bail!("no Rust names are left for the groups {groups:?}; generate fewer groups at a time")
}

/// Returns the first labels of the group in snake case.
fn name(group: &str, labels: usize) -> String {
    let labels: Vec<String> = group.split('.').take(labels).map(|label| label.replace('-', "_")).collect();
    let name = labels.join("_");
    // A label can begin with a digit, a name cannot.
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("group_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    fn names(groups: &[&str]) -> Vec<String> {
        let taken = ["networking".to_owned()].into();
        accessors(&groups.iter().copied().collect(), &taken).unwrap().into_values().collect()
    }

    #[test]
    fn a_group_has_its_first_label_if_that_is_free() {
        assert_eq!(names(&["stable.example.com"]), ["stable"]);
        assert_eq!(names(&["cert-manager.io"]), ["cert_manager"]);
        assert_eq!(names(&["3scale.net"]), ["group_3scale"]);
    }

    #[test]
    fn a_name_that_is_taken_is_made_longer() {
        assert_eq!(names(&["networking.example.com"]), ["networking_example"]);
        assert_eq!(names(&["start.example.com"]), ["start_example"]);
        assert_eq!(names(&["type.example.com"]), ["type_example"]);
        assert_eq!(names(&["a.b.example", "a.c.example"]), ["a_b", "a_c"]);
        assert_eq!(names(&["a.b.c.example", "a.b.d.example", "a_b"]), ["a_b_c", "a_b_d", "a_b"]);
    }

    /// Returns the public methods of a type from its sources.
    fn methods(of: &str, folder: &str) -> BTreeSet<String> {
        let files =
            std::fs::read_dir(workspace::root().join(folder)).unwrap().map(|file| file.unwrap().path());
        let texts = files.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).unwrap());
        let items = texts.flat_map(|text| syn::parse_file(&text).unwrap().items);
        let is_of_type = |ty: &syn::Type| match ty {
            syn::Type::Path(ty) => ty.path.segments.last().is_some_and(|last| last.ident == of),
            _ => false,
        };
        let inherent = items.filter_map(|item| match item {
            syn::Item::Impl(item) if item.trait_.is_none() && is_of_type(&item.self_ty) => Some(item.items),
            _ => None,
        });
        let methods = inherent.flatten().filter_map(|item| match item {
            syn::ImplItem::Fn(method) => Some(method),
            _ => None,
        });
        let public = methods.filter(|method| {
            matches!(method.vis, syn::Visibility::Public(_)) && method.sig.receiver().is_some()
        });
        public.map(|method| method.sig.ident.to_string()).collect()
    }

    #[test]
    fn method_lists_contain_all_public_methods() {
        let text = |file: &str| std::fs::read_to_string(workspace::root().join(file)).unwrap();
        let of_factory = methods("SharedInformerFactory", "informer-factory/src/factory");
        assert!(of_factory.contains("start"), "{of_factory:?}");
        for method in &of_factory {
            assert!(METHODS.contains(&method.as_str()), "add {method} to METHODS");
        }
        let of_informers = methods("SharedIndexInformer", "informer-factory/src/informer");
        assert!(of_informers.contains("verify"), "{of_informers:?}");
        for (methods, file) in
            [(of_factory, "informer-macros/src/place.rs"), (of_informers, "informer-macros/src/index.rs")]
        {
            let known = text(file);
            let missing: Vec<_> =
                methods.iter().filter(|method| !known.contains(&format!("\"{method}\","))).collect();
            assert!(missing.is_empty(), "add to METHODS in {file}: {missing:?}");
        }
    }

    #[test]
    fn groups_that_can_have_no_name_are_refused() {
        let message = accessors(&["networking", "b"].into(), &["networking".to_owned()].into()).unwrap_err();
        assert!(message.to_string().contains("networking"), "{message}");
    }
}
