//! Index values from every form of field that a path may lead through, and from every form of
//! function.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::ParseIntError;

use informer_factory::{Informer, InformerOptions, ObjectKey, SharedIndexInformer};
use informer_testing::MemorySource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{names, within};

#[derive(Informer, Deserialize, Clone, Debug)]
#[informer(group = "forms.example.com", version = "v1", kind = "Form", cluster)]
#[informer(index(name = "by_plain", path = "plain"))]
#[informer(index(name = "by_deep", path = "deep.inner.name"))]
#[informer(index(name = "by_item", path = "items.name"))]
#[informer(index(name = "by_tag", path = "tags"))]
#[informer(index(name = "by_value", path = "map"))]
#[informer(index(name = "by_entry", path = "map[\"app\"]"))]
#[informer(index(name = "by_inner", path = "objects[\"app.example.com/main\"].name"))]
#[informer(index(name = "by_count", path = "count", value = i64))]
#[informer(index(name = "by_type", path = "type"))]
#[informer(index(name = "by_length", with = |form: &Form| [form.plain.len()], value = usize))]
#[informer(index(name = "by_option", with = option))]
#[informer(index(name = "by_number", with = number, value = u8))]
#[informer(index(name = "by_panic", with = panicking))]
struct Form {
    metadata: ObjectMeta,
    plain: String,
    deep: Option<Box<Deep>>,
    items: Option<Vec<Inner>>,
    #[serde(default)]
    tags: BTreeSet<String>,
    map: Option<BTreeMap<String, String>>,
    #[serde(default)]
    objects: HashMap<String, Inner>,
    count: Option<i64>,
    r#type: Option<String>,
}

#[derive(Deserialize, Clone, Debug)]
struct Deep {
    inner: Option<Inner>,
}

#[derive(Deserialize, Clone, Debug)]
struct Inner {
    name: Option<String>,
}

fn option(form: &Form) -> Option<String> {
    form.r#type.clone()
}

fn number(form: &Form) -> Result<Option<u8>, ParseIntError> {
    form.plain.parse().map(Some)
}

fn panicking(form: &Form) -> Vec<String> {
    assert_ne!(form.plain, "panic", "an unlucky name");
    vec![form.plain.clone()]
}

/// Runs an informer over these objects until the returned guard is dropped.
async fn with(objects: &[Value]) -> (SharedIndexInformer<Form>, DropGuard) {
    let source = MemorySource::new("forms");
    for (number, object) in objects.iter().enumerate() {
        let mut object = object.clone();
        object["metadata"] = json!({ "name": format!("f{number}") });
        source.create(serde_json::from_value(object).expect("the JSON is a form")).expect("a new object");
    }
    let (forms, task) = Form::new_informer_from(Arc::new(source), InformerOptions::new());
    let shutdown = CancellationToken::new();
    tokio::spawn(task.run(shutdown.clone()));
    within(forms.synced().wait()).await.expect("synced");
    (forms, shutdown.drop_guard())
}

#[tokio::test]
async fn index_path_traverses_options_boxes_lists_sets_and_maps() {
    let (forms, _running) = with(&[
        json!({
            "plain": "x", "deep": { "inner": { "name": "d" } }, "items": [{ "name": "i" }, { "name": "j" }, {}],
            "tags": ["s", "t"], "map": { "app": "web", "tier": "front" }, "count": 3, "type": "T",
            "objects": { "app.example.com/main": { "name": "o" }, "other": { "name": "p" } },
        }),
        json!({ "plain": "x", "deep": {}, "items": [], "map": { "tier": "web" } }),
        json!({ "plain": "y" }),
    ])
    .await;
    assert_eq!(names(&forms.by_plain("x")), ["f0", "f1"]);
    assert_eq!(names(&forms.by_deep("d")), ["f0"]);
    assert_eq!(
        (names(&forms.by_item("i")), names(&forms.by_item("j"))),
        (vec!["f0".into()], vec!["f0".into()])
    );
    assert_eq!(names(&forms.by_tag("t")), ["f0"]);
    assert_eq!(names(&forms.by_value("web")), ["f0", "f1"]);
    assert_eq!(names(&forms.by_entry("web")), ["f0"]);
    assert_eq!(forms.by_inner_index().values(), ["o"]);
    assert_eq!(names(&forms.by_count(&3)), ["f0"]);
    assert_eq!(names(&forms.by_type("T")), ["f0"]);
}

#[tokio::test]
async fn index_function_can_be_a_closure_with_option_or_result() {
    let (forms, _running) = with(&[json!({ "plain": "12", "type": "T" }), json!({ "plain": "z" })]).await;
    assert_eq!(names(&forms.by_length(&2)), ["f0"]);
    assert_eq!(names(&forms.by_option("T")), ["f0"]);
    assert_eq!(names(&forms.by_number(&12)), ["f0"]);
}

#[tokio::test]
async fn i10_failed_derived_index_function_keeps_the_object() {
    let (forms, _running) = with(&[json!({ "plain": "1" }), json!({ "plain": "panic" })]).await;
    assert!(forms.get(&ObjectKey::cluster_scoped("f1")).is_some());
    assert_eq!(names(&forms.by_panic("1")), ["f0"]);
    let mut failures: Vec<String> =
        forms.indexer().index_failures().iter().map(ToString::to_string).collect();
    failures.sort_unstable();
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures[0].starts_with("index \"by_number\" lacks object f1"), "{failures:?}");
    assert!(failures[0].ends_with("invalid digit found in string"), "{failures:?}");
    assert!(
        failures[1].contains("\"by_panic\"") && failures[1].contains("panicked: assertion"),
        "{failures:?}"
    );
}
