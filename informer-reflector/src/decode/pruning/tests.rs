//! Decoding without a field gives the same as decoding everything and then clearing the field.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::core::{DynamicObject, PartialObjectMeta};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::PrunePaths;

fn pruned<K: DeserializeOwned>(paths: &PrunePaths, json: &Value) -> K {
    let bytes = json.to_string();
    let mut deserializer = serde_json::Deserializer::from_str(&bytes);
    let value = paths.deserialize(&mut deserializer).expect("an object that decodes");
    deserializer.end().expect("nothing after it");
    value
}

fn whole<K: DeserializeOwned>(json: &Value) -> K {
    pruned(&PrunePaths::none(), json)
}

fn pod() -> Value {
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
    managed_fields: Option<Value>,
    annotations: HashMap<Name, Box<str>>,
}

#[derive(Debug, PartialEq, Eq, Hash, Deserialize)]
struct Name(String);

#[derive(Debug, PartialEq, Deserialize)]
struct Wrapped(BTreeMap<Option<String>, Value>);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Spec {
    Pod { containers: Vec<Value> },
    Other(Value),
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
        assert_eq!(pruned::<Value>(&paths, &value), value);
    }
    Ok(())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-c\"\\\\\u{e9}]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn clear(value: &mut Value, path: &[&str]) {
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

proptest! {
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
        prop_assert_eq!(pruned::<Value>(&prune, &value), expected);
    }

    #[test]
    fn pruning_a_pod_equals_clearing_its_managed_fields(metadata in metadata()) {
        let json = json!(AnyPod { metadata: &metadata });
        let mut expected: Pod = whole(&json);
        expected.metadata.managed_fields = None;
        prop_assert_eq!(pruned::<Pod>(&PrunePaths::default(), &json), expected);
    }
}
