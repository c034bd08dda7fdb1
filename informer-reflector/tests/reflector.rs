//! What the reflector asks for, and what it makes of each answer. The server is a script: each request is met by the
//! next line of it, and noted down. Time is paused, so waits cost nothing and their order is certain.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::channel::mpsc;
use futures::{StreamExt, stream};
use informer_core::{
    Bookmark, Delta, ListEnd, ListOptions, ListPart, ListStream, ListWatchError, ListerWatcher, Malformed,
    MalformedKind, ObjectKey, ReflectorStore, Replacement, ResourceVersion, WatchEvent, WatchOptions,
    WatchStream,
};
use informer_reflector::{Health, Reflector, ReflectorConfig, ReflectorStatus};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Status;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

type Item = Result<ConfigMap, Malformed>;
type Events = Result<Vec<WatchEvent<ConfigMap>>, ListWatchError>;

/// How the server meets a request.
enum Line {
    Page(Vec<Item>, &'static str, Option<&'static str>),
    ListFails(ListWatchError),
    Watch(mpsc::UnboundedReceiver<Events>),
    WatchFails(ListWatchError),
}

/// A server that follows a script, then leaves requests unanswered.
struct Script {
    lines: Mutex<VecDeque<Line>>,
    requests: UnboundedSender<String>,
}

impl Script {
    fn next(&self, request: String) -> Option<Line> {
        _ = self.requests.send(request);
        self.lines.lock().pop_front()
    }
}

#[async_trait]
impl ListerWatcher<ConfigMap> for Script {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        let version = options.resource_version.map_or("newest".into(), |version| version.to_string());
        let limit = options.limit.map_or("all".into(), |limit| limit.to_string());
        let page = options.continue_token.map_or(String::new(), |token| format!(" from {token}"));
        match self.next(format!("list {version} {limit}{page}")) {
            Some(Line::Page(items, version, continue_token)) => {
                let end = ListEnd {
                    resource_version: version.into(),
                    continue_token: continue_token.map(str::to_owned),
                    remaining_item_count: None,
                };
                Ok(stream::iter([Ok(ListPart::Items(items)), Ok(ListPart::End(end))]).boxed())
            }
            Some(Line::ListFails(error)) => Err(error),
            Some(_) => panic!("the script expects a watch"),
            None => std::future::pending().await,
        }
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        assert!(options.allow_bookmarks && !options.send_initial_events);
        assert!((300..=600).contains(&options.timeout.as_secs()), "{:?}", options.timeout);
        match self.next(format!("watch {}", options.resource_version)) {
            Some(Line::Watch(events)) => Ok(events.boxed()),
            Some(Line::WatchFails(error)) => Err(error),
            Some(_) => panic!("the script expects a list"),
            None => std::future::pending().await,
        }
    }
}

/// A store that notes down what it is given.
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
                Delta::Replaced(_) | Delta::Sync(_) => "unexpected".into(),
            })
            .collect();
        _ = self.0.send(format!("{}@{resource_version}", shown.join(" ")));
    }

    fn replace(&self, replacement: Replacement<ConfigMap>) {
        let keys: Vec<_> = replacement.objects.iter().map(|object| object.key().to_string()).collect();
        let aside: Vec<_> = replacement.set_aside.iter().map(|key| format!("!{key}")).collect();
        _ = self.0.send(format!("[{}]@{}", [keys, aside].concat().join(" "), replacement.resource_version));
    }
}

struct Run {
    requests: UnboundedReceiver<String>,
    notes: UnboundedReceiver<String>,
    status: ReflectorStatus,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Run {
    fn new(lines: Vec<Line>) -> Self {
        Self::with(lines, ReflectorConfig::new())
    }

    fn with(lines: Vec<Line>, config: ReflectorConfig<ConfigMap>) -> Self {
        let (request_sender, requests) = unbounded_channel();
        let (note_sender, notes) = unbounded_channel();
        let script = Script { lines: Mutex::new(lines.into()), requests: request_sender };
        let reflector = Reflector::new(Arc::new(script), Arc::new(Notes(note_sender)), config);
        let (status, shutdown) = (reflector.status(), CancellationToken::new());
        let task = tokio::spawn(reflector.run(shutdown.clone()));
        Self { requests, notes, status, shutdown, task }
    }

    async fn expect_requests(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.requests.recv().await.as_deref(), Some(*expected));
        }
    }

    async fn expect_notes(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.notes.recv().await.as_deref(), Some(*expected));
        }
    }

    /// Waits for a health of which `is_it` holds.
    async fn health(&mut self, is_it: impl Fn(&Health) -> bool) -> Health {
        let mut health = self.status.health();
        while !is_it(&health) {
            health = self.status.health_changed().await;
        }
        health
    }
}

