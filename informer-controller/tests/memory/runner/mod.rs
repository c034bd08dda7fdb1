//! Controllers: informers feed a queue, and workers call a function with each key.

mod endings;
mod feeding;
mod parking;
mod stopping;

use std::convert::Infallible;
use std::time::Duration;

use informer_controller::{
    ControllerRunner, ReconcileRequest, Reconciled, RunnerMonitor, Workqueue, own_key,
};
use informer_factory::{InformerOptions, NotSynced, ObjectKey};
use informer_testing::MemorySource;
use informer_workqueue::ItemExponential;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{Running, source};

/// The timeout of each wait, in virtual time.
const LONG: Duration = Duration::from_secs(120);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(LONG, future).await.expect("no result before the timeout")
}

/// Waits until all tasks are idle, which takes 1 ms of virtual time.
async fn settled() {
    sleep(ms(1)).await;
}

/// A queue that retries failures after 100 ms, 200 ms and so on.
fn queue() -> Workqueue<ObjectKey> {
    Workqueue::builder().name("maps").rate_limiter(ItemExponential::new(ms(100), LONG)).build()
}

struct Controller {
    task: JoinHandle<Result<(), NotSynced>>,
    shutdown: CancellationToken,
    monitor: RunnerMonitor,
}

impl Controller {
    fn start<F, R, E>(runner: ControllerRunner<ObjectKey>, reconcile: F) -> Self
    where
        F: Fn(ReconcileRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reconciled, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let (monitor, shutdown) = (runner.monitor(), CancellationToken::new());
        let task = tokio::spawn(runner.run(reconcile, shutdown.clone()));
        Self { task, shutdown, monitor }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        soon(self.task).await.expect("no panic").expect("synced");
    }
}

/// Returns a reconcile function that always succeeds, and a receiver of the name in each call's key.
fn done() -> (
    impl Fn(ReconcileRequest) -> std::future::Ready<Result<Reconciled, Infallible>> + Send + Sync + 'static,
    Names,
) {
    let (sender, names) = unbounded_channel();
    let reconcile = move |request: ReconcileRequest| {
        _ = sender.send(request.key().name().to_owned());
        std::future::ready(Ok(Reconciled::Done))
    };
    (reconcile, Names(names))
}

struct Names(UnboundedReceiver<String>);

impl Names {
    async fn next(&mut self) -> String {
        soon(self.0.recv()).await.expect("the controller runs")
    }

    fn rest(&mut self) -> Vec<String> {
        let mut rest: Vec<_> = std::iter::from_fn(|| self.0.try_recv().ok()).collect();
        rest.sort();
        rest
    }
}

/// Returns a source, its synced informer, and a controller of the informer that has not started.
async fn watched() -> (MemorySource<ConfigMap>, Running, ControllerRunner<ObjectKey>) {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let runner = ControllerRunner::new(queue()).watches(&running.informer, own_key);
    (source, running, runner)
}
