//! One run: a server, informers, writes, trouble; then quiet, and everything must be right again.

use std::time::Duration;

use informer_factory::WaitOutcome;
use informer_testing::{
    CannedResponse, FaultPlan, FaultPlanOptions, LaggingReplica, ObjectStore, RequestFilter, Simulator,
    StreamingLists, Trouble, Verb,
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

/// For how long there are writes and trouble.
const UNREST: Duration = Duration::from_secs(240);

/// How long informers may take to recover once trouble is over: a wait of a minute at most before
/// they try again, a request of another that was under way, and a list and a watch after that.
const RECOVERY: Duration = Duration::from_secs(150);

/// How long news may take when all is well again: a request that is under way, and no wait for
/// anything else. A wake-up that was lost would be made up for by the next bookmark, but not so
/// soon.
const PROMPT: Duration = Duration::from_secs(4);

/// How long stopping may take: nothing is waited for but a slow handler's call, which is dropped.
const SOON: Duration = Duration::from_millis(1);

/// The time within which handlers receive everything, and streams end.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much longer a handler may take for each event that waits for it: as long as the slowest
/// does. After trouble, all that was missed may come in one batch, which is taken as a whole.
const EACH: Duration = Duration::from_millis(1_500);

/// What came of a run.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<Violation>,
    pub(crate) history: History,
    /// How long it took until the informers had recovered.
    pub(crate) recovery: Duration,
}

/// Runs a seed, with a bug or without, in this thread.
pub(crate) fn run(seed: u64, bug: Option<Bug>) -> Outcome {
    // The reflector's jitter is drawn from the thread's generator.
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(simulate(seed, bug))
}

/// What there is in a run.
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
    // What was dropped may need a turn to notice, and readers of streams end their pauses.
    tokio::time::sleep(PATIENCE).await;
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
    // Between the pages of a list little time goes by, so the plan alone would seldom hit it.
    let further_pages = RequestFilter::verb(Verb::List).has_parameter("continue");
    simulator.fail_next(random.usize(..4), further_pages, CannedResponse::expired());
    let store = simulator.objects_of::<Item>().expect("items are served");
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
        // Stopped in the midst of it.
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

/// I12: stops the informers after a time; they must end soon.
async fn stop(shutdown: &CancellationToken, mut tasks: JoinSet<()>, after: Duration, history: &History) {
    tokio::time::sleep(after).await;
    history.note("the informers are stopped");
    shutdown.cancel();
    let began = Instant::now();
    let all = async { while tasks.join_next().await.is_some() {} };
    if timeout(PATIENCE, all).await.is_err() || began.elapsed() > SOON {
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
    // What a real server does, or what leads to more trouble.
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
        .begins_on(std::time::UNIX_EPOCH)
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
    // What looks like a missing right, or like a definition that is gone, and heals.
    let refusals = [403, 404].map(|code| Trouble::Respond { code, retry_after: 0 });
    options.troubles.extend(refusals);
    if random.u8(..4) == 0 {
        options.troubles.extend([Trouble::UndoWrites; 3]);
    }
    FaultPlan::from_seed(random.u64(..), &options)
}

impl World {
    /// Writes, trouble, and handlers that come and go, all at the same time.
    async fn unrest(&mut self, plan: &FaultPlan, random: &mut fastrand::Rng) {
        let Self { simulator, store, truth, history, informers, .. } = self;
        let (simulator, store, truth, history) = (&*simulator, &*store, &*truth, &*history);
        let trouble = plan.run(simulator, |what| {
            history.note(format!("trouble: {what}"));
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
        tokio::join!(trouble, work);
    }

    /// After the last trouble everything must be right again, within a time. Returns how long it
    /// took.
    async fn recover(&mut self) -> Duration {
        let began = Instant::now();
        self.history.note("the last trouble is over");
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

    /// Creates an object that all informers must have within a time.
    async fn all_receive(&self, key: &str, limit: Duration) {
        let name = key.trim_start_matches("a/");
        let written = self.store.create(&item("a", name, "left", Content::Number(2)));
        let version = written.expect("there is none yet").resource_version();
        self.truth.update(&self.store, key, version);
        self.history.note_of(key, format!("created at {version}, to be delivered within {limit:?}"));
        let deadline = Instant::now() + limit;
        for informer in &self.informers {
            let left = deadline.saturating_duration_since(Instant::now());
            if informer.shared.wait_until(&version.into(), left).await != WaitOutcome::Reached {
                let (at, health) = (informer.shared.watermark(), informer.shared.health());
                let text = format!("{} has not heard of it: it is at {at}, {health}", informer.name);
                self.history.violation(Some(key), text);
            }
        }
    }

    /// Every handler must come to know what is in the store.
    async fn check_handlers(&self, informer: &Informer) {
        let stored = informer.shared.indexer().list();
        for member in &informer.members {
            let recorder = &member.recorder;
            let seen = stored.iter().filter(|item| !recorder.scope().even || is_even(item.spec.number));
            let version = |version: String| version.parse::<u64>().unwrap_or_default();
            let wanted =
                seen.map(|item| (item.key().to_string(), version(item.resource_version().to_string())));
            let wanted = wanted.collect();
            let patience = PATIENCE + EACH * member.waiting();
            if timeout(patience, recorder.wait_until(|copy| *copy == wanted)).await.is_err() {
                let copy = recorder.copy();
                let wrong = wanted.keys().chain(copy.keys()).find(|key| wanted.get(*key) != copy.get(*key));
                let text = format!("{}: its copy is not the store", recorder.name());
                self.history.violation(wrong.map(String::as_str), text);
            }
            if !timeout(PATIENCE, recorder.synced()).await.unwrap_or(false) {
                self.history.violation(None, format!("I6: {} has not synced", recorder.name()));
            }
            recorder.check_order();
        }
    }

    /// I1: what was heard is right also where it is not all.
    fn check_orders(&self) {
        let members = self.informers.iter().flat_map(|informer| &informer.members);
        members.for_each(|member| member.recorder.check_order());
    }

    /// I12: nothing is left on the server's side either.
    fn check_connections(&self) {
        let left = self.simulator.open_watches(&RequestFilter::any());
        if left > 0 {
            self.history.violation(None, format!("I12: {left} watches are left open"));
        }
    }
}
