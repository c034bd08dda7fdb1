//! [`ListKind`]: how lists are merged: as sets, by keys, or as one value.
//!
//! The real server uses the tags of the Go types for built-in kinds. Here, the field's name decides, which is
//! sufficient for the lists that people commonly patch. For custom resources, the schema decides.

use serde_json::Value;

use crate::kinds::ResourceKind;

/// The identity of list elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// None: the list is one value.
    Atomic,
    /// Their values.
    Set,
    /// The values of these fields.
    Map(Vec<String>),
}

impl ListKind {
    /// Returns the kind of a list.
    ///
    /// `schema` is the list's schema, if it has one.
    pub(crate) fn of(kind: &ResourceKind, field: &str, schema: Option<&Value>) -> Self {
        match schema {
            Some(schema) => Self::of_schema(schema),
            // All kinds have the same metadata.
            None if kind.is_built_in() || matches!(field, "ownerReferences" | "finalizers") => {
                Self::of_built_in(kind, field)
            }
            None => Self::Atomic,
        }
    }

    fn of_schema(schema: &Value) -> Self {
        let keys = || {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            keys.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        match schema["x-kubernetes-list-type"].as_str() {
            Some("map") => Self::Map(keys()),
            Some("set") => Self::Set,
            _ => Self::Atomic,
        }
    }

    fn of_built_in(kind: &ResourceKind, field: &str) -> Self {
        let keys: &[&str] = match field {
            "finalizers" => return Self::Set,
            "ports" if kind.kind == "Service" => &["port", "protocol"],
            "ports" if ["EndpointSlice", "Endpoints", "NetworkPolicy"].contains(&kind.kind.as_str()) => {
                return Self::Atomic;
            }
            "ports" => &["containerPort", "protocol"],
            "containers"
            | "initContainers"
            | "ephemeralContainers"
            | "env"
            | "volumes"
            | "imagePullSecrets"
            | "secrets"
            | "resourceClaims"
            | "volumeClaimTemplates" => &["name"],
            "volumeMounts" => &["mountPath"],
            "volumeDevices" => &["devicePath"],
            "conditions" => &["type"],
            "addresses" if kind.kind == "Node" => &["type"],
            "taints" => &["key", "effect"],
            "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
            "hostAliases" | "podIPs" | "hostIPs" => &["ip"],
            "ownerReferences" => &["uid"],
            _ => return Self::Atomic,
        };
        Self::Map(keys.iter().map(ToString::to_string).collect())
    }
}
