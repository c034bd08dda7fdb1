//! The hostile server, and the checks that every case must pass.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use informer_core::{Delta, ReflectorStore, Replacement, ResourceVersion};
use informer_reflector::{Health, KubeListWatch, Reflector, ReflectorConfig, ReflectorStatus};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use crate::log::Log;
use crate::meter::Meter;

/// The maximum size of an object in these tests, in bytes.
pub(crate) const MAX_OBJECT: usize = 1024 * 1024;

/// The memory limit for any answer, in bytes: an object, its text in the decoder, and the bytes
/// read ahead.
const MAX_MEMORY: usize = 8 * MAX_OBJECT;

/// The limit of requests in any minute. The reflector can send ten requests immediately, one more
/// for each second, five with a backoff of up to 8 seconds, and then two a minute: 77 in total.
pub(crate) const MAX_REQUESTS_IN_A_MINUTE: usize = 80;

/// The limit of log lines in a minute, on average. Expired versions, for example, log at most three
/// lines a minute.
pub(crate) const MAX_LINES_IN_A_MINUTE: usize = 20;

/// The time for which the server sends hostile answers.
const HOSTILE: Duration = Duration::from_secs(180);

/// The time in which the reflector must recover. The longest backoff is twice 30 seconds, and a silent
/// watch lasts up to 125 seconds.
const RECOVERY: Duration = Duration::from_secs(200);

/// The newest resource version of the server once it sends good answers.
const NEWEST: u64 = 200;

/// The requests that get the hostile answer. All others get good answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    List,
    Watch,
    /// Streaming lists. The reflector requests streaming lists only in cases with this value.
    StreamingList,
}

/// The bytes that the server sends over a connection, and its behavior after them.
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: Then,
}

/// The server's behavior after it has sent the bytes of a [`Reply`].
pub(crate) enum Then {
    Close,
    /// Sends nothing more and keeps the connection open.
    Silence,
    /// Sends a bookmark of this version every half minute, until the server becomes good.
    Bookmarks(String),
    /// Sends these bytes fifty times a second, until the server becomes good.
    Repeat(Vec<u8>),
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) at: At,
    pub(crate) answer: Answer,
    /// Part of a health description that must occur while the server is hostile.
    pub(crate) health: &'static str,
    /// Part of a line that must be logged, or empty if nothing may be logged.
    pub(crate) log: &'static str,
}

pub(crate) enum Answer {
    /// A function that returns the HTTP/1.1 answer to the hostile request with the given number.
    Bytes(Box<dyn Fn(usize) -> Reply + Send + Sync>),
    /// A function that serves an HTTP/2 connection.
    Http2(Http2),
}

pub(crate) type Http2 = fn(DuplexStream) -> futures::future::BoxFuture<'static, ()>;

/// A case whose answer is always the same; the server closes the connection after it.
pub(crate) fn case(
    name: &'static str,
    at: At,
    bytes: impl Into<Vec<u8>>,
    health: &'static str,
    log: &'static str,
) -> Case {
    let bytes = bytes.into();
    numbered(name, at, move |_| Reply { bytes: bytes.clone(), then: Then::Close }, health, log)
}

/// A case whose answer depends on the number of the hostile request.
pub(crate) fn numbered(
    name: &'static str,
    at: At,
    answer: impl Fn(usize) -> Reply + Send + Sync + 'static,
    health: &'static str,
    log: &'static str,
) -> Case {
    Case { name, at, answer: Answer::Bytes(Box::new(answer)), health, log }
}

/// An answer with this body and the matching `content-length`.
pub(crate) fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", "", body)
}

pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// The head of an answer whose body lasts until the connection is closed.
pub(crate) fn open(headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}\r\n")
        .into_bytes()
}

/// The body of a watch, one event per line, with its head.
pub(crate) fn lines(lines: &[impl AsRef<str>]) -> Vec<u8> {
    let lines: String = lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect();
    [open(""), lines.into_bytes()].concat()
}

pub(crate) fn object(name: &str, version: &str) -> serde_json::Value {
    json!({ "metadata": { "namespace": "shop", "name": name, "resourceVersion": version } })
}

pub(crate) fn list(version: &str, token: &str, items: &[serde_json::Value]) -> String {
    let metadata = json!({ "resourceVersion": version, "continue": token });
    json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items }).to_string()
}

pub(crate) fn event(kind: &str, object: &serde_json::Value) -> String {
    json!({ "type": kind, "object": object }).to_string()
}

