//! Tests that decoding gives the same result as `serde_json`, and that pruning a field gives the same
//! result as decoding all fields and then clearing this one.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::core::{DynamicObject, PartialObjectMeta};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::*;
use crate::PrunePaths;
use crate::decode::deserialize::deserialize;
use crate::decode::prune_paths::NOTHING_PRUNED;

fn pruned<K: DeserializeOwned>(paths: &PrunePaths, json: &Json) -> K {
    let json = format!("{json} ");
    let value = read(&json, paths.root()).expect("JSON");
    deserialize(&value.tape).expect("an object that decodes")
}

fn whole<K: DeserializeOwned>(json: &Json) -> K {
    serde_json::from_str(&json.to_string()).expect("an object that decodes")
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

/// A type with few fields, as a user would write it, with several features of serde.
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
fn newtypes_options_and_untagged_enums_decode_on_pruned_paths() -> Result<(), Box<dyn std::error::Error>> {
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

/// Generates metadata with random labels, annotations, name and number of managed fields.
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

fn outcome(json: &str) -> Result<(String, usize), NoValue> {
    let paths =
        PrunePaths::none().with_path("p").and_then(|paths| paths.with_path("q.p")).expect("two paths");
    read(json, paths.root()).map(|value| {
        let mut json = String::new();
        value.tape.write_json(0, &mut json);
        (json, value.len)
    })
}

#[test]
fn pruned_member_is_left_out() {
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
fn numbers_are_those_of_serde_json() {
    for number in [
        "0",
        "-0",
        "12",
        "-12",
        "1.5",
        "-1.5e3",
        "1E+2",
        "1e-2",
        "0.0",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "1e308",
    ] {
        let expected: Json = serde_json::from_str(number).expect(number);
        let text = format!("{number} ");
        let value = read(&text, &NOTHING_PRUNED).expect(number);
        assert_eq!(deserialize::<Json>(&value.tape).expect(number), expected, "{number}");
    }
    for broken in ["01 ", "1. ", ".5 ", "1e ", "1e+ ", "- ", "+1 ", "1a ", "nul ", "truE "] {
        assert_eq!(outcome(broken), Err(NoValue::Broken), "{broken}");
    }
}

#[test]
fn each_type_of_serde_is_decoded_as_by_serde_json() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only the debug output is compared")]
    enum Choice {
        Unit,
        New(u8),
        Pair(u8, String),
        Named { a: Option<bool> },
    }
    #[derive(Debug, Deserialize)]
    struct Marker;
    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only the debug output is compared")]
    struct Everything {
        choices: Vec<Choice>,
        wide: (u128, i128, f32),
        keys: BTreeMap<i16, char>,
        flags: HashMap<bool, ()>,
        none: Option<Option<u8>>,
        marker: Marker,
        raw: Box<serde_json::value::RawValue>,
        #[serde(flatten)]
        rest: BTreeMap<String, Json>,
    }
    let json = r#"{"choices": ["Unit", {"New": 7}, {"Pair": [1, "b"]}, {"Named": {"a": true}}],
        "wide": [340282366920938463463374607431768211455, -170141183460469231731687303715884105728, 1.5],
        "keys": {"-3": "x"}, "flags": {"true": null}, "none": null, "marker": null,
        "raw": {"b":[1,-2,2.5,"\n"],"a":{}}, "other": [{}], "more": 1}"#;
    let value = read(json, &NOTHING_PRUNED).expect("JSON");
    let ours: Everything = deserialize(&value.tape).expect("an object that decodes");
    let theirs: Everything = serde_json::from_str(json).expect("an object that decodes");
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
}

#[test]
fn i10_error_that_a_type_ignores_loses_no_other_field() {
    fn lenient<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        Ok(u32::deserialize(deserializer).unwrap_or_default())
    }
    fn unread<'de, D: serde::Deserializer<'de>>(_: D) -> Result<bool, D::Error> {
        Ok(true)
    }
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(transparent)]
    struct Size(#[serde(deserialize_with = "lenient")] u32);
    #[derive(Debug, PartialEq, Deserialize)]
    struct Workload {
        #[serde(deserialize_with = "lenient")]
        replicas: u32,
        sizes: Vec<Size>,
        #[serde(deserialize_with = "unread")]
        unread: bool,
        image: String,
    }
    let json = r#"{"replicas":{"a":1},"sizes":[{"a":[]},2,[3],"4"],"unread":"image","image":"nginx"}"#;
    let value = read(json, &NOTHING_PRUNED).expect("JSON");
    let sizes = vec![Size(0), Size(2), Size(0), Size(0)];
    let expected = Workload { replicas: 0, sizes, unread: true, image: "nginx".into() };
    assert_eq!(deserialize::<Workload>(&value.tape).expect("an object that decodes"), expected);
}

