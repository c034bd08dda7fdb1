//! Extracts from Kubernetes' `OpenAPI` document how lists and maps of built-in kinds are merged.
//! The result is the simulator's `merging.json`.
//!
//! A merge extension is an `x-kubernetes-…` field of a schema. It determines how a list or a map is
//! merged.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::{Map, Value, json};

/// Prefixes that the names of types in `merging.json` omit.
const PREFIXES: [&str; 2] = ["io.k8s.api.", "io.k8s."];

const REFERENCE: &str = "#/definitions/";

/// Returns the content of `merging.json`. Its field `kinds` maps kinds such as `apps/v1 Deployment`
/// to names of schemas. Its field `types` has the schemas.
pub(crate) fn text(document: &Value) -> anyhow::Result<String> {
    let definitions =
        document["definitions"].as_object().context("Kubernetes' swagger.json has no `definitions`")?;
    let mut types = BTreeMap::new();
    for (name, definition) in definitions {
        types.insert(short(name), reduced(definition));
    }
    let types = with_merge_extensions(types);
    let mut kinds = BTreeMap::new();
    for (name, definition) in definitions.iter().filter(|(name, _)| types.contains_key(&short(name))) {
        // Definitions with several kinds, such as `DeleteOptions`, do not describe stored objects.
        if let Some([kind]) = definition["x-kubernetes-group-version-kind"].as_array().map(Vec::as_slice) {
            let part = |field: &str| kind[field].as_str().unwrap_or_default();
            let is_stable = !part("version").contains("alpha") && !part("version").contains("beta");
            if is_stable && !part("kind").ends_with("List") {
                let api_version = format!("{}/{}", part("group"), part("version"));
                kinds
                    .insert(format!("{} {}", api_version.trim_start_matches('/'), part("kind")), short(name));
            }
        }
    }
    let types = reachable(&types, kinds.values());
    let lines = |entries: Vec<(String, Value)>| {
        let lines = entries.into_iter().map(|(name, value)| format!("    {}: {value}", json!(name)));
        lines.collect::<Vec<_>>().join(",\n")
    };
    let kinds = lines(kinds.into_iter().map(|(name, of)| (name, of.into())).collect());
    let types = lines(types.into_iter().collect());
    Ok(format!("{{\n  \"kinds\": {{\n{kinds}\n  }},\n  \"types\": {{\n{types}\n  }}\n}}\n"))
}

fn short(name: &str) -> String {
    let short = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    short.unwrap_or(name).to_owned()
}

/// Returns a copy of `schema` that has only merge extensions, properties, items and references.
fn reduced(schema: &Value) -> Value {
    let mut kept = Map::new();
    let mut keep = |mark: &str| {
        if !schema[mark].is_null() {
            kept.insert(mark.to_owned(), schema[mark].clone());
        }
    };
    let merges = schema["x-kubernetes-patch-strategy"].as_str().is_some_and(|how| how.contains("merge"));
    let (is_keyed, is_set) =
        (schema["x-kubernetes-list-type"] == "map", schema["x-kubernetes-list-type"] == "set");
    if is_keyed || is_set {
        keep("x-kubernetes-list-type");
        keep("x-kubernetes-list-map-keys");
    }
    if merges {
        keep("x-kubernetes-patch-merge-key");
        kept.insert("x-kubernetes-patch-strategy".to_owned(), "merge".into());
    }
    // Server-side apply replaces an atomic map as a whole.
    if schema["x-kubernetes-map-type"] == "atomic" {
        kept.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
        return Value::Object(kept);
    }
    if let Some(name) = schema["$ref"].as_str() {
        kept.insert("$ref".to_owned(), short(name.trim_start_matches(REFERENCE)).into());
    }
    // The items of other lists are not merged.
    if (is_keyed || merges) && schema["items"].is_object() {
        kept.insert("items".to_owned(), reduced(&schema["items"]));
    }
    if let Some(fields) = schema["properties"].as_object() {
        let fields = fields.iter().map(|(name, field)| (name.clone(), reduced(field)));
        kept.insert("properties".to_owned(), Value::Object(fields.collect()));
    }
    Value::Object(kept)
}

/// Returns the types `from`, and all types that they refer to directly or indirectly.
fn reachable<'a>(
    types: &BTreeMap<String, Value>,
    from: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, Value> {
    let mut waiting: Vec<String> = from.cloned().collect();
    let mut found = BTreeMap::new();
    while let Some(name) = waiting.pop() {
        if let (Some(schema), false) = (types.get(&name), found.contains_key(&name)) {
            references(schema, &mut waiting);
            found.insert(name, schema.clone());
        }
    }
    found
}

fn references(schema: &Value, found: &mut Vec<String>) {
    found.extend(schema["$ref"].as_str().map(str::to_owned));
    let fields = schema["properties"].as_object().into_iter().flatten().map(|(_, field)| field);
    for part in fields.chain(schema.get("items")) {
        references(part, found);
    }
}

/// Keeps only the types and properties that have a merge extension, or refer to a type that is
/// kept.
fn with_merge_extensions(types: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut marked: BTreeSet<String> = BTreeSet::new();
    loop {
        let found: BTreeSet<String> = types
            .iter()
            .filter(|(_, schema)| needed(schema, &marked).is_some())
            .map(|(name, _)| name.clone())
            .collect();
        if found == marked {
            let schemas =
                types.into_iter().filter_map(|(name, schema)| Some((name, needed(&schema, &marked)?)));
            return schemas.collect();
        }
        marked = found;
    }
}

/// Returns a copy of `schema` with only the properties that affect merging. Returns `None` if the
/// copy would be empty.
///
/// `marked` has the names of the types that are known to affect merging.
fn needed(schema: &Value, marked: &BTreeSet<String>) -> Option<Value> {
    let mut kept = Map::new();
    for (name, value) in schema.as_object()? {
        let value = match name.as_str() {
            "$ref" => value.as_str().filter(|name| marked.contains(*name)).map(Into::into),
            "items" => needed(value, marked),
            "properties" => {
                let fields = value.as_object()?.iter();
                let fields: Map<String, Value> =
                    fields.filter_map(|(name, field)| Some((name.clone(), needed(field, marked)?))).collect();
                (!fields.is_empty()).then_some(Value::Object(fields))
            }
            // All other fields are merge extensions, because `reduced` has removed the rest.
            _ => Some(value.clone()),
        };
        kept.extend(value.map(|value| (name.clone(), value)));
    }
    (!kept.is_empty()).then_some(Value::Object(kept))
}
