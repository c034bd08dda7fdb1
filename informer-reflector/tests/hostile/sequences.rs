//! Random sequences of responses: requests, log lines and memory stay bounded, and the reflector
//! recovers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use informer_core::{
    DeltaFifo, ListEnd, ListOptions, ListPart, ListStream, ListWatchError, ListerWatcher, WatchOptions,
    WatchStream,
};
use informer_reflector::{Health, Reflector, ReflectorConfig, ReflectorStatus};
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::log::Log;
use crate::meter::Meter;
use crate::script::*;
use crate::server::{MAX_LINES_IN_A_MINUTE, MAX_REQUESTS_IN_A_MINUTE, busiest_minute};

/// The response of the server to one watch request.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// An event with a new version, then this failure.
    EventThen(Failure),
    BookmarkThen(Failure),
    /// This failure without an event before it.
    Only(Failure),
    /// The watch request itself fails.
    Refused(Failure),
    /// An event whose version is older than the previous one, then this failure.
    OlderThen(Failure),
    /// No event for this number of seconds, then this failure.
    LivesFor(u8, Failure),
}

#[derive(Debug, Clone, Copy)]
enum Failure {
    Close,
    Expired,
    Internal,
    TooLarge,
    BadRequest,
    NotFound,
    Garbage,
    Reset,
}

impl Failure {
    fn error(self) -> Option<ListWatchError> {
        Some(match self {
            Self::Close => return None,
            Self::Expired => failure(410, "Expired"),
            Self::Internal => failure(500, "InternalError"),
            Self::TooLarge => too_large(),
            Self::BadRequest => failure(400, "BadRequest"),
            Self::NotFound => failure(404, "NotFound"),
            Self::Garbage => ListWatchError::Protocol("no JSON".into()),
            Self::Reset => connection_failure(),
        })
    }
}

/// A server that cycles through its answers until `is_good` is set.
#[derive(Clone)]
struct Hostile {
    answers: Arc<Vec<Answer>>,
    lists: Arc<Vec<Failure>>,
    can_stream: bool,
    version: Arc<AtomicU64>,
    requests: Arc<Mutex<Vec<Instant>>>,
    is_good: Arc<AtomicBool>,
}

impl Hostile {
    fn new(answers: Vec<Answer>, lists: Vec<Failure>, can_stream: bool) -> Self {
        Self {
            answers: Arc::new(answers),
            lists: Arc::new(lists),
            can_stream,
            version: Arc::new(AtomicU64::new(100)),
            requests: Arc::default(),
            is_good: Arc::default(),
        }
    }

    fn record_request(&self) -> usize {
        let mut requests = self.requests.lock();
        requests.push(Instant::now());
        requests.len()
    }

    fn next_version(&self) -> String {
        self.version.fetch_add(1, Ordering::Relaxed).to_string()
    }

    fn start(&self) -> (ReflectorStatus, DropGuard) {
        let queue = Arc::new(DeltaFifo::new());
        let drain = Arc::clone(&queue);
        let stop = CancellationToken::new();
        let reflector = Reflector::new(Arc::new(self.clone()), queue, ReflectorConfig::new());
        let status = reflector.status();
        tokio::spawn(reflector.run(stop.clone()));
        let stopped = stop.clone();
        tokio::spawn(async move {
            let drained = async { while drain.pop_batch().await.is_some() {} };
            tokio::select! { () = drained => {}, () = stopped.cancelled() => {} }
        });
        (status, stop.drop_guard())
    }
}

#[async_trait]
impl ListerWatcher<ConfigMap> for Hostile {
    fn description(&self) -> &str {
        "configmaps"
    }

