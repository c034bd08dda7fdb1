//! A server that is away: how often the reflectors of one client ask together, and how soon they are back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use informer_core::{
    DeltaFifo, ListEnd, ListOptions, ListPart, ListStream, ListWatchError, ListerWatcher, WatchOptions,
    WatchStream,
};
use informer_reflector::{Health, Reflector, ReflectorConfig, ReflectorStatus, SharedServer};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::script::{Line, Run, failure, status};

/// A server that is there or not, for all who ask.
#[derive(Clone, Default)]
struct Server {
    is_away: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
    hung_up: Arc<tokio::sync::Notify>,
    refusal: Option<(u16, &'static str)>,
}

impl Server {
    fn check(&self) -> Result<(), ListWatchError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        match self.refusal {
            _ if !self.is_away.load(Ordering::Relaxed) => Ok(()),
            Some((code, reason)) => Err(failure(code, reason)),
            None => Err(ListWatchError::Unreachable("connection refused".into())),
        }
    }

    fn goes_away(&self) {
        self.is_away.store(true, Ordering::Relaxed);
        self.requests.store(0, Ordering::Relaxed);
        self.hung_up.notify_waiters();
    }

    fn comes_back(&self) {
        self.is_away.store(false, Ordering::Relaxed);
    }
}

#[async_trait]
impl ListerWatcher<ConfigMap> for Server {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, _: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        self.check()?;
        let end = ListEnd { resource_version: "7".into(), ..ListEnd::default() };
        Ok(stream::iter([Ok(ListPart::End(end))]).boxed())
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        self.check()?;
        let hung_up = Arc::clone(&self.hung_up);
        let broken = async move {
            hung_up.notified().await;
            Err(ListWatchError::Interrupted("reset".into()))
        };
        Ok(stream::once(broken).boxed())
    }
}

/// Reflectors that run, all of one client.
struct Reflectors {
    statuses: Vec<ReflectorStatus>,
    tasks: JoinSet<()>,
    stop: DropGuard,
}

impl Reflectors {
    fn start(server: &Server, count: usize) -> Self {
        let (known, shutdown) = (SharedServer::new(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        let start = |_| {
            let queue = Arc::new(DeltaFifo::new());
            let config = ReflectorConfig::new().server(known.clone());
            let reflector = Reflector::new(Arc::new(server.clone()), queue, config);
            let status = reflector.status();
            tasks.spawn(reflector.run(shutdown.clone()));
            status
        };
        let statuses = (0..count).map(start).collect();
        Self { statuses, tasks, stop: shutdown.drop_guard() }
    }

    /// Stops them, and waits until all have ended.
    async fn stop(self) {
        drop(self.stop);
        self.tasks.join_all().await;
    }

    /// Waits until all of them are live.
    async fn live(&mut self) {
        for status in &mut self.statuses {
            while !status.health().is_live() {
                status.health_changed().await.expect("it runs");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_reflectors_together_ask_a_server_that_is_away_little_and_all_are_back_soon_after_it_is() {
    for refusal in [None, Some((503, "ServiceUnavailable"))] {
        let server = Server { refusal, ..Server::default() };
        let mut reflectors = Reflectors::start(&server, 50);
        reflectors.live().await;
        // Their watches have been of use by now.
        sleep(Duration::from_secs(60)).await;
        server.goes_away();
        sleep(Duration::from_secs(10 * 60)).await;
        let asked = server.requests.load(Ordering::Relaxed);
        // Each once, to find out; ten at will; and then one each five seconds.
        assert!((50 + 10..=50 + 10 + 120).contains(&asked), "{asked} requests in ten minutes");
        server.comes_back();
        let back = Instant::now();
        reflectors.live().await;
        assert!(back.elapsed() <= Duration::from_secs(7), "back after {:?}", back.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reflector_whose_server_is_there_does_not_wait_for_others_in_trouble() {
    // Such as one that lists what an extension serves, which is down.
    let known = SharedServer::new();
    let away = Server { refusal: Some((503, "ServiceUnavailable")), ..Server::default() };
    away.goes_away();
    let config = || ReflectorConfig::new().server(known.clone());
    let start = |server: &Server| {
        let reflector = Reflector::new(Arc::new(server.clone()), Arc::new(DeltaFifo::new()), config());
        let status = reflector.status();
        tokio::spawn(reflector.run(CancellationToken::new()));
        status
    };
    let _in_trouble: Vec<_> = (0..50).map(|_| start(&away)).collect();
    sleep(Duration::from_secs(300)).await;
    let mut status = start(&Server::default());
    let started = Instant::now();
    while !status.health().is_live() {
        status.health_changed().await.expect("it runs");
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    let asked = away.requests.load(Ordering::Relaxed);
    sleep(Duration::from_secs(60)).await;
    assert!(away.requests.load(Ordering::Relaxed) - asked <= 13, "nor does its success hurry them");
}

#[tokio::test(start_paused = true)]
async fn i12_a_stop_ends_every_wait_for_a_server_that_is_away_at_once() {
    // At first all wait for as long as each wants to itself; in the end, all but a few for their turn.
    for seconds in [0, 1, 60, 600] {
        let server = Server::default();
        server.goes_away();
        let reflectors = Reflectors::start(&server, 50);
        sleep(Duration::from_secs(seconds)).await;
        let stopped = Instant::now();
        reflectors.stop().await;
        assert_eq!(stopped.elapsed(), Duration::ZERO, "after {seconds} s");
        let asked = server.requests.load(Ordering::Relaxed);
        sleep(Duration::from_secs(600)).await;
        assert_eq!(server.requests.load(Ordering::Relaxed), asked, "nobody asks any more");
    }
}

#[tokio::test(start_paused = true)]
async fn i12_a_stop_ends_the_waits_that_follow_the_return_of_the_server_at_once() {
    let server = Server::default();
    server.goes_away();
    let reflectors = Reflectors::start(&server, 50);
    sleep(Duration::from_secs(60)).await;
    server.comes_back();
    let live = || reflectors.statuses.iter().filter(|status| status.health().is_live()).count();
    while live() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(live() < 50, "the others go on within a second, and not all at once");
    let stopped = Instant::now();
    reflectors.stop().await;
    assert_eq!(stopped.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn i12_a_stop_ends_a_wait_that_a_server_that_is_away_has_asked_for_at_once() {
    let away = ListWatchError::Status {
        status: status(503, "ServiceUnavailable"),
        retry_after: Some(Duration::from_secs(100)),
    };
    let mut run = Run::new(vec![Line::ListFails(away)]);
    run.health(|health| matches!(health, Health::BackingOff { .. })).await;
    let stopped = Instant::now();
    run.shutdown.cancel();
    run.task.await.expect("no panic");
    assert_eq!(stopped.elapsed(), Duration::ZERO);
}
