//! How Kubernetes' names become Rust's, and which names are well-formed.
//!
//! The fact people get wrong: a kind and its plural are two names. `NetworkPolicy` and `networkpolicies` make the accessor
//! `network_policies`; neither does alone.

use proc_macro2::{Ident, Span};

/// Kubernetes' own groups that have kinds to list and watch. The factory has their accessors, each named after the first
/// label of its group; but the core group, whose name is empty.
const BUILT_IN_GROUPS: [&str; 22] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "lifecycle.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Says whether the factory has an accessor for this group by itself.
pub(crate) fn is_built_in(group: &str) -> bool {
    BUILT_IN_GROUPS.contains(&group)
}

/// The built-in group whose accessor has this name.
pub(crate) fn built_in_behind(accessor: &str) -> Option<&'static str> {
    BUILT_IN_GROUPS.into_iter().find(|group| group_accessor(group) == accessor)
}

/// `stable.example.com` as `stable`, and the core group, whose name is empty, as `core`.
pub(crate) fn group_accessor(group: &str) -> String {
    match group.split('.').next() {
        None | Some("") => "core".to_owned(),
        Some(first) => first.replace('-', "_"),
    }
}

/// The accessor of a kind: its words, as plural as the resource is. Where the two have nothing in common, the plural.
pub(crate) fn kind_accessor(kind: &str, plural: &str) -> String {
    let mut rest = plural;
    let mut name = String::new();
    for letter in snake(kind).chars() {
        if letter == '_' {
            name.push('_');
        } else if let Some(after) = rest.strip_prefix(letter) {
            name.push(letter);
            rest = after;
        } else {
            break;
        }
    }
    // English replaces no more than one letter.
    let kept = plural.len() - rest.len();
    if kept + 1 < kind.len() || name.ends_with('_') {
        return plural.replace('-', "_");
    }
    (name + rest).replace('-', "_")
}

/// `CSIDriver` as `csi_driver`.
pub(crate) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let after_lower = index > 0 && !letters[index - 1].is_ascii_uppercase();
        let before_lower = letters.get(index + 1).is_some_and(char::is_ascii_lowercase);
        if index > 0 && letter.is_ascii_uppercase() && (after_lower || before_lower) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The plural of an English word in lower case, by the rules of kube's `#[derive(CustomResource)]`.
pub(crate) fn pluralized(word: &str) -> String {
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
    match word.strip_suffix('y') {
        _ if hisses => format!("{word}es"),
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

/// The name with its first letter in upper case.
pub(crate) fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// The text as a name in Rust; `None` if it isn't one, or is a keyword.
pub(crate) fn ident(text: &str, span: Span) -> Option<Ident> {
    let mut ident: Ident = syn::parse_str(text).ok()?;
    ident.set_span(span);
    Some(ident)
}

/// Says whether it is a label of DNS, as each part of a group is.
fn is_dns_label(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Says whether it is a plural: a label of DNS that begins with a letter.
pub(crate) fn is_plural(text: &str) -> bool {
    is_dns_label(text) && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// Says whether it is a group: nothing for the core group, else labels joined by dots.
pub(crate) fn is_group(text: &str) -> bool {
    text.is_empty() || text.split('.').all(is_dns_label)
}

/// Says whether it is a version: `v1`, `v2beta3`.
pub(crate) fn is_version(text: &str) -> bool {
    let number =
        |text: &str| !text.is_empty() && !text.starts_with('0') && text.chars().all(|c| c.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    match rest.split_once("alpha").or_else(|| rest.split_once("beta")) {
        Some((major, minor)) => number(major) && number(minor),
        None => number(rest),
    }
}

/// Says whether it is a kind: `CronTab`.
pub(crate) fn is_kind(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accessor_has_the_words_of_the_kind_and_the_end_of_the_plural() {
        for (kind, plural, accessor) in [
            ("CronTab", "crontabs", "cron_tabs"),
            ("NetworkPolicy", "networkpolicies", "network_policies"),
            ("Endpoints", "endpoints", "endpoints"),
            ("CSIStorageCapacity", "csistoragecapacities", "csi_storage_capacities"),
            ("Mouse", "mice", "mice"),
            ("Data", "data-items", "data_items"),
        ] {
            assert_eq!(kind_accessor(kind, plural), accessor);
        }
    }

    #[test]
    fn plurals_are_those_that_kube_makes() {
        for (word, plural) in
            [("crontab", "crontabs"), ("policy", "policies"), ("key", "keys"), ("box", "boxes")]
        {
            assert_eq!(pluralized(word), plural);
        }
    }

    #[test]
    fn a_group_is_called_by_its_first_label() {
        for (group, accessor) in [
            ("stable.example.com", "stable"),
            ("cert-manager.io", "cert_manager"),
            ("", "core"),
            ("rbac.authorization.k8s.io", "rbac"),
        ] {
            assert_eq!(group_accessor(group), accessor);
        }
        assert_eq!(built_in_behind("networking"), Some("networking.k8s.io"));
        assert_eq!(built_in_behind("stable"), None);
    }

    #[test]
    fn versions_groups_and_kinds_are_told_from_other_texts() {
        assert!(["v1", "v12", "v1beta1", "v2alpha10"].into_iter().all(is_version));
        assert!(!["1", "v", "v0", "v1gamma1", "v1beta", "V1", "v1.2"].into_iter().any(is_version));
        assert!(["", "apps", "stable.example.com", "cert-manager.io"].into_iter().all(is_group));
        assert!(!["Stable.example.com", "a..b", ".", "a_b", "-a.b"].into_iter().any(is_group));
        assert!(is_plural("crontabs") && is_plural("a-b") && !is_plural("CronTabs") && !is_plural("3tabs"));
        assert!(["Pod", "CSIDriver", "X509"].into_iter().all(is_kind));
        assert!(!["", "pod", "Cron-Tab", "Cron_Tab", "1Pod"].into_iter().any(is_kind));
    }
}
