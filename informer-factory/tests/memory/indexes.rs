//! Indexes of a running informer: client-go's `TestIndexer`.

use informer_factory::{InformerOptions, Objects};
use k8s_openapi::api::core::v1::ConfigMap;

use crate::{Running, create, idle, key, source, update, value_of};

/// Indexes an object by each word of its value.
fn words(object: &ConfigMap) -> Vec<String> {
    value_of(object).split_whitespace().map(str::to_owned).collect()
}

fn names(objects: &Objects<ConfigMap>) -> Vec<&str> {
    let mut names: Vec<_> = objects.iter().map(|object| object.key().name()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(start_paused = true)]
async fn object_is_found_under_each_of_its_current_values() {
    let source = source();
    create(&source, "a", "red green");
    create(&source, "b", "green");
    let (informer, task) = idle(&source);
    let by_word = informer.add_index("word", words).expect("a new index name");
    let running = Running::run((informer, task)).synced().await;
    assert_eq!(names(&by_word.get("green")), ["a", "b"]);
    assert_eq!(names(&by_word.get("red")), ["a"]);
    running.reach(&create(&source, "c", "red blue")).await;
    assert_eq!(names(&by_word.get("red")), ["a", "c"], "a later object is indexed");
    running.reach(&update(&source, "a", "blue")).await;
    assert_eq!(names(&by_word.get("red")), ["c"]);
    assert_eq!(names(&by_word.get("blue")), ["a", "c"]);
    let mut values = by_word.values();
    values.sort();
    assert_eq!(values, ["blue", "green", "red"]);
    running.reach(&source.delete(&key("c")).expect("the object exists")).await;
    assert_eq!(
        names(&running.informer.indexer().by_index("word", "red").expect("the index exists")),
        [""; 0]
    );
    assert_eq!(by_word.values().len(), 2, "a value without objects is removed");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn index_added_to_a_running_informer_is_usable_at_once() {
    let source = source();
    create(&source, "a", "red");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let by_word = running.informer.add_index("word", words).expect("a new index name");
    assert_eq!(names(&by_word.get("red")), ["a"]);
    running.reach(&create(&source, "b", "red")).await;
    assert_eq!(names(&by_word.get("red")), ["a", "b"]);
    assert!(running.informer.add_index("word", words).is_err(), "the name is taken");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn index_added_after_the_stop_finds_the_last_state() {
    let source = source();
    create(&source, "a", "red");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let informer = running.informer.clone();
    running.stop().await;
    let by_word = informer.add_index("word", words).expect("a new index name");
    assert_eq!(names(&by_word.get("red")), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn i3_handler_finds_its_object_by_index() {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let by_word = running.informer.add_index("word", words).expect("a new index name");
    let (sender, mut found) = tokio::sync::mpsc::unbounded_channel();
    let _registration = running.informer.add_handlers(|handlers| {
        handlers.on_add(move |object, _| {
            let same = by_word.get(value_of(object)).iter().any(|found| found.ptr_eq(object));
            _ = sender.send((object.key().name().to_owned(), same));
        })
    });
    create(&source, "a", "red");
    create(&source, "b", "blue");
    for name in ["a", "b"] {
        assert_eq!(found.recv().await, Some((name.to_owned(), true)));
    }
    running.stop().await;
}
