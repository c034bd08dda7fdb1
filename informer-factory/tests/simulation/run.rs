//! One run: a server and informers, with writes and faults. After the last fault, the informers must
//! recover, and all checks must pass.

use std::time::Duration;

use informer_factory::WaitOutcome;
use informer_testing::{
    CannedResponse, FaultPlan, FaultPlanOptions, LaggingReplica, ObjectStore, RequestFilter, ServerFault,
    Simulator, StreamingLists, Verb,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::bugs::Bug;
use crate::history::{History, Violation};
use crate::informer::Informer;
use crate::item::{Content, Item, is_even, item};
use crate::network;
use crate::recorder::Recorder;
use crate::truth::{Scope, Truth};
use crate::writer::Writer;

/// The duration of the phase with writes and faults.
const UNREST: Duration = Duration::from_secs(240);

/// The time in which informers must recover after the last fault. It is enough for a request that
/// is in flight when the fault ends, a backoff of at most a minute, a list and a watch.
const RECOVERY: Duration = Duration::from_secs(150);

/// The maximum delay of an event after the recovery. It allows for a request in progress, and is
/// shorter than the interval of bookmarks, because a bookmark would hide a lost wake-up.
const PROMPT: Duration = Duration::from_secs(4);

/// The time in which informers must stop, even during the call of a slow handler: the call is
/// dropped.
const SOON: Duration = Duration::from_millis(1);

/// The time within which handlers receive all events, and streams end.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The extra time that a handler has for each pending event: the longest delay of a call. After a
/// fault, all missed events may arrive in one batch.
const EACH: Duration = Duration::from_millis(1_500);

/// The result of a run.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<Violation>,
    pub(crate) history: History,
    /// The time from the last fault until the informers had recovered.
    pub(crate) recovery: Duration,
}

/// Runs the simulation with this seed in this thread, optionally with a planted bug.
pub(crate) fn run(seed: u64, bug: Option<Bug>) -> Outcome {
    // The reflector draws its jitter from the thread's generator.
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("the runtime starts").block_on(simulate(seed, bug))
}

/// The state of a run.
struct World {
    simulator: Simulator,
    _replica: Option<LaggingReplica>,
    store: ObjectStore,
    truth: Truth,
    history: History,
    informers: Vec<Informer>,
}

async fn simulate(seed: u64, bug: Option<Bug>) -> Outcome {
    let history = History::begin();
    let recovery = live(seed, bug, &history).await;
    // Wait until all tasks have ended. The reader of a stream can be in the pause after an event.
    tokio::time::sleep(TIMEOUT).await;
    let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    if alive > 0 {
        history.violation(None, format!("I12: {alive} tasks are left"));
    }
    Outcome { violations: history.violations(), history, recovery }
}

async fn live(seed: u64, bug: Option<Bug>, history: &History) -> Duration {
    let mut random = fastrand::Rng::with_seed(seed);
    let simulator = simulator(&mut random);
    let replica = random.bool().then(|| simulator.lagging_replica());
    let client = network::client(&simulator, replica.as_ref(), random.u64(..), history);
    // Make some pages expire. The fault plan seldom does so, because little time passes between pages.
    let further_pages = RequestFilter::verb(Verb::List).has_parameter("continue");
    simulator.fail_next(random.usize(..4), further_pages, CannedResponse::expired());
    let store = simulator.objects_of::<Item>().expect("the simulator knows the kind");
    let mut world = World {
        simulator,
        _replica: replica,
        store,
        truth: Truth::default(),
        history: history.clone(),
        informers: Vec::new(),
    };
    let (truth, shutdown) = (world.truth.clone(), CancellationToken::new());
    let notes = (history, &truth);
    let mut tasks = JoinSet::new();
    let scopes = [
        ("all", Scope::default()),
        ("left", Scope { side: Some("left"), ..Scope::default() }),
        ("a", Scope { namespace: Some("a"), ..Scope::default() }),
    ];
    for (name, scope) in scopes.into_iter().take(random.usize(1..=3)) {
        let (mut informer, task) = Informer::new(name, scope, client.clone(), bug, &mut random, notes);
        for _ in 0..random.usize(1..4) {
            informer.join(&mut random);
        }
        tasks.spawn(task.run(shutdown.clone()));
        world.informers.push(informer);
    }
    drop(client);
    let plan = plan(&mut random);
    if random.u8(..8) == 0 {
        // Stop the informers during writes and faults.
        let after = UNREST.mul_f64(random.f64());
        let stop = stop(&shutdown, tasks, after, history);
        tokio::join!(world.unrest(&plan, &mut random), stop);
        world.check_orders();
        world.check_connections();
        return Duration::ZERO;
    }
    world.unrest(&plan, &mut random).await;
    let recovery = world.recover().await;
    stop(&shutdown, tasks, Duration::ZERO, history).await;
    world.check_connections();
    recovery
}

/// Checks invariant I12: stops the informers after the time `after`, and checks that they end soon.
async fn stop(shutdown: &CancellationToken, mut tasks: JoinSet<()>, after: Duration, history: &History) {
    tokio::time::sleep(after).await;
    history.log("the informers are stopped");
    shutdown.cancel();
    let began = Instant::now();
    let all = async { while tasks.join_next().await.is_some() {} };
    if timeout(TIMEOUT, all).await.is_err() || began.elapsed() > SOON {
        history.violation(None, "I12: an informer does not stop at once");
    }
}

