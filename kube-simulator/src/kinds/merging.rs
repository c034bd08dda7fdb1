//! Schemas that determine how lists and maps of built-in kinds are merged. They contain only the
//! structure and the `OpenAPI` extensions for merging, such as `x-kubernetes-list-map-keys`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| {
    let document = serde_json::from_str(include_str!("merging.json"));
    // Cannot fail: a unit test reads the document.
    Document::expanded(document.unwrap_or_default())
});

/// The name of the schema of `metadata` in all kinds.
const METADATA: &str = "apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The content of `merging.json`.
#[derive(Default, Deserialize)]
struct Document {
    /// For each kind, such as `apps/v1 Deployment`, the name of its schema in `types`.
    kinds: HashMap<String, String>,
    /// The schemas by name. A schema can refer to other schemas.
    types: HashMap<String, Value>,
}

/// The schemas of a [`Document`], after [`Document::expanded`] has replaced each reference by a
/// copy of the referenced schema.
struct Schemas {
    /// The schemas by kind, such as `apps/v1 Deployment`.
    kinds: HashMap<String, Value>,
    metadata: Value,
}

pub(crate) fn of_kind(api_version: &str, kind: &str) -> Option<&'static Value> {
    SCHEMAS.kinds.get(&format!("{api_version} {kind}"))
}

pub(crate) fn of_metadata() -> &'static Value {
    &SCHEMAS.metadata
}

impl Document {
    fn expanded(self) -> Schemas {
        let expand = |name: &String| self.expand(&Value::from_iter([("$ref", name.as_str())]), &[]);
        let kinds = self.kinds.iter().map(|(kind, name)| (kind.clone(), expand(name)));
        Schemas { kinds: kinds.collect(), metadata: expand(&METADATA.to_owned()) }
    }

    /// Returns a copy of `schema` in which each reference is replaced by the referenced schema.
    /// `within` contains the names of the enclosing schemas.
    fn expand(&self, schema: &Value, within: &[&str]) -> Value {
        let mut expanded = Map::new();
        for (name, value) in schema.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("$ref", Value::String(name)) if !within.contains(&name.as_str()) => {
                    let within = [within, &[name]].concat();
                    let target = self.types.get(name).map(|target| self.expand(target, &within));
                    if let Some(Value::Object(target)) = target {
                        expanded.extend(target);
                    }
                }
                // A recursive schema would expand endlessly.
                ("$ref", _) => {}
                ("items", items) => {
                    expanded.insert(name.clone(), self.expand(items, within));
                }
                ("properties", Value::Object(fields)) => {
                    let fields =
                        fields.iter().map(|(name, field)| (name.clone(), self.expand(field, within)));
                    expanded.insert(name.clone(), Value::Object(fields.collect()));
                }
                _ => {
                    expanded.insert(name.clone(), value.clone());
                }
            }
        }
        Value::Object(expanded)
    }
}

#[cfg(test)]
mod tests {
    //! Tests of the schemas.

    use super::{of_kind, of_metadata};

    #[test]
    fn references_are_replaced() {
        let pod = of_kind("v1", "Pod").expect("Pod has a schema");
        let ports = &pod["properties"]["spec"]["properties"]["containers"]["items"]["properties"]["ports"];
        assert_eq!(ports["x-kubernetes-list-map-keys"][0], "containerPort");
        assert_eq!(of_metadata()["properties"]["finalizers"]["x-kubernetes-list-type"], "set");
    }
}
