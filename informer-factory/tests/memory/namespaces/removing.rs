//! The removal of a namespace: its objects leave the store, and handlers receive releases, not
//! deletes.

use futures::StreamExt;
use informer_factory::{Event, Filtered, HandlerOptions, InformerOptions};
use informer_testing::Replica;
use k8s_openapi::api::core::v1::ConfigMap;

use super::{Server, stored};
use crate::{Running, listen, recorder, value_of};

#[tokio::test(start_paused = true)]
async fn removed_namespace_releases_its_objects() {
    let server = Server::new();
    server.put("a", "stays", "1");
    server.put("b", "one", "1");
    server.put("b", "two", "2");
    let running = server.start(&["a", "b"]).synced().await;
    let informer = &running.informer;
    let (_registration, mut recorded) = listen(informer, &HandlerOptions::default());
    assert_eq!(recorded.sorted(3).await, ["+one=1!", "+stays=1!", "+two=2!"]);

    let removed = informer.remove_namespace("b").expect("a valid name");
    assert_eq!(informer.namespaces(), ["a"]);
    removed.wait().await.expect("the informer runs");
    assert_eq!((stored(informer), server.of("b").open_watches()), (vec!["a/stays=1".to_owned()], 0));
    assert_eq!(recorded.sorted(2).await, ["^one=1", "^two=2"]);
    assert!(informer.indexer().watermarks().get("b").is_none());
    assert_eq!(informer.watermark(), server.of("a").resource_version());

    // The removed namespace causes no more events, and the others continue.
    server.put("b", "one", "3");
    server.put("a", "stays", "2");
    assert_eq!(recorded.next().await, "stays=1>2");
    for name in ["b", "never-watched"] {
        assert!(
            informer.remove_namespace(name).expect("a valid name").has_synced(),
            "the removal of {name} is complete"
        );
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i4_namespace_removed_and_added_again_is_listed_again() {
    let server = Server::new();
    server.put("a", "stays", "1");
    server.put("a", "goes", "1");
    let running = server.start(&["a"]).synced().await;
    let informer = &running.informer;
    let (_registration, mut recorded) = listen(informer, &HandlerOptions::default());
    let replica = Replica::new();
    informer.add_event_handler(replica.clone()).detach();
    assert_eq!(recorded.sorted(2).await, ["+goes=1!", "+stays=1!"]);

    let removed = informer.remove_namespace("a").expect("a valid name");
    assert!(
        !informer.remove_namespace("a").expect("a valid name").has_synced(),
        "the removal is not complete yet"
    );
    server.delete("a", "goes");
    let again = informer.add_namespace("a").expect("a valid name");
    removed.wait().await.expect("the removal completes");
    again.wait().await.expect("the namespace is listed again");
    assert_eq!((stored(informer), server.of("a").open_watches()), (server.objects(&["a"]), 1));
    assert_eq!(recorded.sorted(3).await, ["+stays=1", "^goes=1", "^stays=1"]);
    server.put("a", "stays", "2");
    assert_eq!(recorded.next().await, "stays=1>2");
    replica.wait_until(|objects| objects.values().any(|object| value_of(object) == "2")).await;
    assert_eq!(replica.violations(), [""; 0]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn totals_include_removed_namespaces() {
    let server = Server::new();
    server.put("b", "one", "1");
    let options = InformerOptions::new().transform(|_: &mut ConfigMap| Err("every object is rejected"));
    let running = Running::run(server.idle(&["a", "b"], options)).synced().await;
    let informer = &running.informer;
    let totals = || (informer.status().counts().lists, informer.status().quarantined_total());
    assert_eq!(totals(), (2, 1));
    for rejected in 2..4 {
        informer.remove_namespace("b").expect("a valid name").wait().await.expect("the informer runs");
        assert_eq!(totals(), (rejected, rejected - 1));
        informer.add_namespace("b").expect("a valid name").wait().await.expect("the namespace is listed");
        assert_eq!(totals(), (rejected + 1, rejected));
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn repeatedly_toggled_namespace_ends_in_the_last_state() {
    let server = Server::new();
    for name in ["one", "two", "three"] {
        server.put("a", name, "1");
        server.put("b", name, "1");
    }
    let running = server.start(&["a"]).synced().await;
    let informer = &running.informer;
    let replica = Replica::new();
    informer.add_event_handler_with(replica.clone(), &HandlerOptions::new().threshold(Some(1))).detach();
    let mut completions = Vec::new();
    for round in 0..50_u32 {
        let (first, second) = if round % 2 == 0 { ("a", "b") } else { ("b", "a") };
        completions.push(informer.remove_namespace(first).expect("a valid name"));
        completions.push(informer.add_namespace(second).expect("a valid name"));
        server.put(second, "one", &round.to_string());
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
    }
    for completion in &completions {
        // A namespace that was removed before it was listed does not sync.
        _ = completion.wait().await;
    }
    assert_eq!((informer.namespaces(), stored(informer)), (vec!["a".to_owned()], server.objects(&["a"])));
    replica.wait_until(|objects| objects.len() == 3).await;
    assert_eq!(replica.violations(), [""; 0]);
    assert_eq!((server.of("a").open_watches(), server.of("b").open_watches()), (1, 0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i11_slow_handler_keeps_release_and_later_deletion() {
    let server = Server::new();
    server.put("a", "known", "1");
    server.put("a", "doomed", "1");
    let running = server.start(&["a"]).synced().await;
    let informer = &running.informer;
    let mut events = informer.events(&HandlerOptions::new().threshold(Some(0)));
    for _ in 0..2 {
        assert!(matches!(events.next().await, Some(Event::Added { is_in_initial_list: true, .. })));
    }
    // The reader reads no event until the end. This update waits in the reader's inbox; later
    // events are coalesced.
    running.reach(&server.put("a", "known", "2")).await;
    running.reach(&server.put("a", "unread", "1")).await;
    informer.remove_namespace("a").expect("a valid name").wait().await.expect("the informer runs");
    informer.add_namespace("a").expect("a valid name").wait().await.expect("the namespace is listed");
    running.reach(&server.delete("a", "doomed")).await;
    informer.remove_namespace("a").expect("a valid name").wait().await.expect("the informer runs");
    let mut received = Vec::new();
    assert!(matches!(events.next().await, Some(Event::Updated { .. })));
    for _ in 0..2 {
        received.push(match events.next().await {
            Some(Event::Released(object)) => format!("^{}={}", object.name(), value_of(&object)),
            Some(Event::Deleted(deleted)) => format!("-{}", deleted.name()),
            other => format!("{other:?}"),
        });
    }
    received.sort();
    assert_eq!(received, ["-doomed", "^known=2"], "the release has the last state that the reader received");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn filter_passes_releases_of_matching_objects() {
    let server = Server::new();
    server.put("a", "matches", "yes");
    server.put("a", "other", "no");
    let running = server.start(&["a"]).synced().await;
    let (handler, mut recorded) = recorder();
    let filtered = Filtered::new(|object: &ConfigMap| value_of(object) == "yes", handler);
    running.informer.add_event_handler(filtered).detach();
    assert_eq!(recorded.next().await, "+matches=yes!");
    running.informer.remove_namespace("a").expect("a valid name").wait().await.expect("the informer runs");
    assert_eq!(recorded.next().await, "^matches=yes");
    running.stop().await;
    assert!(recorded.rest().is_empty());
}

#[tokio::test(start_paused = true)]
async fn handler_without_on_release_does_not_delete() {
    let server = Server::new();
    server.put("a", "one", "1");
    let running = server.start(&["a"]).synced().await;
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    let registration = running
        .informer
        .add_handlers(|handlers| handlers.on_delete(move |deleted| _ = sender.send(deleted.key().clone())));
    registration.synced().wait().await.expect("synced");
    running.informer.remove_namespace("a").expect("a valid name").wait().await.expect("the informer runs");
    running.stop().await;
    registration.remove_and_wait().await;
    assert!(received.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn i12_stop_closes_all_watches_and_namespace_waits() {
    let server = Server::new();
    server.put("a", "one", "1");
    let running = server.start(&["a", "b"]).synced().await;
    let informer = running.informer.clone();
    for name in ["a", "b"] {
        server.of(name).wait_for_watches(1).await;
    }
    let added = informer.add_namespace("c").expect("a valid name");
    running.stop().await;
    assert!(["a", "b", "c"].iter().all(|name| server.of(name).open_watches() == 0));
    assert!(added.wait().await.is_err(), "the namespace was never listed");
    assert!(informer.add_namespace("d").expect("a valid name").wait().await.is_err());
    assert!(informer.remove_namespace("a").expect("a valid name").wait().await.is_err());
    assert_eq!(stored(&informer), ["a/one=1"], "the store keeps its objects");
    assert!(matches!(informer.health(), informer_factory::status::Health::Stopped));
}

#[tokio::test(start_paused = true)]
async fn i12_namespace_waits_end_without_a_run() {
    let (informer, task) = Server::new().idle(&["a"], InformerOptions::new());
    let added = informer.add_namespace("b").expect("a valid name");
    drop(task);
    assert!(added.wait().await.is_err() && informer.synced().wait().await.is_err());
    assert!(informer.add_namespace("c").expect("a valid name").wait().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn i12_aborted_informer_leaves_no_watch_and_no_wait() {
    let server = Server::new();
    let running: Running = server.start(&["a"]).synced().await;
    server.of("a").wait_for_watches(1).await;
    let removed = running.informer.remove_namespace("a").expect("a valid name");
    running.task.abort();
    assert!(running.task.await.is_err());
    assert!(removed.wait().await.is_err());
    assert_eq!(server.of("a").open_watches(), 0);
}