#[test]
fn array_that_is_too_long_for_its_type_is_rejected() {
    let value = read("[[1,2,3]] ", &NOTHING_PRUNED).expect("JSON");
    let error = deserialize::<Vec<(u8, u8)>>(&value.tape).expect_err("an error");
    assert_eq!(error.to_string(), "invalid value at [0]");
    assert!(deserialize::<Vec<[u8; 2]>>(&value.tape).is_err());
    assert_eq!(deserialize::<Vec<[u8; 3]>>(&value.tape).expect("an array"), [[1_u8, 2, 3]]);
}

#[test]
fn vector_has_the_capacity_that_it_needs() {
    let value = read("[[1,2,3],[],[\"a\",\"b\",\"c\",\"d\",\"e\"]] ", &NOTHING_PRUNED).expect("JSON");
    let vectors: Vec<Vec<Json>> = deserialize(&value.tape).expect("vectors");
    assert_eq!(vectors.iter().map(Vec::capacity).collect::<Vec<_>>(), [3, 0, 5]);
}

#[test]
fn object_with_more_than_128_levels_is_rejected() {
    let deep = format!("{}{} 7 ", "[".repeat(100_000), "]".repeat(100_000));
    let value = read(&deep, &NOTHING_PRUNED).expect("JSON");
    let error = deserialize::<serde::de::IgnoredAny>(&value.tape).expect_err("an error");
    assert_eq!((error.to_string().as_str(), value.len), (TOO_DEEP, 200_000));
    let allowed = format!("{}{} ", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert!(read(&allowed, &NOTHING_PRUNED).expect("JSON").tape.problem().is_none());
}

proptest! {
    #[test]
    fn any_text_is_read_as_by_serde_json(json in r#"[\[\]{}":,\\0-9a-eu. -]{0,24}|"(\\[\\"/bfnrtu]|[0-9a-f]|\PC|[\x00-\x1f]){0,12}""#) {
        match read(&json, &NOTHING_PRUNED) {
            Ok(ours) => {
                // Both results can be `None`, for example for a number that is too large.
                let theirs: Option<Json> = serde_json::from_str(&json[..ours.len]).ok();
                prop_assert_eq!(deserialize::<Json>(&ours.tape).ok(), theirs);
                prop_assert!(is_json(&json[..ours.len]));
            }
            Err(error) => {
                let theirs = serde_json::Deserializer::from_str(&json).into_iter::<Json>().next();
                // A number at the end of the text can be incomplete.
                let is_number = matches!(&theirs, Some(Ok(Json::Number(_))) if error == NoValue::Incomplete);
                prop_assert!(is_number || !matches!(theirs, Some(Ok(_))), "{error:?}, and not {theirs:?}");
            }
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
        let json = json!({"metadata": metadata});
        let mut expected: Pod = whole(&json);
        expected.metadata.managed_fields = None;
        prop_assert_eq!(pruned::<Pod>(&PrunePaths::default(), &json), expected);
    }
}