fn named(name: &str, version: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.into());
    object.metadata.resource_version = Some(version.into());
    object
}

fn item(name: &str, version: &str) -> Item {
    Ok(named(name, version))
}

fn malformed(name: Option<&str>, version: &str) -> Malformed {
    let key = name.map(ObjectKey::cluster_scoped);
    Malformed { key, resource_version: version.into(), error: "data: expected a map".into() }
}

fn page(items: Vec<Item>, version: &'static str) -> Line {
    Line::Page(items, version, None)
}

fn watch() -> (mpsc::UnboundedSender<Events>, Line) {
    let (sender, receiver) = mpsc::unbounded();
    (sender, Line::Watch(receiver))
}

fn send(watch: &mpsc::UnboundedSender<Events>, events: Vec<WatchEvent<ConfigMap>>) {
    watch.unbounded_send(Ok(events)).expect("the reflector watches");
}

fn bookmark(version: &str) -> WatchEvent<ConfigMap> {
    WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end: false })
}

fn status(code: u16, reason: &str) -> Box<Status> {
    Status::failure("told to", reason).with_code(code).boxed()
}

fn failure(code: u16, reason: &str) -> ListWatchError {
    status(code, reason).into()
}

/// A 429 that asks to wait for so many seconds.
fn patience(seconds: u64) -> ListWatchError {
    ListWatchError::Status {
        status: status(429, "TooManyRequests"),
        retry_after: Some(Duration::from_secs(seconds)),
    }
}

