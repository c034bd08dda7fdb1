//! Decoding without a field gives the same as decoding everything and then clearing the field.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::core::{DynamicObject, PartialObjectMeta};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::*;
use crate::PrunePaths;

fn pruned<K: DeserializeOwned>(paths: &PrunePaths, json: &Json) -> K {
    paths.from_slice(json.to_string().as_bytes()).expect("an object that decodes")
}

fn whole<K: DeserializeOwned>(json: &Json) -> K {
    pruned(&PrunePaths::none(), json)
}

fn pod() -> Json {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {"f:conditions": {}}}}],
            "name": "a", "labels": {"managedFields": "kept"},
            "annotations": {"example.com/long": "…", "b": "c"},
        },
        "spec": {"containers": [{"name": "managedFields"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

#[test]
fn a_typed_object_loses_managed_fields_and_nothing_else() {
    let mut expected: Pod = whole(&pod());
    assert!(expected.metadata.managed_fields.take().is_some());
    assert_eq!(pruned::<Pod>(&PrunePaths::default(), &pod()), expected);
}

#[test]
fn dynamic_object_loses_the_pruned_fields() -> Result<(), Box<dyn std::error::Error>> {
    let paths = PrunePaths::default()
        .with_path("status.conditions")?
        .with_path(r#"metadata.annotations["example.com/long"]"#)?;
    let mut expected: DynamicObject = whole(&pod());
    expected.metadata.managed_fields = None;
    expected.metadata.annotations = Some(BTreeMap::from([("b".into(), "c".into())]));
    expected.data["status"] = json!({"phase": "Running"});
    assert_eq!(pruned::<DynamicObject>(&paths, &pod()), expected);
    Ok(())
}

#[test]
fn a_metadata_only_object_loses_managed_fields() {
    let partial: PartialObjectMeta<Pod> = pruned(&PrunePaths::default(), &pod());
    let mut expected: PartialObjectMeta<Pod> = whole(&pod());
    expected.metadata.managed_fields = None;
    assert_eq!((partial.metadata, partial.types), (expected.metadata, expected.types));
}

/// A slim view as a user would write it, with some of what serde offers.
#[derive(Debug, PartialEq, Deserialize)]
struct Slim {
    metadata: SlimMeta,
    status: Wrapped,
    #[serde(default)]
    spec: Option<Spec>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimMeta {
    name: String,
    managed_fields: Option<Json>,
    annotations: HashMap<Name, Box<str>>,
}

#[derive(Debug, PartialEq, Eq, Hash, Deserialize)]
struct Name(String);

#[derive(Debug, PartialEq, Deserialize)]
struct Wrapped(BTreeMap<Option<String>, Json>);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Spec {
    Pod { containers: Vec<Json> },
    Other(Json),
}

#[test]
fn newtypes_options_and_untagged_enums_on_a_path_decode_as_ever() -> Result<(), Box<dyn std::error::Error>> {
    let paths = PrunePaths::default()
        .with_path("status.conditions")?
        .with_path("metadata.annotations.b")?
        .with_path("spec.x")?;
    let mut expected: Slim = whole(&pod());
    expected.metadata.managed_fields = None;
    assert!(expected.metadata.annotations.remove(&Name("b".into())).is_some());
    assert!(expected.status.0.remove(&Some("conditions".into())).is_some());
    assert_eq!(pruned::<Slim>(&paths, &pod()), expected);
    Ok(())
}

#[test]
fn path_through_a_plain_value_prunes_nothing() -> Result<(), Box<dyn std::error::Error>> {
    let paths = "a.b".parse::<PrunePaths>()?;
    for inner in [json!(null), json!(1), json!(-1), json!(1.5), json!("b"), json!(true), json!([{"b": 1}])] {
        let value = json!({"a": inner, "b": 1});
        assert_eq!(pruned::<Json>(&paths, &value), value);
    }
    Ok(())
}

fn json_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        "[a-c\"\\\\\u{e9}]{0,4}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

fn clear(value: &mut Json, path: &[&str]) {
    let Some(object) = value.as_object_mut() else { return };
    match path {
        [name] => drop(object.remove(*name)),
        [name, inner @ ..] => {
            if let Some(value) = object.get_mut(*name) {
                clear(value, inner);
            }
        }
        [] => {}
    }
}

/// Metadata with all that has a shape of its own; the rest is maps of texts.
fn metadata() -> impl Strategy<Value = ObjectMeta> {
    let texts = || prop::option::of(prop::collection::btree_map("[a-z./]{1,5}", ".{0,5}", 0..4));
    let managed = || ManagedFieldsEntry { manager: Some("\"{\\".into()), ..Default::default() };
    (texts(), texts(), ".{0,8}", 0..3_usize).prop_map(move |(labels, annotations, name, entries)| {
        ObjectMeta {
            labels,
            annotations,
            name: Some(name),
            managed_fields: (entries > 0).then(|| (0..entries).map(|_| managed()).collect()),
            ..ObjectMeta::default()
        }
    })
}

#[derive(Serialize)]
struct AnyPod<'a> {
    metadata: &'a ObjectMeta,
}

fn outcome(json: &str) -> Result<(String, usize), NoValue> {
    let paths =
        PrunePaths::none().with_path("p").and_then(|paths| paths.with_path("q.p")).expect("two paths");
    cut(json.as_bytes(), paths.root()).map(|value| (String::from_utf8_lossy(&value.json).into(), value.len))
}

#[test]
fn comma_of_a_pruned_member_goes_with_it() {
    for (json, expected) in [
        (r#"{}"#, r#"{}"#),
        (r#"{"p" : [1] }"#, r#"{}"#),
        (r#"{"p":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"p":1, "p":"," ,"a":2}"#, r#"{"a":2}"#),
        (r#"{"a":2,"p":{"x":["}"]}}"#, r#"{"a":2}"#),
        (r#"{"a":2,"p":1,"p":2}"#, r#"{"a":2}"#),
        (r#"{"a":2,"p":1,"b":3,"p":2}"#, r#"{"a":2,"b":3}"#),
        (r#"{"a":2,"q":{"p":1},"p":1}"#, r#"{"a":2,"q":{}}"#),
        (r#"{"a\"":"\\","\u0070":1}"#, r#"{"a\"":"\\"}"#),
    ] {
        assert_eq!(outcome(json), Ok((expected.to_owned(), json.len())), "{json}");
    }
}

#[test]
fn value_ends_where_its_brackets_close() {
    for (json, len) in
        [(r#" {"a":[{}]} , 1"#, 11), (r#""a\"b",""#, 6), ("12]", 2), ("true }", 4), ("[[],[]]]", 7)]
    {
        assert_eq!(outcome(json).map(|(_, len)| len), Ok(len), "{json}");
    }
    for json in ["", " ", "{", r#"{"a"#, r#"{"a":"#, r#"{"a":1"#, "[[]", r#""a\""#, r#""\"#, "12", "tru"] {
        assert_eq!(outcome(json), Err(NoValue::Incomplete), "{json}");
    }
    for json in
        ["}", "]", ",", "<html>", "{1:2}", r#"{"a" 1}"#, r#"{"a":1 "b":2}"#, r#"{"a":1,}"#, r#"{"\x":1}"#]
    {
        assert_eq!(outcome(json), Err(NoValue::Broken), "{json}");
    }
}

#[test]
fn stated_type_is_that_of_the_object_itself() {
    let stated = |json| cut(json, PrunePaths::default().root()).map(|value| value.stated).expect("a value");
    let pod = stated(br#"{"spec":{"kind":"Inner"},"kind":"Pod","metadata":{},"apiVersion":"v1"}"#);
    assert_eq!((pod.kind, pod.api_version), (&b"Pod"[..], &b"v1"[..]));
    let untyped = stated(br#"{"kind":7}"#);
    assert_eq!((untyped.kind, untyped.api_version), (&b""[..], &b""[..]));
}

proptest! {
    #[test]
    fn every_json_value_is_found_at_the_start_of_any_text(json in r#"[\[\]{}":,\\0-9a-eu -]{0,24}"#) {
        let found = outcome(&json);
        let mut values = serde_json::Deserializer::from_str(&json).into_iter::<Json>();
        if let Some(Ok(value)) = values.next()
            && (value.is_object() || value.is_array() || value.is_string())
        {
            prop_assert_eq!(found.map(|(_, len)| len), Ok(values.byte_offset()));
        }
    }

    #[test]
    fn pruning_equals_decoding_all_and_clearing(
        value in json_value(),
        paths in prop::collection::vec(prop::collection::vec("[a-d]", 1..4), 0..4),
    ) {
        let mut prune = PrunePaths::none();
        let mut expected = value.clone();
        for path in &paths {
            prune = prune.with_path(&path.join(".")).expect("a path");
            clear(&mut expected, &path.iter().map(String::as_str).collect::<Vec<_>>());
        }
        prop_assert_eq!(pruned::<Json>(&prune, &value), expected);
    }

    #[test]
    fn pruning_a_pod_equals_clearing_its_managed_fields(metadata in metadata()) {
        let json = json!(AnyPod { metadata: &metadata });
        let mut expected: Pod = whole(&json);
        expected.metadata.managed_fields = None;
        prop_assert_eq!(pruned::<Pod>(&PrunePaths::default(), &json), expected);
    }
}
