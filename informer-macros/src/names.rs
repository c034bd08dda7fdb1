//! Converts Kubernetes names to Rust names, and checks names.
//!
//! Note: the default name of a kind's accessor is made from both the kind and the plural.
//! `NetworkPolicy` and `networkpolicies` give `network_policies`: only the kind shows where words
//! begin, and only the plural shows how the name ends.

use proc_macro2::{Ident, Span};

use crate::built_in::ACCESSORS;

/// Returns the group, version and accessors of each built-in API version.
fn built_in() -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])> {
    ACCESSORS.into_iter().map(|(api_version, accessors)| match api_version.split_once('/') {
        Some((group, version)) => (group, version, accessors),
        None => ("", api_version, accessors),
    })
}

pub(crate) fn is_built_in(group: &str) -> bool {
    built_in().any(|(other, ..)| other == group)
}

pub(crate) fn built_in_versions(group: &str) -> Vec<&'static str> {
    built_in().filter(|(other, ..)| *other == group).map(|(_, version, _)| version).collect()
}

pub(crate) fn is_built_in_accessor(group: &str, version: &str, accessor: &str) -> bool {
    built_in().any(|it| (it.0, it.1) == (group, version) && it.2.contains(&accessor))
}

/// Returns the built-in group for a method of the factory: `networking.k8s.io` for `networking`.
/// Returns `None` if no built-in group has a method with this name.
pub(crate) fn built_in_behind(accessor: &str) -> Option<&'static str> {
    built_in().map(|(group, ..)| group).find(|group| group_accessor(group) == accessor)
}

/// Returns the name of the factory's method for a group: `stable` for `stable.example.com`, and
/// `core` for the core group.
pub(crate) fn group_accessor(group: &str) -> String {
    match group.split('.').next() {
        None | Some("") => "core".to_owned(),
        Some(first) => first.replace('-', "_"),
    }
}

/// Returns the default name of a kind's accessor: the plural, split into the words of the kind. For
/// `NetworkPolicy` and `networkpolicies`, the result is `network_policies`.
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
    // A regular English plural replaces at most the last letter of the singular. Other plurals,
    // such as `mice` of `Mouse`, are not split.
    let kept = plural.len() - rest.len();
    if kept + 1 < kind.len() || name.ends_with('_') {
        return plural.replace('-', "_");
    }
    (name + rest).replace('-', "_")
}

/// Converts a name to snake case: `CSIDriver` becomes `csi_driver`. A digit belongs to the word
/// before it: `K8SCluster` becomes `k8s_cluster`.
pub(crate) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let (mut snake, mut after_lower) = (String::new(), false);
    for (index, letter) in letters.iter().enumerate() {
        let before_lower = letters.get(index + 1).is_some_and(char::is_ascii_lowercase);
        if index > 0 && letter.is_ascii_uppercase() && (after_lower || before_lower) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        if letter.is_ascii_alphabetic() {
            after_lower = letter.is_ascii_lowercase();
        }
    }
    snake
}

/// Returns the plural of a lower-case English word, by the rules of kube's
/// `#[derive(CustomResource)]`.
pub(crate) fn pluralized(word: &str) -> String {
    let is_sibilant = ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
    match word.strip_suffix('y') {
        _ if is_sibilant => format!("{word}es"),
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

/// Returns the plural of a kind's name in lower case, such as `pods` for `Pod`. For `Endpoints`,
/// returns `endpoints`, because this kind's name is already a plural.
pub(crate) fn default_plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    if word == "endpoints" { word } else { pluralized(&word) }
}

pub(crate) fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// Returns the text as an identifier; `None` for invalid text and for keywords.
pub(crate) fn ident(text: &str, span: Span) -> Option<Ident> {
    let mut ident: Ident = syn::parse_str(text).ok()?;
    ident.set_span(span);
    Some(ident)
}

fn is_dns_label(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns whether the text is a valid plural: a DNS label that begins with a letter.
pub(crate) fn is_plural(text: &str) -> bool {
    is_dns_label(text) && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns whether the text is a valid API group: DNS labels joined by dots, or the empty text of
/// the core group.
pub(crate) fn is_group(text: &str) -> bool {
    text.is_empty() || text.split('.').all(is_dns_label)
}

pub(crate) fn is_version(text: &str) -> bool {
    let number =
        |text: &str| !text.is_empty() && !text.starts_with('0') && text.chars().all(|c| c.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    match rest.split_once("alpha").or_else(|| rest.split_once("beta")) {
        Some((major, minor)) => number(major) && number(minor),
        None => number(rest),
    }
}

pub(crate) fn is_kind(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accessor_is_the_kind_with_the_plural_ending() {
        for (kind, plural, accessor) in [
            ("CronTab", "crontabs", "cron_tabs"),
            ("NetworkPolicy", "networkpolicies", "network_policies"),
            ("Endpoints", "endpoints", "endpoints"),
            ("CSIStorageCapacity", "csistoragecapacities", "csi_storage_capacities"),
            ("K8SCluster", "k8sclusters", "k8s_clusters"),
            ("HTTP2TLSPolicy", "http2tlspolicies", "http2tls_policies"),
            ("L4LBConfig", "l4lbconfigs", "l4lb_configs"),
            ("X509Certificate", "x509certificates", "x509_certificates"),
            ("Mouse", "mice", "mice"),
            ("Data", "data-items", "data_items"),
        ] {
            assert_eq!(kind_accessor(kind, plural), accessor);
        }
    }

    #[test]
    fn plurals_match_those_of_kube() {
        for (word, plural) in
            [("crontab", "crontabs"), ("policy", "policies"), ("key", "keys"), ("box", "boxes")]
        {
            assert_eq!(pluralized(word), plural);
        }
    }

    #[test]
    fn group_accessor_is_its_first_label() {
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
        assert_eq!((built_in_behind("core"), built_in_behind("apps")), (Some(""), Some("apps")));
    }

    #[test]
    fn built_in_accessors_are_found_by_group_and_version() {
        assert!(is_built_in("") && is_built_in("rbac.authorization.k8s.io") && !is_built_in("rbac"));
        assert_eq!(built_in_versions("apps"), ["v1"]);
        assert!(is_built_in_accessor("", "v1", "config_maps"));
        assert!(is_built_in_accessor("events.k8s.io", "v1", "events"));
        assert!(!is_built_in_accessor("", "v1", "deployments"));
        assert!(!is_built_in_accessor("", "v2", "pods"));
    }

    #[test]
    fn invalid_versions_groups_and_kinds_are_rejected() {
        assert!(["v1", "v12", "v1beta1", "v2alpha10"].into_iter().all(is_version));
        assert!(!["1", "v", "v0", "v1gamma1", "v1beta", "V1", "v1.2"].into_iter().any(is_version));
        assert!(["", "apps", "stable.example.com", "cert-manager.io"].into_iter().all(is_group));
        assert!(!["Stable.example.com", "a..b", ".", "a_b", "-a.b"].into_iter().any(is_group));
        assert!(is_plural("crontabs") && is_plural("a-b") && !is_plural("CronTabs") && !is_plural("3tabs"));
        assert!(["Pod", "CSIDriver", "X509"].into_iter().all(is_kind));
        assert!(!["", "pod", "Cron-Tab", "Cron_Tab", "1Pod"].into_iter().any(is_kind));
    }
}