pub(crate) fn bookmark(version: &str) -> String {
    let metadata = json!({ "resourceVersion": version });
    event("BOOKMARK", &json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata }))
}

pub(crate) fn status(code: u16, reason: &str) -> String {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": "test failure" })
    .to_string()
}

#[derive(Clone)]
struct Server {
    case: Arc<Case>,
    hostile_answers: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Instant>>>,
    is_good: Arc<AtomicBool>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        Client::new(tower::service_fn(move |request| server.clone().connect(request)), "default")
    }

    /// Opens an in-memory connection for one request.
    async fn connect(self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let (ours, theirs) = duplex(64 * 1024);
        let io = TokioIo::new(ours);
        if let (Answer::Http2(serve), true) = (&self.case.answer, self.is_hostile_request(request.uri())) {
            self.requests.lock().push(Instant::now());
            tokio::spawn(serve(theirs));
            let executor = TokioExecutor::new();
            let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await?;
            tokio::spawn(connection);
            let uri = format!("http://server{}", request.uri());
            let (mut head, body) = request.into_parts();
            head.uri = uri.parse()?;
            return Ok(sender.send_request(Request::from_parts(head, body)).await?);
        }
        tokio::spawn(self.serve(theirs));
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
        tokio::spawn(connection);
        Ok(sender.send_request(request).await?)
    }

    fn is_hostile_request(&self, uri: &http::Uri) -> bool {
        let query = uri.query().unwrap_or_default();
        let at = match query.contains("watch=") {
            true if query.contains("sendInitialEvents=") => At::StreamingList,
            true => At::Watch,
            false => At::List,
        };
        !self.is_good.load(Ordering::Relaxed) && at == self.case.at
    }

    async fn serve(self, mut connection: DuplexStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match connection.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        self.requests.lock().push(Instant::now());
        let head = String::from_utf8(head).expect("a request is ASCII");
        let uri: http::Uri = head.split(' ').nth(1).expect("a URI").parse().expect("a URI");
        let reply = match &self.case.answer {
            Answer::Bytes(answer) if self.is_hostile_request(&uri) => {
                answer(self.hostile_answers.fetch_add(1, Ordering::Relaxed))
            }
            _ => self.good_reply(&uri),
        };
        if connection.write_all(&reply.bytes).await.is_err() {
            return;
        }
        match reply.then {
            Then::Close => {}
            // The client closes the connection.
            Then::Silence => _ = connection.read_u8().await,
            Then::Bookmarks(version) => {
                let was_good = self.is_good.load(Ordering::Relaxed);
                let line = format!("{}\n", bookmark(&version)).into_bytes();
                while connection.write_all(&line).await.is_ok() {
                    sleep(Duration::from_secs(30)).await;
                    if self.is_good.load(Ordering::Relaxed) != was_good {
                        return;
                    }
                }
            }
            Then::Repeat(piece) => {
                while !self.is_good.load(Ordering::Relaxed) && connection.write_all(&piece).await.is_ok() {
                    sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    /// Returns a valid answer. The server has one more object once it is good.
    fn good_reply(&self, uri: &http::Uri) -> Reply {
        let is_good = self.is_good.load(Ordering::Relaxed);
        let newest = if is_good { NEWEST } else { 100 };
        let query: BTreeMap<_, _> =
            uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')).collect();
        let version = query.get("resourceVersion").copied().filter(|version| !version.is_empty());
        let close = |bytes| Reply { bytes, then: Then::Close };
        let requested = match version.map(str::parse::<u64>) {
            Some(Err(_)) => return close(answer("400 Bad Request", "", status(400, "BadRequest"))),
            Some(Ok(requested)) if requested > newest => {
                let refusal = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 504, "reason": "Timeout",
                    "message": format!("Timeout: Too large resource version: {requested}, current: {newest}"),
                    "details": { "causes": [{ "reason": "ResourceVersionTooLarge", "message": "" }] },
                });
                return close(answer("504 Gateway Timeout", "", refusal.to_string()));
            }
            Some(Ok(requested)) => requested,
            None => 0,
        };
        let mut objects = vec![object("a", "50")];
        objects.extend(is_good.then(|| object("b", "150")));
        if !query.contains_key("watch") {
            return close(ok(list(&newest.to_string(), "", &objects)));
        }
        let mut events = Vec::new();
        if query.contains_key("sendInitialEvents") {
            events.extend(objects.iter().map(|object| event("ADDED", object)));
            let annotations = json!({ "k8s.io/initial-events-end": "true" });
            let metadata = json!({ "resourceVersion": newest.to_string(), "annotations": annotations });
            events.push(event("BOOKMARK", &json!({ "kind": "ConfigMap", "metadata": metadata })));
        } else {
            let changed = [("a", 50), ("b", 150)]
                .into_iter()
                .filter(|(_, version)| requested < *version && *version < newest);
            events.extend(changed.map(|(name, version)| event("ADDED", &object(name, &version.to_string()))));
        }
        Reply { bytes: lines(&events), then: Then::Bookmarks(newest.to_string()) }
    }
}

/// Returns the largest number of requests within any minute.
pub(crate) fn busiest_minute(requests: &[Instant]) -> usize {
    let within = |start: &Instant| {
        requests.iter().filter(|at| *at >= start && **at < *start + Duration::from_secs(60)).count()
    };
    requests.iter().map(within).max().unwrap_or(0)
}

/// A store of object names.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<String>>>);

impl ReflectorStore<ConfigMap> for Names {
    fn apply(&self, changes: Vec<Delta<ConfigMap>>, _: &ResourceVersion) {
        let mut names = self.0.lock();
        for change in changes {
            names.retain(|name| name != change.key().name());
            if !matches!(change, Delta::Deleted(_)) {
                names.push(change.key().name().to_owned());
            }
        }
        names.sort();
    }

    fn replace(&self, replacement: Replacement<ConfigMap>) {
        let mut names: Vec<_> =
            replacement.objects.iter().map(|object| object.key().name().to_owned()).collect();
        names.sort();
        names.dedup();
        *self.0.lock() = names;
    }
}

/// Runs a reflector against each case. The message of a failed check names the case.
pub(crate) fn survive(meter: &Meter, cases: Vec<Case>) {
    for case in cases {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(survives(meter, case));
    }
}

async fn survives(meter: &Meter, case: Case) {
    let (name, at, health, expected_line) = (case.name, case.at, case.health, case.log);
    let log = Log::default();
    let _logging = log.start();
    meter.reset();
    let server = Server {
        case: Arc::new(case),
        hostile_answers: Arc::default(),
        requests: Arc::default(),
        is_good: Arc::default(),
    };
    let list_watch = KubeListWatch::<ConfigMap>::all(server.client()).max_object_size(MAX_OBJECT);
    let config = ReflectorConfig::new().streaming_lists(at == At::StreamingList);
    let names = Names::default();
    let reflector = Reflector::new(Arc::new(list_watch), Arc::new(names.clone()), config);
    let (mut status, stop) = (reflector.status(), CancellationToken::new());
    let healths = Arc::new(Mutex::new(Vec::new()));
    tokio::spawn(collect(reflector.status(), Arc::clone(&healths)));
    let task = tokio::spawn(reflector.run(stop.clone()));
    sleep(HOSTILE).await;

    let busiest = busiest_minute(&server.requests.lock());
    assert!(busiest <= MAX_REQUESTS_IN_A_MINUTE, "{name}: {busiest} requests in a minute");
    let seen = std::mem::take(&mut *healths.lock());
    assert!(seen.iter().any(|seen| seen.contains(health)), "{name}: no {health:?} in {seen:#?}");
    let logged = std::mem::take(&mut *log.lines.lock());
    assert!(logged.len() <= 3 * MAX_LINES_IN_A_MINUTE, "{name}: {logged:#?}");
    let is_logged = match expected_line {
        "" => logged.is_empty(),
        line => logged.iter().any(|logged| logged.contains(line)),
    };
    assert!(is_logged, "{name}: no {expected_line:?} in {logged:#?}");
    assert!(!logged.concat().contains("SECRET"), "{name}: {logged:#?}");
    let peak = meter.peak();
    assert!(peak <= MAX_MEMORY, "{name}: {peak} bytes");

    server.is_good.store(true, Ordering::Relaxed);
    let recovered = async {
        while !matches!(status.health(), Health::Live { .. }) || *names.0.lock() != ["a", "b"] {
            sleep(Duration::from_secs(1)).await;
        }
    };
    let outcome = timeout(RECOVERY, recovered).await;
    assert!(outcome.is_ok(), "{name}: {} with {:?}", status.health(), names.0.lock());
    stop.cancel();
    task.await.expect("no panic");
    _ = status.health_changed().await;
}

async fn collect(mut status: ReflectorStatus, healths: Arc<Mutex<Vec<String>>>) {
    let mut health = Some(status.health());
    while let Some(now) = health {
        healths.lock().push(now.to_string());
        health = status.health_changed().await;
    }
}
