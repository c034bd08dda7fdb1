//! An informer of a changing set of namespaces, with one source per namespace.

mod failures;
mod refused;
mod removing;
mod waiting;

use std::time::Duration;

use informer_factory::namespaces::NamespaceError;
use informer_factory::{HandlerOptions, InformerOptions, ObjectKey, SharedIndexInformer, WaitOutcome};
use informer_testing::Replica;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::server::Server;
use crate::{Running, config_map, listen, shown, value_of};

const SOON: Duration = Duration::from_secs(5);

/// Returns the objects in an informer's store, as `shown` formats them.
fn stored(informer: &SharedIndexInformer<ConfigMap>) -> Vec<String> {
    let mut stored: Vec<_> = informer.indexer().list().iter().map(shown).collect();
    stored.sort();
    stored
}

#[tokio::test(start_paused = true)]
async fn one_store_and_handler_have_all_namespaces() {
    let server = Server::new();
    server.put("a", "one", "1");
    server.put("b", "two", "2");
    server.put("c", "unseen", "3");
    let (informer, task) = server.idle(&["a", "b"], InformerOptions::new());
    let (handler, mut recorded) = listen(&informer, &HandlerOptions::default());
    let by_value = informer.add_index("value", |object: &ConfigMap| Some(value_of(object).to_owned()));
    let running = Running::run((informer.clone(), task)).synced().await;
    handler.synced().wait().await.expect("synced");
    assert_eq!(recorded.sorted(2).await, ["+one=1!", "+two=2!"]);
    assert_eq!(stored(&informer), ["a/one=1", "b/two=2"]);
    assert_eq!(informer.namespaces(), ["a", "b"]);
    let lister = informer.lister();
    assert!(lister.namespace("b").get("two").is_some() && lister.namespace("b").get("one").is_none());

    let written = server.put("b", "two", "1");
    assert_eq!(informer.wait_for_write(&written, SOON).await, WaitOutcome::Reached);
    assert_eq!(recorded.next().await, "two=2>1");
    assert_eq!(by_value.expect("a free index name").count(&"1".to_owned()), 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i6_informer_syncs_with_its_initial_namespaces() {
    let server = Server::new();
    server.put("a", "one", "1");
    server.put("c", "late", "3");
    let refusal = || Box::new(kube::core::Status::failure("no", "Forbidden").with_code(403)).into();
    server.of("b").fail_next_list(refusal());
    let running = server.start(&["a", "b"]);
    let informer = &running.informer;
    let (handler, mut recorded) = listen(informer, &HandlerOptions::default());
    assert_eq!(recorded.next().await, "+one=1!");
    assert!(!informer.has_synced() && !handler.has_synced());
    assert!(informer.watermark().is_empty() && informer.indexer().watermarks().get("a").is_some());

    // A namespace that is added later neither waits for the initial namespaces nor delays them.
    informer.add_namespace("c").expect("a valid name").wait().await.expect("the namespace is listed");
    assert_eq!((recorded.next().await.as_str(), informer.has_synced()), ("+late=3", false));
    informer.synced().wait().await.expect("the refused list is retried");
    handler.synced().wait().await.expect("synced");
    assert_eq!(informer.watermark(), server.of("b").resource_version());
    assert_eq!(informer.indexer().watermarks().iter().count(), 3);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn informer_without_namespaces_is_synced_and_empty() {
    let server = Server::new();
    server.put("a", "one", "1");
    let running = server.start(&[]).synced().await;
    let (handler, mut recorded) = listen(&running.informer, &HandlerOptions::default());
    handler.synced().wait().await.expect("a handler without objects syncs");
    assert!(running.informer.watermark().is_empty());
    let added = running.informer.add_namespace("a").expect("a valid name");
    added.wait().await.expect("the namespace is listed");
    assert_eq!(recorded.next().await, "+one=1");
    // For a watched namespace, `add_namespace` returns the completion of the first call.
    assert!(running.informer.add_namespace("a").expect("a valid name").has_synced());
    assert_eq!(server.of("a").open_watches(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn namespaces_can_be_added_and_removed_before_the_start() {
    let server = Server::new();
    server.put("a", "one", "1");
    server.put("b", "two", "2");
    let (informer, task) = server.idle(&["a"], InformerOptions::new());
    let added = informer.add_namespace("b").expect("a valid name");
    informer.remove_namespace("a").expect("a valid name").wait().await.expect("the removal completes");
    let running = Running::run((informer, task)).synced().await;
    assert!(added.has_synced(), "the namespace belongs to the initial list");
    assert_eq!((stored(&running.informer), server.of("a").list_count()), (vec!["b/two=2".to_owned()], 0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i9_each_namespace_equals_the_server_at_its_watermark() {
    let server = Server::new();
    server.put("a", "stays", "1");
    server.put("b", "goes", "1");
    server.put("b", "changes", "1");
    let running = server.start(&["a", "b"]).synced().await;
    let informer = &running.informer;
    let replica = Replica::new();
    informer.add_event_handler(replica.clone()).detach();
    server.of("b").wait_for_watches(1).await;
    server.of("b").delete_unseen(&ObjectKey::namespaced("b", "goes")).expect("the object exists");
    let mut changed = config_map("changes", "2");
    changed.metadata.namespace = Some("b".into());
    server.of("b").update_unseen(changed).expect("the object exists");
    server.of("b").expire();
    server.of("b").disconnect();
    replica.wait_until(|objects| objects.values().any(|object| value_of(object) == "2")).await;
    let written = server.put("b", "new", "1");
    assert_eq!(informer.wait_for_write(&written, 60 * SOON).await, WaitOutcome::Reached);
    assert_eq!(stored(informer), server.objects(&["a", "b"]));
    assert_eq!(informer.indexer().watermarks().get("b"), Some(&server.of("b").resource_version()));
    assert_eq!(informer.indexer().watermarks().get("a"), Some(&server.of("a").resource_version()));
    assert_eq!(server.of("a").list_count(), 1, "the other namespace is not relisted");
    replica.wait_until(|objects| objects.len() == 3).await;
    assert_eq!(replica.violations(), [""; 0]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn handlers_get_resyncs_of_all_listed_namespaces() {
    let server = Server::new();
    server.put("a", "one", "1");
    server.put("b", "two", "2");
    for _ in 0..100 {
        server
            .of("c")
            .fail_next_list(Box::new(kube::core::Status::failure("no", "Forbidden").with_code(403)).into());
    }
    let options = InformerOptions::new().resync_period(Duration::from_secs(10));
    let running = Running::run(server.idle(&["a", "b", "c"], options));
    let (_handler, mut recorded) = listen(&running.informer, &HandlerOptions::default());
    assert_eq!(recorded.sorted(2).await, ["+one=1!", "+two=2!"]);
    assert_eq!(recorded.sorted(2).await, ["one=1>1", "two=2>2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unsupported_operations_are_errors_with_remedies() {
    let (informer, _task) = crate::idle(&crate::source());
    let error = informer.add_namespace("a").expect_err("this informer has one fixed scope");
    assert!(matches!(error, NamespaceError::Fixed { .. }));
    for part in ["configmaps", "new_in_namespaces"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(informer.remove_namespace("a").is_err() && informer.namespaces().is_empty());

    let (informer, _task) = Server::new().idle(&["a"], InformerOptions::new());
    for name in ["", "A", "a/b", "-a", "a-", &"a".repeat(64)] {
        let error = informer.add_namespace(name).expect_err("an invalid namespace name");
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
    }
    let made = SharedIndexInformer::<ConfigMap>::new_in_namespaces(
        |_| unreachable!("names are checked first"),
        ["a", "b_c"],
        InformerOptions::new(),
    );
    assert_eq!(made.err(), Some(NamespaceError::InvalidName { name: "b_c".into() }));
}
