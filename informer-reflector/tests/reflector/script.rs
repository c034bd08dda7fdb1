//! A scripted server, which records each request and answers it with the next line of its script,
//! and a store that records its calls. Time is paused, so waits take no real time and their order
//! is deterministic.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::channel::mpsc;
use futures::{StreamExt, stream};
use informer_core::{
    Bookmark, Delta, ListEnd, ListOptions, ListPart, ListStream, ListWatchError, ListerWatcher, ObjectKey,
    OwnedObject, ReflectorStore, RejectedObject, Replacement, ResourceVersion, ResourceVersionMatch,
    WatchEvent, WatchOptions, WatchStream,
};
use informer_reflector::{Health, Reflector, ReflectorConfig, ReflectorStatus, RelistHandle};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Status;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub(super) type Item = Result<ConfigMap, RejectedObject>;
pub(super) type Events = Result<Vec<WatchEvent<ConfigMap>>, ListWatchError>;

/// The answer of the server to a request.
pub(super) enum Line {
    /// The items, the resource version and the continue token of a page.
    Page(Vec<Item>, &'static str, Option<&'static str>),
    /// Some items of a list; the rest never arrives.
    HalfPage(Vec<Item>),
    ListFails(ListWatchError),
    Watch(mpsc::UnboundedReceiver<Events>),
    WatchFails(ListWatchError),
    /// A streaming list, which continues as a watch.
    Stream(mpsc::UnboundedReceiver<Events>),
    StreamFails(ListWatchError),
    /// The server neither answers nor closes the connection.
    Silence,
    /// The server answers with the line once the test sends `()`.
    Held(oneshot::Receiver<()>, Box<Line>),
}

/// A server that follows a script, then leaves requests unanswered.
pub(super) struct Script {
    lines: Mutex<VecDeque<Line>>,
    /// The requests: `list 7 500 from t1` (with version, limit and continue token), `watch 7` or
    /// `stream 7`.
    requests: UnboundedSender<String>,
    /// The timeouts of the requested watches.
    lifetimes: Arc<Mutex<Vec<Duration>>>,
    can_stream: bool,
}

impl Script {
    /// Returns the server and a receiver of its requests.
    pub(super) fn new(lines: Vec<Line>) -> (Self, UnboundedReceiver<String>) {
        let (requests, receiver) = unbounded_channel();
        let lines = Mutex::new(lines.into());
        (Self { lines, requests, lifetimes: Arc::default(), can_stream: false }, receiver)
    }

    pub(super) fn streaming(self) -> Self {
        Self { can_stream: true, ..self }
    }

    async fn next(&self, request: String) -> Option<Line> {
        _ = self.requests.send(request);
        let line = self.lines.lock().pop_front();
        match line {
            Some(Line::Held(release, line)) => {
                release.await.expect("the test holds the sender");
                Some(*line)
            }
            line => line,
        }
    }
}

fn part(items: Vec<Result<ConfigMap, RejectedObject>>) -> ListPart<ConfigMap> {
    ListPart::Items(items.into_iter().map(|item| item.map(OwnedObject::new)).collect())
}

