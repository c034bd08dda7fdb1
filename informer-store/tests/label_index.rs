//! The label index: with any selector and after any history, its results equal those of a scan.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use informer_core::{Cached, ObjectKey};
use informer_store::{Change, IndexError, Indexer, LABEL_INDEX, Lister, StoreWriter, parse_selector, store};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{Expression, Resource, Selector, SelectorExt};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn pod(namespace: u8, name: u8, version: u64, labels: &Labels) -> Cached<Pod> {
    let mut pod = Pod::default();
    pod.metadata.namespace = Some(format!("ns-{namespace}"));
    pod.metadata.name = Some(format!("pod-{name}"));
    pod.metadata.resource_version = Some(version.to_string());
    pod.metadata.labels = Some(labels.clone()).filter(|labels| !labels.is_empty());
    Cached::new(pod).expect("the object has a name")
}

fn labels(of: &[(&str, &str)]) -> Labels {
    of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

type Labels = BTreeMap<String, String>;

/// A change of the store, or a query.
#[derive(Debug, Clone)]
enum Step {
    Put { namespace: u8, name: u8, labels: Labels },
    Remove { namespace: u8, name: u8 },
    Replace { keep: u8 },
    AddIndex,
    RemoveIndex,
    Query { namespace: Option<u8>, selector: Vec<Expression> },
}

fn a_key() -> impl Strategy<Value = String> {
    (0..4_u8).prop_map(|n| format!("k{n}"))
}

fn a_value() -> impl Strategy<Value = String> {
    (0..4_u8).prop_map(|n| if n == 0 { String::new() } else { format!("v{n}") })
}

fn a_requirement() -> impl Strategy<Value = Expression> {
    let values = || prop::collection::btree_set(a_value(), 0..4);
    prop_oneof![
        3 => (a_key(), a_value()).prop_map(|(key, value)| Expression::Equal(key, value)),
        3 => (a_key(), values()).prop_map(|(key, values)| Expression::In(key, values)),
        1 => (a_key(), values()).prop_map(|(key, values)| Expression::NotIn(key, values)),
        1 => (a_key(), a_value()).prop_map(|(key, value)| Expression::NotEqual(key, value)),
        1 => a_key().prop_map(Expression::Exists),
        1 => a_key().prop_map(Expression::DoesNotExist),
    ]
}

fn a_step() -> impl Strategy<Value = Step> {
    let labels = prop::collection::btree_map(a_key(), a_value(), 0..4);
    let selector = prop::collection::vec(a_requirement(), 0..4);
    prop_oneof![
        10 => (0..3_u8, 0..12_u8, labels)
            .prop_map(|(namespace, name, labels)| Step::Put { namespace, name, labels }),
        2 => (0..3_u8, 0..12_u8).prop_map(|(namespace, name)| Step::Remove { namespace, name }),
        1 => (0..12_u8).prop_map(|keep| Step::Replace { keep }),
        1 => Just(Step::AddIndex),
        1 => Just(Step::RemoveIndex),
        6 => (prop::option::of(0..4_u8), selector)
            .prop_map(|(namespace, selector)| Step::Query { namespace, selector }),
    ]
}

fn sorted(objects: &[Cached<Pod>]) -> Vec<ObjectKey> {
    let mut keys: Vec<_> = objects.iter().map(|object| object.key().clone()).collect();
    keys.sort();
    keys
}

/// Returns the matches of a selector among all objects of the model, without an index.
fn scan(model: &BTreeMap<ObjectKey, Labels>, namespace: Option<&str>, selector: &Selector) -> Vec<ObjectKey> {
    let in_scope = |key: &ObjectKey| namespace.is_none_or(|namespace| key.namespace() == Some(namespace));
    let found = model.iter().filter(|(key, labels)| in_scope(key) && selector.matches(labels));
    found.map(|(key, _)| key.clone()).collect()
}

struct Run {
    writer: StoreWriter<Pod>,
    indexer: Indexer<Pod>,
    lister: Lister<Pod>,
    model: BTreeMap<ObjectKey, Labels>,
    version: u64,
}

impl Run {
    fn new() -> Self {
        let (writer, indexer) = store();
        let lister = Lister::new(indexer.clone());
        Self { writer, indexer, lister, model: BTreeMap::new(), version: 0 }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        self.version += 1;
        match step {
            Step::Put { namespace, name, labels } => {
                let pod = pod(*namespace, *name, self.version, labels);
                self.model.insert(pod.key().clone(), labels.clone());
                self.writer.transaction(vec![Change::Put(pod)], None);
            }
            Step::Remove { namespace, name } => {
                let key = ObjectKey::namespaced(&format!("ns-{namespace}"), &format!("pod-{name}"));
                self.model.remove(&key);
                self.writer.transaction(vec![Change::Remove(key)], None);
            }
            Step::Replace { keep } => {
                let kept: Vec<_> = self.indexer.list().iter().take(usize::from(*keep)).cloned().collect();
                self.model.retain(|key, _| kept.iter().any(|pod| pod.key() == key));
                self.writer.replace(kept, &self.version.into());
            }
            Step::AddIndex => prop_assert_eq!(self.indexer.add_label_index(), Ok(())),
            Step::RemoveIndex => drop(self.indexer.remove_index(LABEL_INDEX)),
            Step::Query { namespace, selector } => {
                let namespace = namespace.map(|namespace| format!("ns-{namespace}"));
                let selector: Selector = selector.iter().cloned().collect();
                let found = match &namespace {
                    Some(namespace) => self.lister.namespace(namespace).list(&selector),
                    None => self.lister.list(&selector),
                };
                let expected = scan(&self.model, namespace.as_deref(), &selector);
                prop_assert_eq!(sorted(&found), expected, "{}", selector);
            }
        }
        Ok(())
    }
}

#[test]
fn lister_results_are_equal_with_and_without_label_index() {
    // The number of histories to try: `INFORMER_CASES`; default: 1,000.
    let cases = std::env::var("INFORMER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let histories = prop::collection::vec(a_step(), 0..80);
    let outcome = runner.run(&histories, |steps| {
        let mut run = Run::new();
        steps.iter().try_for_each(|step| run.step(step))
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn selectors_without_an_index_have_correct_results() {
    let (mut writer, indexer) = store();
    writer.transaction(
        vec![
            Change::Put(pod(0, 0, 1, &labels(&[("app", "web")]))),
            Change::Put(pod(0, 1, 2, &labels(&[("app", "db")]))),
            Change::Put(pod(1, 2, 3, &labels(&[]))),
        ],
        None,
    );
    indexer.add_label_index().expect("the name is free");
    let lister = Lister::new(indexer);
    for (selector, found) in [("", 3), ("app", 2), ("!app", 1), ("app!=web", 2), ("app notin (web,db)", 1)] {
        assert_eq!(lister.list(&parse_selector(selector).expect("valid")).len(), found, "{selector:?}");
    }
    assert_eq!(lister.namespace("ns-0").list(&parse_selector("app!=web").expect("valid")).len(), 1);
}

#[test]
fn label_index_can_be_added_twice_and_removed() {
    let (mut writer, indexer) = store();
    writer.transaction(vec![Change::Put(pod(0, 0, 1, &labels(&[("app", "web")])))], None);
    assert_eq!(indexer.add_label_index(), Ok(()));
    assert_eq!(indexer.add_label_index(), Ok(()), "two users of an informer may both request the index");
    assert!(indexer.index_names().contains(&LABEL_INDEX.to_owned()));
    let web = parse_selector("app=web").expect("a selector");
    assert_eq!(Lister::new(indexer.clone()).list(&web).len(), 1);
    indexer.remove_index(LABEL_INDEX).expect("the index exists");
    assert_eq!(Lister::new(indexer).list(&web).len(), 1);
}

#[test]
fn user_index_with_the_label_indexs_name_is_kept() {
    let (mut writer, indexer) = store();
    writer.transaction(vec![Change::Put(pod(0, 0, 1, &labels(&[("app", "web")])))], None);
    let theirs = indexer.add_index(LABEL_INDEX, |_: &Pod| Some("app".to_owned())).expect("the name is free");
    assert!(matches!(indexer.add_label_index(), Err(IndexError::Duplicate { .. })));
    assert_eq!(theirs.count("app"), 1);
    assert_eq!(Lister::new(indexer).list(&parse_selector("app=web").expect("a selector")).len(), 1);
}

thread_local! {
    /// The actions to run at the next reads of an object's metadata.
    static NEXT_ACTIONS: RefCell<VecDeque<Box<dyn FnOnce()>>> = RefCell::default();
}

/// An object that runs the next action when an index reads its labels.
struct Busy(ObjectMeta);

impl Resource for Busy {
    type DynamicType = ();
    type Scope = kube_core::ClusterResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "Busy".into()
    }
    fn group(_: &()) -> Cow<'_, str> {
        "".into()
    }
    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural(_: &()) -> Cow<'_, str> {
        "busies".into()
    }
    fn meta(&self) -> &ObjectMeta {
        let action = NEXT_ACTIONS.with_borrow_mut(VecDeque::pop_front);
        action.into_iter().for_each(|action| action());
        &self.0
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0
    }
}

#[test]
fn label_index_requested_twice_at_once_is_shared() {
    let (mut writer, indexer) = store::<Busy>();
    let object = |name: &str| {
        let meta = ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels(&[("app", "web")])),
            ..ObjectMeta::default()
        };
        Cached::new(Busy(meta)).expect("the object has a name")
    };
    writer.put(object("a"));
    let (b, other) = (object("b"), indexer.clone());
    let outcome = Rc::new(Cell::new(None));
    NEXT_ACTIONS.with_borrow_mut(|actions| {
        // The first pass indexes one object, and the first action adds `b` during that pass. So the
        // second pass indexes `b`, and the second action requests the same index during that pass.
        actions.push_back(Box::new(move || _ = writer.put(b)));
        let outcome = Rc::clone(&outcome);
        actions.push_back(Box::new(move || outcome.set(Some(other.add_label_index()))));
    });
    assert_eq!(indexer.add_label_index(), Ok(()));
    assert_eq!(outcome.take(), Some(Ok(())));
    let selector = parse_selector("app=web").expect("a selector");
    assert_eq!(Lister::new(indexer).list(&selector).len(), 2);
}
