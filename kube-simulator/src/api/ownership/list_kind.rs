//! [`ListKind`]: whether a list is merged as a set, by keys, or as one value.

use serde_json::Value;

/// How elements of a list are identified when lists are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Elements are not identified: the list is one value.
    Atomic,
    /// Elements are identified by their values.
    Set,
    /// Elements are identified by the values of these fields.
    Map(Vec<String>),
}

impl ListKind {
    /// Returns how server-side apply merges a list with this schema.
    pub(crate) fn of(schema: Option<&Value>) -> Self {
        let Some(schema) = schema else {
            return Self::Atomic;
        };
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

    /// Returns how a strategic merge patch merges a list with this schema.
    pub(crate) fn of_patch(schema: Option<&Value>) -> Self {
        match schema.map(|schema| (schema["x-kubernetes-patch-strategy"].as_str(), schema)) {
            Some((Some(_), schema)) => match schema["x-kubernetes-patch-merge-key"].as_str() {
                Some(key) => Self::Map(vec![key.to_owned()]),
                None => Self::Set,
            },
            _ => Self::Atomic,
        }
    }
}