#[async_trait]
impl ListerWatcher<ConfigMap> for Script {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        let version = options.resource_version.map_or("newest".into(), |version| version.to_string());
        let is_seen = version != "newest" && version != "0";
        let not_older = is_seen.then_some(ResourceVersionMatch::NotOlderThan);
        assert_eq!(options.resource_version_match, not_older, "at {version}");
        let limit = options.limit.map_or("all".into(), |limit| limit.to_string());
        let page = options.continue_token.map_or(String::new(), |token| format!(" from {token}"));
        match self.next(format!("list {version} {limit}{page}")).await {
            Some(Line::Page(items, version, continue_token)) => {
                let end = ListEnd {
                    resource_version: version.into(),
                    continue_token: continue_token.map(str::to_owned),
                    remaining_item_count: None,
                };
                Ok(stream::iter([Ok(part(items)), Ok(ListPart::End(end))]).boxed())
            }
            Some(Line::HalfPage(items)) => {
                Ok(stream::iter([Ok(part(items))]).chain(stream::pending()).boxed())
            }
            Some(Line::ListFails(error)) => Err(error),
            Some(Line::Silence) | None => std::future::pending().await,
            Some(_) => panic!("the next line of the script is not a list"),
        }
    }

    fn can_stream_lists(&self) -> bool {
        self.can_stream
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        assert!(options.allow_bookmarks);
        self.lifetimes.lock().push(options.timeout);
        if options.send_initial_events {
            let version = options.resource_version.to_string();
            let version = if version.is_empty() { "newest" } else { &version };
            return match self.next(format!("stream {version}")).await {
                Some(Line::Stream(events)) => Ok(events.boxed()),
                Some(Line::StreamFails(error)) => Err(error),
                Some(Line::Silence) | None => std::future::pending().await,
                Some(_) => panic!("the next line of the script is not a streaming list"),
            };
        }
        match self.next(format!("watch {}", options.resource_version)).await {
            Some(Line::Watch(events)) => Ok(events.boxed()),
            Some(Line::WatchFails(error)) => Err(error),
            Some(Line::Silence) | None => std::future::pending().await,
            Some(_) => panic!("the next line of the script is not a watch"),
        }
    }
}

/// A store that records its calls as strings.
///
/// `[a !b]@7` is a list with the object `a` and the quarantined object `b`, at version 7. `+a@8`,
/// `~a@8` and `-a@8` are an added, an updated and a deleted object; `?a@8` is a deletion without the
/// last state of the object.
struct Notes(UnboundedSender<String>);

impl ReflectorStore<ConfigMap> for Notes {
    fn apply(&self, changes: Vec<Delta<ConfigMap>>, resource_version: &ResourceVersion) {
        let shown: Vec<_> = changes
            .iter()
            .map(|delta| match delta {
                Delta::Added(object) => format!("+{}", object.key()),
                Delta::Updated(object) => format!("~{}", object.key()),
                Delta::Deleted(deleted) if deleted.is_exact() => format!("-{}", deleted.key()),
                Delta::Deleted(deleted) => format!("?{}", deleted.key()),
                Delta::Replaced(_) | Delta::Sync(_) | Delta::Released(_) => "unexpected".into(),
            })
            .collect();
        _ = self.0.send(format!("{}@{resource_version}", shown.join(" ")));
    }

    fn replace(&self, replacement: Replacement<ConfigMap>) {
        let keys: Vec<_> = replacement.objects.iter().map(|object| object.key().to_string()).collect();
        let quarantined: Vec<_> = replacement.quarantined.iter().map(|key| format!("!{key}")).collect();
        let more = if replacement.complete { "" } else { " and more" };
        let listed = [keys, quarantined].concat().join(" ");
        _ = self.0.send(format!("[{listed}{more}]@{}", replacement.resource_version));
    }
}

pub(super) struct Run {
    pub(super) requests: UnboundedReceiver<String>,
    pub(super) notes: UnboundedReceiver<String>,
    pub(super) status: ReflectorStatus,
    pub(super) relist: RelistHandle,
    pub(super) shutdown: CancellationToken,
    pub(super) task: tokio::task::JoinHandle<()>,
    pub(super) lifetimes: Arc<Mutex<Vec<Duration>>>,
}

impl Run {
    pub(super) fn new(lines: Vec<Line>) -> Self {
        Self::with(lines, ReflectorConfig::new())
    }

    pub(super) fn with(lines: Vec<Line>, config: ReflectorConfig) -> Self {
        Self::over(Script::new(lines), config)
    }

    /// Starts a reflector with a server that can stream lists.
    pub(super) fn streaming(lines: Vec<Line>) -> Self {
        Self::streaming_with(lines, ReflectorConfig::new())
    }

    pub(super) fn streaming_with(lines: Vec<Line>, config: ReflectorConfig) -> Self {
        let (script, requests) = Script::new(lines);
        Self::over((script.streaming(), requests), config)
    }

