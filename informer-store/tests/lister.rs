//! Lookups by namespace, name and label selector.

use informer_core::Cached;
use informer_store::{Change, Lister, StoreWriter, parse_selector, store};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube_core::{ApiResource, DynamicObject, Expression, Resource, Selector};

fn named<K: Resource + Send + Sync + 'static + Default>(
    namespace: Option<&str>,
    name: &str,
    labels: &[(&str, &str)],
) -> Cached<K> {
    let mut object = K::default();
    let meta = object.meta_mut();
    meta.namespace = namespace.map(str::to_owned);
    meta.name = Some(name.to_owned());
    let labels: std::collections::BTreeMap<_, _> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    meta.labels = Some(labels).filter(|labels| !labels.is_empty());
    Cached::new(object).expect("the object has a name")
}

fn pods() -> (StoreWriter<Pod>, Lister<Pod>) {
    let (mut writer, indexer) = store::<Pod>();
    let pods = [
        named(Some("shop"), "web-1", &[("app", "web"), ("tier", "front")]),
        named(Some("shop"), "web-2", &[("app", "web"), ("tier", "back")]),
        named(Some("shop"), "bare", &[]),
        named(Some("bank"), "web-1", &[("app", "web")]),
    ];
    writer.transaction(pods.map(Change::Put).into(), None);
    (writer, Lister::new(indexer))
}

fn keys(pods: &[Cached<Pod>]) -> Vec<&str> {
    let mut keys: Vec<_> = pods.iter().map(|pod| pod.key().as_str()).collect();
    keys.sort_unstable();
    keys
}

fn selector(expressions: impl IntoIterator<Item = Expression>) -> Selector {
    expressions.into_iter().collect()
}

fn equal(key: &str, value: &str) -> Expression {
    Expression::Equal(key.into(), value.into())
}

#[test]
fn selector_finds_objects_in_all_namespaces_and_in_one() {
    let (_writer, pods) = pods();
    let web = selector([equal("app", "web")]);
    assert_eq!(keys(&pods.list(&web)), ["bank/web-1", "shop/web-1", "shop/web-2"]);
    assert_eq!(keys(&pods.namespace("shop").list(&web)), ["shop/web-1", "shop/web-2"]);
    assert!(pods.namespace("nowhere").list(&web).is_empty());
}

#[test]
fn every_requirement_of_a_selector_must_match() {
    let (_writer, pods) = pods();
    let front = selector([equal("app", "web"), equal("tier", "front")]);
    assert_eq!(keys(&pods.list(&front)), ["shop/web-1"]);
    let not_front = selector([equal("app", "web"), Expression::NotEqual("tier".into(), "front".into())]);
    assert_eq!(keys(&pods.list(&not_front)), ["bank/web-1", "shop/web-2"]);
    let tierless = selector([Expression::DoesNotExist("tier".into())]);
    assert_eq!(keys(&pods.list(&tierless)), ["bank/web-1", "shop/bare"]);
}

#[test]
fn an_empty_selector_finds_everything() {
    let (_writer, pods) = pods();
    assert_eq!(pods.list(&Selector::default()).len(), 4);
    assert_eq!(pods.namespace("bank").list(&Selector::default()).len(), 1);
}

#[test]
fn object_is_found_only_in_its_namespace() {
    let (_writer, pods) = pods();
    assert_eq!(
        pods.namespace("bank").get("web-1").map(|pod| pod.key().to_string()),
        Some("bank/web-1".into())
    );
    assert!(pods.namespace("bank").get("web-2").is_none());
    assert!(pods.get("web-1").is_none(), "a key without a namespace names a cluster-scoped object");

    let (mut writer, nodes) = store::<Node>();
    writer.transaction(vec![Change::Put(named(None, "node-1", &[]))], None);
    assert!(Lister::new(nodes).get("node-1").is_some());
}

#[test]
fn selector_can_be_parsed_from_a_string() {
    let (_writer, pods) = pods();
    let selector = parse_selector("app=web,tier!=back").expect("a selector");
    assert_eq!(keys(&pods.list(&selector)), ["bank/web-1", "shop/web-1"]);
    let selector = parse_selector("app in (web, db),tier").expect("a selector");
    assert_eq!(keys(&pods.namespace("shop").list(&selector)), ["shop/web-1", "shop/web-2"]);
}

#[test]
fn unsatisfiable_selector_finds_nothing() {
    let (_writer, pods) = pods();
    let nothing = selector([Expression::In("app".into(), [].into())]);
    assert!(pods.list(&nothing).is_empty());
    assert!(pods.namespace("shop").list(&nothing).is_empty());
}

#[test]
fn empty_namespace_means_all_namespaces() {
    let (_writer, pods) = pods();
    let web = selector([equal("app", "web")]);
    assert_eq!(pods.namespace("").list(&web).len(), 3);
    let (mut writer, nodes) = store::<Node>();
    writer.transaction(vec![Change::Put(named(None, "node-1", &[]))], None);
    assert!(Lister::new(nodes).namespace("").get("node-1").is_some());
}

#[test]
fn dynamic_objects_are_listed() {
    let (mut writer, widgets) = store::<DynamicObject>();
    let resource = ApiResource::erase::<Node>(&());
    for (name, size) in [("a", "s"), ("b", "l")] {
        let mut widget = DynamicObject::new(name, &resource).within("shop");
        widget.metadata.labels = Some([("size".to_owned(), size.to_owned())].into());
        writer.transaction(vec![Change::Put(Cached::new(widget).expect("the object has a name"))], None);
    }
    let widgets = Lister::new(widgets);
    assert_eq!(widgets.namespace("shop").list(&selector([equal("size", "l")])).len(), 1);
    assert!(widgets.namespace("shop").get("a").is_some());
}
