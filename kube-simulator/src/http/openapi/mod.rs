//! `/openapi/v3`: the documents that `kubectl` needs to validate, apply and explain.
//!
//! Custom resources have the schemas of their definitions. Schemas of built-in kinds contain the
//! names and types of all fields, but no lists of required fields and few descriptions. The types
//! are inexact for fields of a `CustomResourceDefinition` that accept several JSON types, such as
//! `default` and `additionalProperties`.

mod built_in;

use std::hash::{DefaultHasher, Hash, Hasher};

use kube_messages::{put_bytes, put_nested};
use serde_json::{Map, Value, json};

use crate::http::discovery::{GroupVersion, group_versions};
use crate::http::server::Server;
use crate::kinds::ResourceKind;

const TITLE: &str = "Kubernetes";
const VERSION: &str = "v1.36.0";

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Returns the index of the documents, one per group version.
pub(crate) fn index(server: &Server) -> Value {
    let mut paths = Map::new();
    for version in group_versions(server) {
        let hash = hash(&version);
        let url = format!("/openapi/v3/{}?hash={hash}", version.path());
        paths.insert(version.path(), json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// Returns the media type and body of `/openapi/v2`. The document has no schemas.
pub(crate) fn v2(in_protobuf: bool) -> (&'static str, Vec<u8>) {
    // kubectl validates objects of kind `List` with this document. If the document has no schemas,
    // kubectl skips the validation.
    if !in_protobuf {
        let document =
            json!({ "swagger": "2.0", "info": { "title": TITLE, "version": VERSION }, "paths": {} });
        return ("application/json", document.to_string().into_bytes());
    }
    let mut document = Vec::new();
    put_bytes(&mut document, 1, b"2.0");
    put_nested(&mut document, 2, |info| {
        put_bytes(info, 1, TITLE.as_bytes());
        put_bytes(info, 2, VERSION.as_bytes());
    });
    ("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", document)
}

/// Returns the document of the group version with this path, such as `apis/apps/v1`, and its hash,
/// which is the same in each run.
pub(crate) fn document(server: &Server, path: &str) -> Option<(Value, String)> {
    let version = group_versions(server).into_iter().find(|version| version.path() == path)?;
    Some((describe(&version), hash(&version)))
}

/// Returns a hash of all content that can change in the document of a group version.
fn hash(version: &GroupVersion) -> String {
    let mut hasher = DefaultHasher::new();
    for served in &version.served {
        let kind = &served.kind;
        (&kind.kind, &kind.plural, kind.namespaced).hash(&mut hasher);
        kind.schema.as_ref().map(ToString::to_string).hash(&mut hasher);
    }
    format!("{:016X}", hasher.finish())
}

fn describe(version: &GroupVersion) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for served in &version.served {
        let kind = &served.kind;
        let schema = schema(kind, &mut schemas);
        schemas.insert(component(kind), schema);
        let within = if kind.namespaced {
            format!("/{}/namespaces/{{namespace}}/{}", kind.group_version_path(), kind.plural)
        } else {
            kind.collection_path()
        };
        paths.insert(format!("{within}/{{name}}"), item(kind));
        paths.insert(within, collection(kind));
    }
    schemas.entry(OBJECT_META).or_insert_with(object_meta);
    json!({
        "openapi": "3.0.0",
        "info": { "title": TITLE, "version": VERSION },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

/// Returns the name of a kind's schema, such as `com.example.v1.Cache`. Real servers use the same
/// names, except for a few built-in kinds.
fn component(kind: &ResourceKind) -> String {
    if kind.is_built_in() {
        let group = kind.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        return format!("io.k8s.api.{group}.{}.{}", kind.version, kind.kind);
    }
    let reversed: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}.{}", reversed.join("."), kind.version, kind.kind)
}

fn schema(kind: &ResourceKind, others: &mut Map<String, Value>) -> Value {
    let mut schema = match &kind.schema {
        Some(schema) => Value::clone(schema),
        None => json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
    };
    if let Some(properties) = built_in::properties(kind, others) {
        schema["properties"] = properties;
    }
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let text = |description: &str| json!({ "type": "string", "description": description });
    schema["properties"]["apiVersion"] = text("The version of the schema of this object.");
    schema["properties"]["kind"] = text("The kind of this object.");
    schema["properties"]["metadata"] = json!({
        "description": "Standard object's metadata.",
        "allOf": [{ "$ref": format!("#/components/schemas/{OBJECT_META}") }],
    });
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind)]);
    schema
}

fn object_meta() -> Value {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "description": "ObjectMeta is metadata that all persisted resources must have.",
        "properties": {
            "name": text(),
            "generateName": text(),
            "namespace": text(),
            "uid": text(),
            "resourceVersion": text(),
            "creationTimestamp": text(),
            "deletionTimestamp": text(),
            "generation": { "type": "integer", "format": "int64" },
            "labels": texts(),
            "annotations": texts(),
            "finalizers": { "type": "array", "items": { "type": "string" } },
            "ownerReferences": { "type": "array", "items": { "type": "object" } },
            "managedFields": { "type": "array", "items": { "type": "object" } },
        },
    })
}

fn group_version_kind(kind: &ResourceKind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}

fn collection(kind: &ResourceKind) -> Value {
    json!({
        "get": operation(kind, "list", &[]),
        "post": operation(kind, "post", &["dryRun", "fieldManager", "fieldValidation"]),
        "delete": operation(kind, "deletecollection", &["dryRun"]),
    })
}

fn item(kind: &ResourceKind) -> Value {
    let mut patch = operation(kind, "patch", &["dryRun", "fieldManager", "fieldValidation", "force"]);
    // Built-in kinds accept strategic merge patches, which are not listed here, so that clients use
    // their built-in merge keys. Otherwise, clients would look for merge keys in these schemas,
    // which have none.
    let types =
        ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
    let content: Map<String, Value> = types
        .iter()
        .map(|media_type| ((*media_type).to_owned(), json!({ "schema": { "type": "object" } })))
        .collect();
    patch["requestBody"] = json!({ "content": content, "required": true });
    json!({
        "get": operation(kind, "get", &[]),
        "put": operation(kind, "put", &["dryRun", "fieldManager", "fieldValidation"]),
        "patch": patch,
        "delete": operation(kind, "delete", &["dryRun"]),
    })
}

fn operation(kind: &ResourceKind, action: &str, parameters: &[&str]) -> Value {
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string", "uniqueItems": true } }))
        .collect();
    let schema = json!({ "$ref": format!("#/components/schemas/{}", component(kind)) });
    json!({
        "parameters": parameters,
        "responses": {
            "200": { "description": "OK", "content": { "application/json": { "schema": schema } } },
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": group_version_kind(kind),
    })
}