    fn over(script: (Script, UnboundedReceiver<String>), config: ReflectorConfig) -> Self {
        Self::over_with(script, config, |reflector| reflector)
    }

    /// Starts a reflector with a transform.
    pub(super) fn transforming(
        script: (Script, UnboundedReceiver<String>),
        transform: impl Fn(&mut ConfigMap) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self::over_with(script, ReflectorConfig::new(), |reflector| reflector.transform(transform))
    }

    fn over_with(
        (script, requests): (Script, UnboundedReceiver<String>),
        config: ReflectorConfig,
        change: impl FnOnce(Reflector<ConfigMap>) -> Reflector<ConfigMap>,
    ) -> Self {
        let (note_sender, notes) = unbounded_channel();
        let lifetimes = Arc::clone(&script.lifetimes);
        let reflector = change(Reflector::new(Arc::new(script), Arc::new(Notes(note_sender)), config));
        let (status, relist, shutdown) = (reflector.status(), reflector.relist(), CancellationToken::new());
        let task = tokio::spawn(reflector.run(shutdown.clone()));
        Self { requests, notes, status, relist, shutdown, task, lifetimes }
    }

    pub(super) async fn expect_requests(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.requests.recv().await.as_deref(), Some(*expected));
        }
    }

    /// Expects a request after a wait that is in the given range, in seconds.
    pub(super) async fn expect_after(&mut self, seconds: Range<f64>, request: &str) {
        let since = tokio::time::Instant::now();
        self.expect_requests(&[request]).await;
        let waited = since.elapsed().as_secs_f64();
        // Timers fire at whole milliseconds, and at most two timers run in sequence.
        let grain = 0.002;
        let is_in_time = (seconds.start..seconds.end + grain).contains(&waited);
        assert!(is_in_time, "{request} after {waited} s instead of {seconds:?}");
    }

    pub(super) async fn expect_notes(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.notes.recv().await.as_deref(), Some(*expected));
        }
    }

    /// Waits for `count` calls of the store.
    pub(super) async fn expect_notes_count(&mut self, count: usize) {
        for _ in 0..count {
            self.notes.recv().await.expect("the reflector runs");
        }
    }

    /// Waits until the health satisfies the predicate.
    pub(super) async fn health(&mut self, is_expected: impl Fn(&Health) -> bool) -> Health {
        let mut health = self.status.health();
        while !is_expected(&health) {
            health = self.status.health_changed().await.expect("the reflector runs");
        }
        health
    }
}

/// A reflector that has not started, and the calls that its store records.
pub(super) fn unspawned(lines: Vec<Line>) -> (impl Future<Output = ()>, UnboundedReceiver<String>) {
    let (note_sender, notes) = unbounded_channel();
    (reflect_into(lines, Arc::new(Notes(note_sender))), notes)
}

/// Returns the future of a reflector that fills the given store.
pub(super) fn reflect_into(
    lines: Vec<Line>,
    store: Arc<dyn ReflectorStore<ConfigMap>>,
) -> impl Future<Output = ()> {
    let script = Arc::new(Script::new(lines).0);
    Reflector::new(script, store, ReflectorConfig::new()).run(CancellationToken::new())
}

pub(super) fn named(name: &str, version: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.into());
    object.metadata.resource_version = Some(version.into());
    object
}

pub(super) fn item(name: &str, version: &str) -> Item {
    Ok(named(name, version))
}

pub(super) fn malformed(name: Option<&str>, version: &str) -> RejectedObject {
    let key = name.map(ObjectKey::cluster_scoped);
    RejectedObject { key, resource_version: version.into(), error: "data: expected a map".into() }
}

pub(super) fn page(items: Vec<Item>, version: &'static str) -> Line {
    Line::Page(items, version, None)
}

/// A line that the server holds back until the returned sender is used.
pub(super) fn held(line: Line) -> (oneshot::Sender<()>, Line) {
    let (sender, receiver) = oneshot::channel();
    (sender, Line::Held(receiver, Box::new(line)))
}