fn simulator(random: &mut fastrand::Rng) -> Simulator {
    let ways = [
        StreamingLists::Served,
        StreamingLists::ServedLate,
        StreamingLists::Refused,
        StreamingLists::Ignored,
    ];
    let builder = Simulator::builder();
    // Some of these settings are those of a real server, and others cause more faults.
    let builder = match random.u8(..4) {
        0 => builder,
        _ => builder.history_limit(random.usize(5..500)),
    };
    let builder = match random.u8(..4) {
        0 => builder.close_slow_watches_in_time(),
        _ => builder.watch_buffer(random.usize(5..500)),
    };
    builder
        .compaction_interval(Duration::from_secs([0, 7, 60, 300][random.usize(..4)]))
        .resource_of::<Item>()
        .seed(random.u64(..))
        .start_date(std::time::UNIX_EPOCH)
        .bookmark_interval(Duration::from_secs(random.u64(5..61)))
        .streaming_lists(ways[random.usize(..4)])
        .start_in_process()
}

fn plan(random: &mut fastrand::Rng) -> FaultPlan {
    let mut options = FaultPlanOptions {
        duration: UNREST,
        count: random.usize(..25),
        requests: RequestFilter::any(),
        ..FaultPlanOptions::default()
    };
    // 403 looks like a missing permission, and 404 like a deleted resource definition. The plan
    // ends these faults, so the informers must recover from them.
    let refusals = [403, 404].map(|code| ServerFault::Respond { code, retry_after: 0 });
    options.faults.extend(refusals);
    if random.u8(..4) == 0 {
        options.faults.extend([ServerFault::UndoWrites; 3]);
    }
    FaultPlan::from_seed(random.u64(..), &options)
}

impl World {
    /// Runs writes and faults concurrently, while handlers join and leave.
    async fn unrest(&mut self, plan: &FaultPlan, random: &mut fastrand::Rng) {
        let Self { simulator, store, truth, history, informers, .. } = self;
        let (simulator, store, truth, history) = (&*simulator, &*store, &*truth, &*history);
        let faults = plan.run(simulator, |what| {
            history.log(format!("fault: {what}"));
            truth.update_all(store, simulator.resource_version());
        });
        let work = async {
            let mut writer = Writer::new(simulator, store, truth, history, random.fork());
            let began = Instant::now();
            while began.elapsed() < UNREST {
                for _ in 0..random.usize(..4) {
                    writer.write();
                }
                if let Some(informer) = random.choice(informers.iter_mut()) {
                    match random.u8(..20) {
                        0 if informer.members.len() < 6 => informer.join(random),
                        1 => informer.leave(random).await.iter().for_each(Recorder::check_order),
                        _ => {}
                    }
                }
                let pause = [0, 0, 1, 20, 300, 2_000, 6_000][random.usize(..7)];
                tokio::time::sleep(Duration::from_millis(pause)).await;
                informers.iter().for_each(Informer::check_store);
            }
        };
        tokio::join!(faults, work);
    }

    /// Checks that the informers recover in time after the last fault. Returns the time that they
    /// needed.
    async fn recover(&mut self) -> Duration {
        let began = Instant::now();
        self.history.log("the last fault is over");
        self.all_receive("a/end", RECOVERY).await;
        let recovery = began.elapsed();
        self.all_receive("a/last", PROMPT).await;
        for informer in &self.informers {
            informer.check_store();
            informer.check_quarantined();
            self.check_handlers(informer).await;
        }
        recovery
    }

    /// Creates an object, and checks that all informers receive it within `limit`.
    async fn all_receive(&self, key: &str, limit: Duration) {
        let name = key.trim_start_matches("a/");
        let written = self.store.create(&item("a", name, "left", Content::Number(2)));
        let version = written.expect("a new object").resource_version();
        self.truth.update(&self.store, key, version);
        self.history.log_object(key, format!("created at {version}, to be delivered within {limit:?}"));
        let deadline = Instant::now() + limit;
        for informer in &self.informers {
            let left = deadline.saturating_duration_since(Instant::now());
            if informer.shared.wait_until(&version.into(), left).await != WaitOutcome::Reached {
                let (at, health) = (informer.shared.watermark(), informer.shared.health());
                let text = format!(
                    "{} has not received the object: its watermark is {at}, its health is {health}",
                    informer.name
                );
                self.history.violation(Some(key), text);
            }
        }
    }

    /// Checks that every handler receives the content of the store.
    async fn check_handlers(&self, informer: &Informer) {
        let stored = informer.shared.indexer().list();
        for member in &informer.members {
            let recorder = &member.recorder;
            let seen = stored.iter().filter(|item| !recorder.scope().even || is_even(item.spec.number));
            let version = |version: String| version.parse::<u64>().unwrap_or_default();
            let wanted =
                seen.map(|item| (item.key().to_string(), version(item.resource_version().to_string())));
            let wanted = wanted.collect();
            let limit = TIMEOUT + EACH * member.pending();
            if timeout(limit, recorder.wait_until(|copy| *copy == wanted)).await.is_err() {
                let copy = recorder.copy();
                let wrong = wanted.keys().chain(copy.keys()).find(|key| wanted.get(*key) != copy.get(*key));
                let text = format!("{}: its copy differs from the store", recorder.name());
                self.history.violation(wrong.map(String::as_str), text);
            }
            if !timeout(TIMEOUT, recorder.synced()).await.unwrap_or(false) {
                self.history.violation(None, format!("I6: {} has not synced", recorder.name()));
            }
            recorder.check_order();
        }
    }

    /// Checks invariant I1: the order of the received events, even if some are still missing.
    fn check_orders(&self) {
        let members = self.informers.iter().flat_map(|informer| &informer.members);
        members.for_each(|member| member.recorder.check_order());
    }

    /// Checks invariant I12: the server has no open watches.
    fn check_connections(&self) {
        let left = self.simulator.open_watches(&RequestFilter::any());
        if left > 0 {
            self.history.violation(None, format!("I12: {left} watches are left open"));
        }
    }
}
