//! Turns Kubernetes' names into Rust names.

use anyhow::{Context, bail};
use heck::ToSnakeCase;
use proc_macro2::Ident;

/// Fails if the name is a keyword or otherwise no identifier.
pub fn ident(name: &str) -> anyhow::Result<Ident> {
    // syn does not know the keyword `gen` of the edition 2024.
    let ident = if name == "gen" { None } else { syn::parse_str(name).ok() };
    ident.with_context(|| format!("`{name}` cannot be a name in Rust; choose another"))
}

/// Returns a snake-case name as a type name: `cert_manager` as `CertManager`.
pub(crate) fn camel(name: &str) -> String {
    name.split('_').map(capitalized).collect()
}

/// Returns the name of a group in documentation, such as "the group `apps`".
pub fn title(group: &str) -> String {
    if group.is_empty() { "the core group".to_owned() } else { format!("the group `{group}`") }
}

/// Returns the name with its first letter in upper case.
pub fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// Returns the plural of a kind in snake case: the kind `NetworkPolicy` and the resource
/// `networkpolicies` give `network_policies`. Fails if the resource does not begin with the name of
/// the kind; only the last letter of the kind can differ.
pub fn plural(kind: &str, plural: &str) -> anyhow::Result<String> {
    let mut rest = plural;
    let mut name = String::new();
    for letter in kind.to_snake_case().chars() {
        if letter == '_' {
            name.push('_');
        } else if let Some(after) = rest.strip_prefix(letter) {
            name.push(letter);
            rest = after;
        } else {
            // The plural can change the end of the word, as in `policies`.
            break;
        }
    }
    // A regular plural replaces at most the last letter. If more letters differ, the plural is
    // irregular, or the two names do not belong together.
    let kept = plural.len() - rest.len();
    if kept + 1 < kind.len() || name.ends_with('_') {
        bail!(
            "`{plural}` is not the plural of the kind `{kind}`; use the name and the kind that \
             `kubectl api-resources` prints for the resource"
        );
    }
    name.push_str(rest);
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_follow_kubernetes() {
        for (kind, resource, method) in [
            ("Pod", "pods", "pods"),
            ("ConfigMap", "configmaps", "config_maps"),
            ("Endpoints", "endpoints", "endpoints"),
            ("Ingress", "ingresses", "ingresses"),
            ("NetworkPolicy", "networkpolicies", "network_policies"),
            ("CSIStorageCapacity", "csistoragecapacities", "csi_storage_capacities"),
            ("APIService", "apiservices", "api_services"),
            ("ServiceCIDR", "servicecidrs", "service_cidrs"),
            ("IPAddress", "ipaddresses", "ip_addresses"),
            ("K8SCluster", "k8sclusters", "k8s_clusters"),
            ("HTTP2TLSPolicy", "http2tlspolicies", "http2tls_policies"),
        ] {
            assert_eq!(plural(kind, resource).unwrap(), method);
        }
    }

    #[test]
    fn plural_of_another_kind_is_rejected() {
        for (kind, resource) in [("Pod", "nodes"), ("PodTemplate", "pods"), ("Secret", "services")] {
            let message = plural(kind, resource).unwrap_err().to_string();
            assert!(message.contains(resource) && message.contains(kind), "{message}");
        }
    }

    #[test]
    fn invalid_rust_name_is_rejected() {
        assert!(ident("core").is_ok());
        for name in ["type", "a-b", ""] {
            assert!(ident(name).is_err(), "{name}");
        }
    }
}