#[tokio::test(start_paused = true)]
async fn it_lists_what_is_at_hand_and_watches_from_there() {
    let (events, line) = watch();
    let mut run = Run::new(vec![page(vec![item("a", "3"), item("b", "4")], "7"), line]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    run.expect_notes(&["[a b]@7"]).await;
    send(&events, vec![WatchEvent::Added(named("c", "8")), WatchEvent::Modified(named("a", "9"))]);
    send(&events, vec![WatchEvent::Deleted(named("b", "10"))]);
    send(&events, vec![bookmark("20")]);
    run.expect_notes(&["+c ~a@9", "-b@10", "@20"]).await;
    assert_eq!(run.status.last_sync_resource_version(), "20".into());
    assert!(run.status.health().is_live());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_closes_is_resumed_where_it_ended() {
    let (first, first_line) = watch();
    let (_second, second_line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), first_line, second_line]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    send(&first, vec![WatchEvent::Added(named("a", "8")), bookmark("30")]);
    drop(first);
    run.expect_requests(&["watch 30"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_off_is_resumed_where_it_ended() {
    let (first, first_line) = watch();
    let (_second, second_line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), first_line, second_line]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    send(&first, vec![WatchEvent::Added(named("a", "8"))]);
    first.unbounded_send(Err(ListWatchError::Interrupted("reset".into()))).expect("the reflector watches");
    run.expect_requests(&["watch 8"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_without_a_version_changes_nothing() {
    let (first, first_line) = watch();
    let (_second, second_line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), first_line, second_line]);
    send(&first, vec![bookmark("")]);
    drop(first);
    run.expect_requests(&["list 0 500", "watch 7", "watch 7"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_is_followed_by_a_list_of_nothing_older_than_what_was_seen() {
    for expired in [WatchEvent::Error(status(410, "Expired")), WatchEvent::Error(status(410, "Gone"))] {
        let (events, line) = watch();
        let mut run = Run::new(vec![page(vec![], "7"), line, page(vec![item("a", "9")], "12"), watch().1]);
        run.expect_requests(&["list 0 500", "watch 7"]).await;
        send(&events, vec![WatchEvent::Added(named("a", "8")), expired]);
        run.expect_requests(&["list 8 all", "watch 12"]).await;
        run.expect_notes(&["[]@7", "+a@8", "[a]@12"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_refused_as_expired_is_followed_by_a_list() {
    let lines =
        vec![page(vec![], "7"), Line::WatchFails(failure(410, "Expired")), page(vec![], "9"), watch().1];
    Run::new(lines).expect_requests(&["list 0 500", "watch 7", "list 7 all", "watch 9"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_to_be_had_is_at_once_replaced_by_the_newest() {
    let mut too_large =
        Status::failure("Timeout: Too large resource version: 7, current: 5", "Timeout").with_code(504);
    for error in [failure(410, "Expired"), too_large.clone().boxed().into()] {
        let lines = vec![
            page(vec![], "7"),
            Line::WatchFails(failure(410, "Expired")),
            Line::ListFails(error),
            page(vec![], "9"),
            watch().1,
        ];
        let started = tokio::time::Instant::now();
        let mut run = Run::new(lines);
        run.expect_requests(&["list 0 500", "watch 7", "list 7 all", "list newest 500", "watch 9"]).await;
        assert_eq!(started.elapsed(), Duration::ZERO, "no time is lost with waiting");
    }
    too_large.message.clear();
    assert!(!ListWatchError::from(too_large.boxed()).is_too_large_resource_version());
}

#[tokio::test(start_paused = true)]
async fn pages_are_followed_to_the_last_and_only_the_first_names_a_version() {
    let lines = vec![
        Line::Page(vec![item("a", "1")], "7", Some("t1")),
        Line::Page(vec![item("b", "2")], "7", Some("t2")),
        Line::Page(vec![item("c", "3")], "7", None),
        watch().1,
    ];
    let mut run = Run::with(lines, ReflectorConfig::new().page_size(1));
    run.expect_requests(&["list 0 1", "list newest 1 from t1", "list newest 1 from t2", "watch 7"]).await;
    run.expect_notes(&["[a b c]@7"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_that_expires_leads_to_one_list_in_one_piece() {
    let lines = vec![
        Line::Page(vec![item("a", "1")], "7", Some("t1")),
        Line::ListFails(failure(410, "Expired")),
        page(vec![item("a", "1"), item("b", "8")], "9"),
        watch().1,
    ];
    let mut run = Run::new(lines);
    run.expect_requests(&["list 0 500", "list newest 500 from t1", "list 0 all", "watch 9"]).await;
    run.expect_notes(&["[a b]@9"]).await;
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_lead_to_patience_and_not_to_a_list() {
    let lines = vec![page(vec![], "7"), Line::WatchFails(patience(100)), watch().1];
    let started = tokio::time::Instant::now();
    Run::new(lines).expect_requests(&["list 0 500", "watch 7", "watch 7"]).await;
    assert_eq!(started.elapsed().as_secs(), 100, "as long as the server asked for");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_at_once_is_opened_again_only_after_a_wait() {
    let (first, first_line) = watch();
    drop(first);
    let mut run = Run::new(vec![page(vec![], "7"), first_line, watch().1]);
    let started = tokio::time::Instant::now();
    run.expect_requests(&["list 0 500", "watch 7", "watch 7"]).await;
    assert!(started.elapsed() >= Duration::from_millis(800));
}

#[tokio::test(start_paused = true)]
async fn refusals_show_in_the_health_and_heal() {
    let (_open, open_line) = watch();
    let lines = vec![
        Line::ListFails(failure(403, "Forbidden")),
        Line::ListFails(failure(404, "NotFound")),
        Line::ListFails(failure(401, "Unauthorized")),
        page(vec![], "7"),
        open_line,
    ];
    let mut run = Run::new(lines);
    run.health(|health| matches!(health, Health::Forbidden { .. })).await;
    run.health(|health| matches!(health, Health::NotServed { .. })).await;
    let health = run.health(|health| matches!(health, Health::BackingOff { .. })).await;
    assert!(health.error().is_some_and(ListWatchError::is_unauthorized));
    run.health(Health::is_live).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_no_longer_served_is_listed_again_when_it_is() {
    let lines =
        vec![page(vec![], "7"), Line::WatchFails(failure(404, "NotFound")), page(vec![], "50"), watch().1];
    Run::new(lines).expect_requests(&["list 0 500", "watch 7", "list 7 all", "watch 50"]).await;
}

#[tokio::test(start_paused = true)]
async fn i10_what_cannot_be_decoded_is_set_aside_and_comes_back_with_a_good_version() {
    let (events, line) = watch();
    let mut run = Run::new(vec![page(vec![item("a", "1"), Err(malformed(Some("b"), "2"))], "7"), line]);
    run.expect_notes(&["[a !b]@7"]).await;
    assert_eq!(run.status.set_aside(), [malformed(Some("b"), "2")]);
    let object = malformed(Some("a"), "8");
    send(&events, vec![WatchEvent::Malformed { kind: MalformedKind::Changed, object }]);
    send(&events, vec![WatchEvent::Modified(named("b", "9"))]);
    // The watch goes on, and what comes after counts from there.
    run.expect_notes(&["@8", "~b@9"]).await;
    assert_eq!(run.status.set_aside(), [malformed(Some("a"), "8")]);
    let object = malformed(Some("a"), "10");
    send(&events, vec![WatchEvent::Malformed { kind: MalformedKind::Deleted, object }]);
    run.expect_notes(&["?a@10"]).await;
    assert!(run.status.set_aside().is_empty());
    assert_eq!(run.status.set_aside_total(), 2);
}

#[tokio::test(start_paused = true)]
async fn i10_an_event_that_names_no_object_leads_to_a_list() {
    let (events, line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), line, page(vec![], "9"), watch().1]);
    run.expect_requests(&["list 0 500", "watch 7"]).await;
    let object = malformed(None, "");
    send(
        &events,
        vec![
            WatchEvent::Added(named("a", "8")),
            WatchEvent::Malformed { kind: MalformedKind::Changed, object },
        ],
    );
    run.expect_requests(&["list 8 all", "watch 9"]).await;
}

#[tokio::test(start_paused = true)]
async fn i10_a_transform_that_fails_or_panics_sets_the_object_aside() {
    let (events, line) = watch();
    let config =
        ReflectorConfig::new().transform(|object: &mut ConfigMap| match object.metadata.name.as_deref() {
            Some("bad") => Err("no good"),
            Some("ugly") => panic!("told to"),
            _ => Ok(object.metadata.annotations = None),
        });
    let mut run = Run::with(
        vec![page(vec![item("good", "1"), item("bad", "2"), item("ugly", "3")], "7"), line],
        config,
    );
    run.expect_notes(&["[good !bad !ugly]@7"]).await;
    send(&events, vec![WatchEvent::Deleted(named("bad", "8"))]);
    run.expect_notes(&["?bad@8"]).await;
    let errors: Vec<_> = run.status.set_aside().into_iter().map(|object| object.error).collect();
    assert_eq!(errors, ["the transform panicked"]);
}

#[tokio::test(start_paused = true)]
async fn i12_a_stop_ends_any_wait_at_once() {
    // During a backoff of many minutes, during a list and during a watch that say nothing.
    let (_open, open_line) = watch();
    for lines in [vec![Line::ListFails(patience(3600))], vec![], vec![page(vec![], "7"), open_line]] {
        let steps = lines.len().max(1);
        let mut run = Run::new(lines);
        for _ in 0..steps {
            run.requests.recv().await;
        }
        let stopped = tokio::time::Instant::now();
        run.shutdown.cancel();
        run.task.await.expect("no panic");
        assert_eq!(stopped.elapsed(), Duration::ZERO);
        assert!(matches!(run.status.health(), Health::Stopped));
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_gone_dead_is_given_up_after_the_time_agreed_for_the_watch() {
    let (_silent, silent_line) = watch();
    let mut run = Run::new(vec![page(vec![], "7"), silent_line, watch().1]);
    let started = tokio::time::Instant::now();
    run.expect_requests(&["list 0 500", "watch 7", "watch 7"]).await;
    assert!((330..=630).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}
