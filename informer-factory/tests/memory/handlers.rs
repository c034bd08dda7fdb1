//! Forms of handlers: async handlers and event streams.

use async_trait::async_trait;
use futures::StreamExt;
use informer_factory::{AsyncEventHandler, Cached, Deleted, Event, HandlerOptions, InformerOptions};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::{Running, create, source, value_of};

/// An async handler that yields once in each call, before it records the event.
struct Slow(UnboundedSender<String>);

#[async_trait]
impl AsyncEventHandler<ConfigMap> for Slow {
    async fn on_add(&self, object: &Cached<ConfigMap>, is_in_initial_list: bool) {
        tokio::task::yield_now().await;
        _ = self.0.send(format!("+{} {is_in_initial_list}", object.name()));
    }

    async fn on_delete(&self, object: &Deleted<ConfigMap>) {
        tokio::task::yield_now().await;
        _ = self.0.send(format!("-{}", object.name()));
    }
}

#[tokio::test(start_paused = true)]
async fn i5_async_handler_receives_store_then_changes() {
    let source = source();
    let first = create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let (send, mut recorded) = unbounded_channel();
    let registration = running.informer.add_async_event_handler(Slow(send));
    registration.synced().wait().await.expect("synced");
    create(&source, "b", "1");
    source.delete(first.key()).expect("the object exists");
    for expected in ["+a true", "+b false", "-a"] {
        assert_eq!(recorded.recv().await.as_deref(), Some(expected));
    }
    running.stop().await;
    assert_eq!(recorded.recv().await, None, "the handler was dropped");
}

#[tokio::test(start_paused = true)]
async fn i12_event_stream_ends_when_its_informer_stops() {
    let source = source();
    create(&source, "a", "1");
    let running = Running::start(&source, InformerOptions::new());
    let mut events = running.informer.events(&HandlerOptions::default());
    let waiting_for = events.registration().waiting_for().expect("the handler has not synced");
    assert!(waiting_for.contains("initial list") && waiting_for.contains("configmaps"), "{waiting_for}");
    match events.next().await {
        Some(Event::Added { object, is_in_initial_list: true }) => assert_eq!(value_of(&object), "1"),
        other => panic!("expected an initial add, received {other:?}"),
    }
    running.stop().await;
    assert!(events.next().await.is_none());
}
