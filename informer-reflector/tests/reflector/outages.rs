//! An unavailable server: the requests of all reflectors of a client, and their recovery.

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
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::log::Log;
use super::script::{Line, Run, page, status, too_many_requests, watch};

/// A server that can become unavailable and available again, for all its reflectors at once.
#[derive(Clone, Default)]
struct Server {
    is_away: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
    hung_up: Arc<tokio::sync::Notify>,
    refusal: Option<(u16, &'static str)>,
    retry_after: Option<Duration>,
    /// The number of requests per second that the server admits while it is away. It refuses all
    /// other requests.
    admits: Option<usize>,
    admitted: Arc<Mutex<(u64, usize)>>,
}

impl Server {
    fn check(&self) -> Result<(), ListWatchError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        match self.refusal {
            _ if !self.is_away.load(Ordering::Relaxed) || self.admits_one_more() => Ok(()),
            Some((code, reason)) => {
                Err(ListWatchError::Status { status: status(code, reason), retry_after: self.retry_after })
            }
            None => Err(ListWatchError::Unreachable("connection refused".into())),
        }
    }

    fn admits_one_more(&self) -> bool {
        let Some(admits) = self.admits else { return false };
        let mut admitted = self.admitted.lock();
        let second = EPOCH.with(|epoch| epoch.get_or_init(Instant::now).elapsed().as_secs());
        if admitted.0 != second {
            *admitted = (second, 0);
        }
        admitted.1 += 1;
        admitted.1 <= admits
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

thread_local! {
    static EPOCH: std::cell::OnceCell<Instant> = const { std::cell::OnceCell::new() };
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

/// Running reflectors of one server, which share its state (`SharedServer`).
struct Reflectors {
    statuses: Vec<ReflectorStatus>,
    tasks: JoinSet<()>,
    stop: DropGuard,
}

impl Reflectors {
    fn start(server: &Server, count: usize) -> Self {
        Self::sharing(&SharedServer::new(), server, count)
    }

    fn sharing(known: &SharedServer, server: &Server, count: usize) -> Self {
        let shutdown = CancellationToken::new();
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

    /// Stops the reflectors and waits until all have ended.
    async fn stop(self) {
        drop(self.stop);
        self.tasks.join_all().await;
    }

    /// Waits until all reflectors are live.
    async fn live(&mut self) {
        for status in &mut self.statuses {
            while !status.health().is_live() {
                status.health_changed().await.expect("the reflector runs");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_reflectors_send_few_requests_in_an_outage() {
    let after = Some(Duration::from_secs(1));
    for (refusal, retry_after) in
        [(None, None), (Some((503, "ServiceUnavailable")), None), (Some((503, "ServiceUnavailable")), after)]
    {
        let server = Server { refusal, retry_after, ..Server::default() };
        let mut reflectors = Reflectors::start(&server, 50);
        reflectors.live().await;
        // After a minute, all watches have lasted long enough to reset the backoff.
        sleep(Duration::from_secs(60)).await;
        server.goes_away();
        sleep(Duration::from_secs(10 * 60)).await;
        let request_count = server.requests.load(Ordering::Relaxed);
        // One request per reflector, then shared turns at growing intervals: one turn every five
        // seconds after the first 25 seconds.
        assert!((50 + 100..=50 + 140).contains(&request_count), "{request_count} requests in ten minutes");
        server.comes_back();
        let back = Instant::now();
        reflectors.live().await;
        assert!(back.elapsed() <= Duration::from_secs(7), "back after {:?}", back.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn dead_resources_delay_no_healthy_reflector() {
    for (dead, healthy) in [(12, 5), (50, 5), (100, 1), (100, 20), (0, 1)] {
        let known = SharedServer::new();
        let unserved = Server { refusal: Some((503, "ServiceUnavailable")), ..Server::default() };
        unserved.goes_away();
        let _dead = Reflectors::sharing(&known, &unserved, dead);
        let server = Server::default();
        let mut reflectors = Reflectors::sharing(&known, &server, healthy);
        reflectors.live().await;
        sleep(Duration::from_secs(20 * 60)).await;
        server.goes_away();
        sleep(Duration::from_secs(5)).await;
        server.comes_back();
        let back = Instant::now();
        reflectors.live().await;
        assert!(back.elapsed() <= Duration::from_secs(3), "{dead} dead: back after {:?}", back.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn brownout_is_not_amplified_and_recovery_is_quick() {
    let refusal = Some((503, "ServiceUnavailable"));
    let server = Server { refusal, admits: Some(5), ..Server::default() };
    let mut reflectors = Reflectors::start(&server, 200);
    reflectors.live().await;
    sleep(Duration::from_secs(60)).await;
    server.goes_away();
    // In these seconds, each reflector notices that its watch has been interrupted. The requests
    // that this causes are not counted.
    sleep(Duration::from_secs(5)).await;
    let before = server.requests.load(Ordering::Relaxed);
    sleep(Duration::from_secs(20)).await;
    let request_count = server.requests.load(Ordering::Relaxed) - before;
    assert!(request_count <= 20 * 15, "{request_count} requests in 20 seconds");
    server.comes_back();
    let back = Instant::now();
    reflectors.live().await;
    assert!(back.elapsed() <= Duration::from_secs(6), "back after {:?}", back.elapsed());
}

#[tokio::test(start_paused = true)]
async fn outage_of_forty_informers_is_logged_in_two_lines() {
    let (server, log) = (Server::default(), Log::default());
    let _logging = log.start();
    let mut reflectors = Reflectors::start(&server, 40);
    reflectors.live().await;
    // The first outage occurs while the watches are young.
    for calm in [0, 60, 60] {
        sleep(Duration::from_secs(calm)).await;
        log.lines.lock().clear();
        server.goes_away();
        sleep(Duration::from_secs(30)).await;
        server.comes_back();
        reflectors.live().await;
        sleep(Duration::from_secs(15)).await;
        let lines = log.lines.lock();
        assert!(lines.len() <= 4, "{lines:#?}");
        assert!(lines[0].contains("API server unavailable"), "{lines:#?}");
        let back = lines.last().expect("a line");
        assert!(back.contains("API server is back") && back.contains("resumed=40 relisted=0"), "{back}");
    }
}

#[tokio::test(start_paused = true)]
async fn logged_outage_began_with_its_first_failure() {
    let (known, server, log) = (SharedServer::new(), Server::default(), Log::default());
    let _logging = log.start();
    server.goes_away();
    let mut first = Reflectors::sharing(&known, &server, 1);
    sleep(Duration::from_secs(60)).await;
    // The outage is logged again, because four times as many reflectors wait.
    let mut later = Reflectors::sharing(&known, &server, 3);
    sleep(Duration::from_secs(60)).await;
    server.comes_back();
    tokio::join!(first.live(), later.live());
    sleep(Duration::from_secs(15)).await;
    let lines = log.lines.lock();
    let logged: Vec<_> = lines.iter().filter(|line| line.contains("API server")).collect();
    assert_eq!(logged.len(), 3, "{lines:#?}");
    let field = logged[2].split(' ').find_map(|word| word.strip_prefix("outage="));
    let seconds: f64 = field.and_then(|text| text.strip_suffix('s')?.parse().ok()).expect("seconds");
    assert!(seconds >= 120.0, "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn flapping_server_is_logged_in_four_lines() {
    let (server, log) = (Server::default(), Log::default());
    let _logging = log.start();
    let mut reflectors = Reflectors::start(&server, 40);
    reflectors.live().await;
    for _ in 0..3 {
        server.goes_away();
        sleep(Duration::from_secs(20)).await;
        server.comes_back();
        sleep(Duration::from_millis(900)).await;
    }
    reflectors.live().await;
    sleep(Duration::from_secs(15)).await;
    let lines = log.lines.lock();
    assert!(lines.len() <= 4 && lines[0].contains("API server unavailable"), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn always_interrupted_watch_is_logged_once() {
    let (server, log) = (Server::default(), Log::default());
    let _logging = log.start();
    let mut reflectors = Reflectors::start(&server, 1);
    reflectors.live().await;
    for _ in 0..10 {
        server.hung_up.notify_waiters();
        reflectors.live().await;
        sleep(Duration::from_millis(900)).await;
    }
    let lines = log.lines.lock();
    assert!(lines.len() == 1 && lines[0].starts_with("list or watch failed"), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn dead_resource_is_logged_once_with_its_name() {
    let (known, log) = (SharedServer::new(), Log::default());
    let _logging = log.start();
    let unserved = Server { refusal: Some((503, "ServiceUnavailable")), ..Server::default() };
    unserved.goes_away();
    let _dead = Reflectors::sharing(&known, &unserved, 1);
    let mut healthy = Reflectors::sharing(&known, &Server::default(), 3);
    healthy.live().await;
    sleep(Duration::from_secs(30 * 60)).await;
    let lines = log.lines.lock();
    // The watches of the healthy reflectors are silent, because their server sends neither events
    // nor bookmarks.
    let lines: Vec<_> = lines.iter().filter(|line| !line.starts_with("watch is silent")).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("list or watch failed"), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn unsent_request_does_not_count_as_a_response() {
    let (known, server, log) = (SharedServer::new(), Server::default(), Log::default());
    let _logging = log.start();
    let mut reflectors = Reflectors::sharing(&known, &server, 3);
    reflectors.live().await;
    sleep(Duration::from_secs(15)).await;
    server.goes_away();
    // The requests of another reflector, for example with a very long selector, can't be built.
    let unsent = || Line::ListFails(ListWatchError::InvalidRequest("its URI is too long".into()));
    let config = ReflectorConfig::new().server(known.clone());
    let _run = Run::with((0..20).map(|_| unsent()).collect(), config);
    sleep(Duration::from_secs(30)).await;
    let lines = log.lines.lock();
    let failures = lines.iter().filter(|line| line.starts_with("list or watch failed"));
    assert_eq!(failures.count(), 1, "only the other reflector logs its own failure: {lines:#?}");
    assert!(lines.iter().any(|line| line.contains("API server unavailable")), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn outage_after_one_that_ended_with_a_refusal_is_logged() {
    let away = || ListWatchError::Unreachable("connection refused".into());
    let (open, watch_line) = watch();
    let lines = vec![
        Line::ListFails(away()),
        Line::ListFails(away()),
        Line::ListFails(too_many_requests(1)),
        page(vec![], "7"),
        watch_line,
        Line::WatchFails(away()),
        Line::WatchFails(away()),
    ];
    let (mut run, log) = (Run::new(lines), Log::default());
    let _logging = log.start();
    run.expect_requests(&["list 0 500", "list 0 500", "list 0 500", "list 0 500", "watch 7"]).await;
    // After this time, the watch has lasted long enough to reset the backoff.
    sleep(Duration::from_secs(15)).await;
    drop(open);
    run.expect_requests(&["watch 7", "watch 7", "watch 7"]).await;
    let lines = log.lines.lock();
    let outages: Vec<_> = lines.iter().filter(|line| line.contains("API server")).collect();
    assert!(outages.len() == 3 && outages[1].contains("API server is back"), "{lines:#?}");
    assert!(outages[2].contains("API server unavailable"), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn outage_after_a_stop_in_an_outage_is_logged() {
    let (known, server, log) = (SharedServer::new(), Server::default(), Log::default());
    let _logging = log.start();
    server.goes_away();
    for _ in 0..2 {
        let reflectors = Reflectors::sharing(&known, &server, 1);
        sleep(Duration::from_secs(30)).await;
        reflectors.stop().await;
    }
    let lines = log.lines.lock();
    let outages = lines.iter().filter(|line| line.contains("API server unavailable"));
    assert_eq!(outages.count(), 2, "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn outage_after_a_stop_in_a_request_or_recovery_is_logged() {
    let away = || ListWatchError::Unreachable("connection refused".into());
    let (known, log) = (SharedServer::new(), Log::default());
    let _logging = log.start();
    for is_recovering in [false, true, false] {
        let mut lines = vec![Line::ListFails(away()), Line::ListFails(away())];
        if is_recovering {
            lines.push(Line::HalfPage(vec![]));
        }
        let mut run = Run::with(lines, ReflectorConfig::new().server(known.clone()));
        run.expect_requests(&["list 0 500"; 3]).await;
        run.shutdown.cancel();
        run.task.await.expect("the reflector stops");
    }
    let lines = log.lines.lock();
    let outages = lines.iter().filter(|line| line.contains("API server unavailable"));
    assert_eq!(outages.count(), 3, "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn health_shows_the_wait_for_a_turn() {
    let server = Server::default();
    server.goes_away();
    let mut reflectors = Reflectors::start(&server, 50);
    sleep(Duration::from_secs(120)).await;
    let now = Instant::now();
    let turns = reflectors.statuses.iter().filter_map(|status| match status.health() {
        Health::AwaitingTurn { until, .. } => Some(until - now),
        _ => None,
    });
    let latest = turns.clone().max().expect("most of them wait for a turn");
    assert!(turns.count() > 25 && latest > Duration::from_secs(100), "{latest:?}");
    for _ in 0..120 {
        sleep(Duration::from_millis(500)).await;
        let is_over = |health: &Health| matches!(health, Health::BackingOff { until, .. } if until.elapsed() > Duration::from_millis(10));
        let healths = reflectors.statuses.iter().map(ReflectorStatus::health);
        assert_eq!(healths.filter(is_over).count(), 0, "no reflector shows a backoff that is over");
    }
    server.comes_back();
    reflectors.live().await;
}

#[tokio::test(start_paused = true)]
async fn healthy_reflector_does_not_wait_for_failing_ones() {
    // For example, an extension API server is down, so only the reflectors of its resources fail.
    let known = SharedServer::new();
    let away = Server { refusal: Some((503, "ServiceUnavailable")), ..Server::default() };
    away.goes_away();
    let _in_trouble = Reflectors::sharing(&known, &away, 50);
    sleep(Duration::from_secs(300)).await;
    let mut healthy = Reflectors::sharing(&known, &Server::default(), 1);
    let started = Instant::now();
    healthy.live().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    let request_count = away.requests.load(Ordering::Relaxed);
    sleep(Duration::from_secs(60)).await;
    assert!(
        away.requests.load(Ordering::Relaxed) - request_count <= 13,
        "a healthy reflector does not make the failing ones retry sooner"
    );
}

#[tokio::test(start_paused = true)]
async fn i12_stop_ends_every_wait_for_an_unavailable_server() {
    // At first every reflector waits for its own backoff; later, nearly all wait for a turn.
    for seconds in [0, 1, 60, 600] {
        let server = Server::default();
        server.goes_away();
        let reflectors = Reflectors::start(&server, 50);
        sleep(Duration::from_secs(seconds)).await;
        let stopped = Instant::now();
        reflectors.stop().await;
        assert_eq!(stopped.elapsed(), Duration::ZERO, "after {seconds} s");
        let request_count = server.requests.load(Ordering::Relaxed);
        sleep(Duration::from_secs(600)).await;
        assert_eq!(server.requests.load(Ordering::Relaxed), request_count, "no more requests");
    }
}

#[tokio::test(start_paused = true)]
async fn i12_stop_ends_waits_after_an_outage() {
    let server = Server::default();
    server.goes_away();
    let reflectors = Reflectors::start(&server, 50);
    sleep(Duration::from_secs(60)).await;
    server.comes_back();
    let live = || reflectors.statuses.iter().filter(|status| status.health().is_live()).count();
    while live() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(live() < 50, "the others resume within a second, but not all at once");
    let stopped = Instant::now();
    reflectors.stop().await;
    assert_eq!(stopped.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn i12_stop_ends_a_wait_for_retry_after() {
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