/// A streaming list that sends these batches, and stays open until the sender is dropped.
pub(super) fn stream_of(batches: Vec<Vec<WatchEvent<ConfigMap>>>) -> (mpsc::UnboundedSender<Events>, Line) {
    let (sender, receiver) = mpsc::unbounded();
    batches.into_iter().for_each(|batch| send(&sender, batch));
    (sender, Line::Stream(receiver))
}

/// The bookmark that ends the initial events of a streaming list.
pub(super) fn end(version: &str) -> WatchEvent<ConfigMap> {
    WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end: true })
}

pub(super) fn modified(name: &str, version: &str) -> WatchEvent<ConfigMap> {
    WatchEvent::Modified(named(name, version).into())
}

pub(super) fn deleted(name: &str, version: &str) -> WatchEvent<ConfigMap> {
    WatchEvent::Deleted(named(name, version).into())
}

pub(super) fn watch() -> (mpsc::UnboundedSender<Events>, Line) {
    let (sender, receiver) = mpsc::unbounded();
    (sender, Line::Watch(receiver))
}

/// A watch that returns one batch and is closed at once.
pub(super) fn brief_watch(batch: Vec<WatchEvent<ConfigMap>>) -> Line {
    let (events, line) = watch();
    if !batch.is_empty() {
        send(&events, batch);
    }
    line
}

/// A watch that fails as soon as it is open.
pub(super) fn broken_watch(error: ListWatchError) -> Line {
    let (events, line) = watch();
    events.unbounded_send(Err(error)).expect("the line holds the receiver");
    line
}

pub(super) fn send(watch: &mpsc::UnboundedSender<Events>, events: Vec<WatchEvent<ConfigMap>>) {
    watch.unbounded_send(Ok(events)).expect("the reflector watches");
}

pub(super) fn bookmark(version: &str) -> WatchEvent<ConfigMap> {
    WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end: false })
}

pub(super) fn added(name: &str, version: &str) -> WatchEvent<ConfigMap> {
    WatchEvent::Added(named(name, version).into())
}

/// The event that makes a watch fail.
pub(super) fn error(code: u16, reason: &str) -> WatchEvent<ConfigMap> {
    WatchEvent::Error(status(code, reason))
}

pub(super) fn status(code: u16, reason: &str) -> Box<Status> {
    Status::failure("test failure", reason).with_code(code).boxed()
}

pub(super) fn failure(code: u16, reason: &str) -> ListWatchError {
    status(code, reason).into()
}

/// The error of a server whose data is older than the requested version.
pub(super) fn too_large() -> ListWatchError {
    let [now, ..] = too_large_in_all_forms();
    now
}

/// The error of [`too_large`] as three generations of servers send it: with a reason in its cause, with
/// a message in its cause, and without a cause.
pub(super) fn too_large_in_all_forms() -> [ListWatchError; 3] {
    let status = |cause: serde_json::Value, message: &str| {
        let details = json!({ "retryAfterSeconds": 1, "causes": [cause] });
        let status = json!({ "code": 504, "reason": "Timeout", "message": message, "details": details });
        let status: Status = serde_json::from_value(status).expect("a status");
        status.boxed().into()
    };
    let message = "Timeout: Too large resource version: 7, current: 5";
    [
        status(json!({ "reason": "ResourceVersionTooLarge", "message": "" }), "in other words"),
        status(json!({ "reason": "", "message": "Too large resource version" }), "in other words"),
        Status::failure(message, "Timeout").with_code(504).boxed().into(),
    ]
}

/// A 429 with `Retry-After` in seconds.
pub(super) fn too_many_requests(seconds: u64) -> ListWatchError {
    ListWatchError::Status {
        status: status(429, "TooManyRequests"),
        retry_after: Some(Duration::from_secs(seconds)),
    }
}

/// A panic payload that panics when it is dropped.
pub(super) struct HostilePayload;

impl Drop for HostilePayload {
    fn drop(&mut self) {
        std::panic::panic_any(Self);
    }
}