    fn can_stream_lists(&self) -> bool {
        self.can_stream
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        let number = self.record_request();
        let is_good = self.is_good.load(Ordering::Relaxed);
        let failure = self.lists[number % self.lists.len()];
        if !is_good && let Some(error) = failure.error() {
            return Err(error);
        }
        // A hostile list never ends: each page is empty and has a new continue token.
        let continue_token = (!is_good && options.limit.is_some()).then(|| self.next_version());
        let end = ListEnd {
            resource_version: self.next_version().as_str().into(),
            continue_token,
            ..ListEnd::default()
        };
        Ok(stream::iter([Ok(ListPart::End(end))]).boxed())
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        let number = self.record_request();
        if self.is_good.load(Ordering::Relaxed) {
            let end = options.send_initial_events.then(|| Ok(vec![end(&self.next_version())]));
            return Ok(stream::iter(end).chain(stream::pending()).boxed());
        }
        let (events, wait, failure) = match self.answers[number % self.answers.len()] {
            Answer::Refused(failure) => return Err(failure.error().unwrap_or_else(connection_failure)),
            Answer::EventThen(failure) => (vec![added("a", &self.next_version())], 0, failure),
            Answer::OlderThen(failure) => (vec![modified("a", "3")], 0, failure),
            Answer::BookmarkThen(failure) => (vec![bookmark(&self.next_version())], 0, failure),
            Answer::Only(failure) => (vec![], 0, failure),
            Answer::LivesFor(seconds, failure) => (vec![], seconds, failure),
        };
        let listed = options.send_initial_events.then(|| end(&self.next_version()));
        let events: Vec<_> = events.into_iter().chain(listed).collect();
        let rest = stream::once(async move {
            sleep(Duration::from_secs(wait.into())).await;
            failure.error().map(Err)
        });
        Ok(stream::iter([Ok(events)]).chain(rest.filter_map(futures::future::ready)).boxed())
    }
}

/// The memory limit of a test, in bytes. The server sends only one small object.
const MAX_MEMORY: usize = 512 * 1024;

fn run(server: &Hostile) {
    let meter = Meter::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let log = Log::default();
        let _logging = log.start();
        let (mut status, _stop) = server.start();
        sleep(Duration::from_secs(180)).await;
        let busiest = busiest_minute(&server.requests.lock());
        assert!(busiest <= MAX_REQUESTS_IN_A_MINUTE, "{busiest} requests in a minute");
        let lines = std::mem::take(&mut *log.lines.lock());
        assert!(lines.len() <= 3 * MAX_LINES_IN_A_MINUTE, "{lines:#?}");
        assert!(meter.peak() <= MAX_MEMORY, "{} bytes", meter.peak());
        server.is_good.store(true, Ordering::Relaxed);
        let recovered = async {
            while !matches!(status.health(), Health::Live { .. }) {
                status.health_changed().await.expect("the reflector runs");
            }
        };
        // The longest backoff is twice 30 seconds. Before it, a hostile watch that is still open
        // can last for up to 14 seconds.
        tokio::time::timeout(Duration::from_secs(100), recovered).await.expect("the reflector recovers");
    });
}

fn connection_failure() -> ListWatchError {
    ListWatchError::Interrupted("reset".into())
}

fn failures() -> impl Strategy<Value = Failure> {
    prop::sample::select(vec![
        Failure::Close,
        Failure::Expired,
        Failure::Internal,
        Failure::TooLarge,
        Failure::BadRequest,
        Failure::NotFound,
        Failure::Garbage,
        Failure::Reset,
    ])
}

fn answers() -> impl Strategy<Value = Answer> {
    prop_oneof![
        failures().prop_map(Answer::EventThen),
        failures().prop_map(Answer::BookmarkThen),
        failures().prop_map(Answer::OlderThen),
        failures().prop_map(Answer::Only),
        failures().prop_map(Answer::Refused),
        (0_u8..15, failures()).prop_map(|(seconds, failure)| Answer::LivesFor(seconds, failure)),
    ]
}

proptest! {
    #[test]
    fn answers_in_any_order_lead_to_bounded_requests(
        watches in prop::collection::vec(answers(), 1..5),
        lists in prop::collection::vec(failures(), 1..4),
        can_stream in any::<bool>(),
    ) {
        run(&Hostile::new(watches, lists, can_stream));
    }
}

#[test]
fn watches_that_settle_and_expire_lead_to_bounded_log_lines() {
    let watches = vec![
        Answer::Refused(Failure::Expired),
        Answer::LivesFor(13, Failure::Expired),
        Answer::Only(Failure::BadRequest),
        Answer::OlderThen(Failure::Expired),
    ];
    run(&Hostile::new(watches, vec![Failure::NotFound], true));
}

#[test]
fn event_then_expired_leads_to_bounded_requests() {
    let lists = || vec![Failure::Close];
    for failure in [Failure::Expired, Failure::Garbage, Failure::Close, Failure::TooLarge] {
        run(&Hostile::new(vec![Answer::EventThen(failure)], lists(), true));
        run(&Hostile::new(vec![Answer::BookmarkThen(failure)], lists(), false));
        run(&Hostile::new(vec![Answer::EventThen(failure), Answer::OlderThen(failure)], lists(), true));
    }
}
