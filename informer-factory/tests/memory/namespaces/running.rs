//! Controllers over informers whose namespaces come and go.

use std::convert::Infallible;
use std::time::Duration;

use informer_factory::{
    ControllerRunner, NotSynced, ReconcileRequest, Reconciled, RunnerMonitor, Workqueue, own_key,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Server;
use crate::Running;

/// A controller that is done with everything.
struct Controller {
    called: UnboundedReceiver<String>,
    monitor: RunnerMonitor,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), NotSynced>>,
}

impl Controller {
    /// Starts one that is told of `parents`, and also reads `children`.
    fn start(parents: &Running, children: &Running) -> Self {
        let runner = ControllerRunner::new(Workqueue::builder().name("parents").build())
            .watches(&parents.informer, own_key)
            .waits_for(children.informer.clone());
        let (tell, called) = unbounded_channel();
        let reconcile = move |request: ReconcileRequest| {
            _ = tell.send(request.key().to_string());
            std::future::ready(Ok::<_, Infallible>(Reconciled::Done))
        };
        let (monitor, shutdown) = (runner.monitor(), CancellationToken::new());
        let task = tokio::spawn(runner.run(reconcile, shutdown.clone()));
        Self { called, monitor, shutdown, task }
    }

    async fn next(&mut self) -> String {
        let called = timeout(Duration::from_secs(3_600), self.called.recv()).await;
        called.expect("it should have been called by now").expect("it is at work")
    }

    /// Waits until nothing happens any more without time going by, and returns what it was called with meanwhile.
    async fn settled(&mut self) -> Vec<String> {
        sleep(Duration::from_millis(1)).await;
        std::iter::from_fn(|| self.called.try_recv().ok()).collect()
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("no panic").expect("it was synced");
    }
}

/// Parents and children, both followed in `a`. There is a parent in `c`, whose children can't be listed at first.
async fn with_children_refused_in_c() -> (Server, Running, Running) {
    let (of_parents, of_children) = (Server::new(), Server::new());
    of_parents.put("c", "late", "1");
    of_children.put("c", "child", "1");
    let refusal = kube::core::Status::failure("no", "Forbidden").with_code(403);
    of_children.of("c").fail_next_list(Box::new(refusal).into());
    let (parents, children) = (of_parents.start(&["a"]), of_children.start(&["a"]));
    (of_parents, parents.synced().await, children.synced().await)
}

#[tokio::test(start_paused = true)]
async fn i6_a_key_of_a_namespace_that_comes_later_waits_until_every_cache_has_listed_that_one() {
    let (of_parents, parents, children) = with_children_refused_in_c().await;
    let mut controller = Controller::start(&parents, &children);
    children.informer.add_namespace("c").expect("a name");
    parents.informer.add_namespace("c").expect("a name").wait().await.expect("it is listed");
    assert!(!children.informer.synced_in("c").has_synced() && children.informer.synced_in("a").has_synced());
    of_parents.put("a", "other", "1");
    assert_eq!(controller.settled().await, ["a/other"]);
    assert_eq!(controller.monitor.stats().parked_now, 1);

    assert_eq!(controller.next().await, "c/late");
    assert!(children.informer.get(&"c/child".parse().expect("a key")).is_some());
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_no_longer_for_a_namespace_that_a_cache_ceases_to_follow() {
    let (_, parents, children) = with_children_refused_in_c().await;
    let mut controller = Controller::start(&parents, &children);
    children.informer.add_namespace("c").expect("a name");
    parents.informer.add_namespace("c").expect("a name").wait().await.expect("it is listed");
    assert!(controller.settled().await.is_empty());
    children.informer.remove_namespace("c").expect("a name");
    assert_eq!(controller.settled().await, ["c/late"]);
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_released_queue_nothing() {
    let (of_parents, of_children) = (Server::new(), Server::new());
    of_parents.put("b", "one", "1");
    let (parents, children) =
        (of_parents.start(&["a", "b"]).synced().await, of_children.start(&["a"]).synced().await);
    let mut controller = Controller::start(&parents, &children);
    assert_eq!(controller.next().await, "b/one");
    parents.informer.remove_namespace("b").expect("a name").wait().await.expect("it is gone");
    assert!(parents.informer.get(&"b/one".parse().expect("a key")).is_none());
    assert!(controller.settled().await.is_empty(), "it would look deleted, and is not");
    controller.stop().await;
    parents.stop().await;
    children.stop().await;
}
