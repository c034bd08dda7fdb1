//! How a controller ends.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use informer_controller::{ControllerRunner, Reconciled, own_key};
use tokio::sync::Notify;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;

use super::{Controller, done, queue, settled, soon, watched};
use crate::{create, key};

#[tokio::test(start_paused = true)]
async fn i12_shutdown_ends_calls_and_starts_none() {
    let (source, running, _) = watched().await;
    let queue = queue();
    let runner = ControllerRunner::new(queue.clone()).watches(&running.informer, own_key);
    let go_on = Arc::new(Notify::new());
    let (sender, mut receiver) = unbounded_channel();
    let mut controller = Controller::start(runner, {
        let go_on = Arc::clone(&go_on);
        move |request: informer_controller::ReconcileRequest| {
            let (go_on, sender) = (Arc::clone(&go_on), sender.clone());
            async move {
                _ = sender.send(format!("begins {}", request.key().name()));
                go_on.notified().await;
                _ = sender.send(format!("ends {}", request.key().name()));
                Ok::<_, Infallible>(Reconciled::Done)
            }
        }
    });
    create(&source, "a", "1");
    assert_eq!(soon(receiver.recv()).await.as_deref(), Some("begins a"));
    create(&source, "b", "1");
    settled().await;
    controller.shutdown.cancel();
    settled().await;
    assert!(!controller.task.is_finished());
    create(&source, "c", "1");
    settled().await;
    assert_eq!(queue.len(), 1, "b must stay queued");
    go_on.notify_one();
    soon(&mut controller.task).await.expect("no panic").expect("synced");
    assert_eq!(receiver.recv().await.as_deref(), Some("ends a"));
    assert_eq!(receiver.recv().await, None, "the reconcile function must be dropped");
    assert_eq!(controller.monitor.stats().succeeded, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i12_endless_call_is_dropped_after_drain_timeout() {
    let queue = queue();
    let runner = ControllerRunner::new(queue.clone()).drain_timeout(Duration::from_secs(7));
    let controller = Controller::start(runner, |_| std::future::pending::<Result<Reconciled, Infallible>>());
    queue.add(key("a"));
    settled().await;
    assert_eq!(controller.monitor.stats().active, 1);
    let (monitor, begun) = (controller.monitor.clone(), Instant::now());
    controller.stop().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(7));
    assert_eq!((monitor.stats().active, monitor.stats().succeeded), (0, 0));
    assert!(queue.is_shut_down());
}

#[tokio::test(start_paused = true)]
async fn i12_dropped_controller_leaves_no_task() {
    let (source, running, _) = watched().await;
    let queue = queue();
    let runner = ControllerRunner::new(queue.clone()).workers(3).watches(&running.informer, own_key);
    let (sender, mut receiver) = unbounded_channel::<()>();
    let controller = Controller::start(runner, move |_| {
        let sender = sender.clone();
        async move {
            _ = sender.send(());
            std::future::pending::<Result<Reconciled, Infallible>>().await
        }
    });
    create(&source, "a", "1");
    soon(receiver.recv()).await.expect("the function is called");
    controller.task.abort();
    assert!(soon(controller.task).await.expect_err("the task was aborted").is_cancelled());
    assert_eq!(soon(receiver.recv()).await, None, "workers and calls must be dropped");
    create(&source, "b", "1");
    settled().await;
    assert!(queue.is_shut_down() && queue.is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn queue_shutdown_ends_the_controller_when_drained() {
    let queue = queue();
    let (reconcile, mut called) = done();
    let controller = Controller::start(ControllerRunner::new(queue.clone()), reconcile);
    queue.add(key("a"));
    queue.add(key("b"));
    assert!(soon(queue.shut_down_with_drain()).await);
    soon(controller.task).await.expect("no panic").expect("no informer to sync");
    assert_eq!(called.rest(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn standby_controller_begins_with_existing_objects() {
    let (source, running, _) = watched().await;
    let queue = queue();
    let runner = ControllerRunner::new(queue.clone()).watches(&running.informer, own_key);
    running.reach(&create(&source, "a", "1")).await;
    source.delete(&key("a")).expect("the object exists");
    running.reach(&create(&source, "b", "1")).await;
    settled().await;
    let (reconcile, mut called) = done();
    assert!(queue.is_empty(), "a standby must queue no keys");
    let controller = Controller::start(runner, reconcile);
    settled().await;
    assert_eq!(called.rest(), ["b"]);
    controller.stop().await;
    running.stop().await;
}
