//! How handlers join and leave, and the checks of the handlers that stay to the end.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use fastrand::Rng;
use informer_core::{Completion, Filtered, HandlerOptions, HandlerRegistration, HandlerStats, Resync};
use informer_testing::Replica;
use parking_lot::Mutex;
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::handlers::{Asynchronous, Blocking, Leaver, Pauses, Recorder, closures, read};
use crate::item::{Counted, Item};
use crate::world::{World, count, within};

/// The number of handlers at any time.
const HANDLERS: u64 = 100;

/// The number of tasks that add and remove handlers.
const MANAGERS: u64 = 4;

/// The forms in which a handler can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Panicking,
    Shared,
    Closures,
    Filtered,
    Leaving,
    Stalled,
    Async,
    AsyncPanicking,
    AsyncFiltered,
    AsyncStalled,
    Stream,
    StreamStalled,
}

const FORMS: [Form; 13] = [
    Form::Plain,
    Form::Panicking,
    Form::Shared,
    Form::Closures,
    Form::Filtered,
    Form::Leaving,
    Form::Stalled,
    Form::Async,
    Form::AsyncPanicking,
    Form::AsyncFiltered,
    Form::AsyncStalled,
    Form::Stream,
    Form::StreamStalled,
];

impl Form {
    fn panics(self) -> bool {
        matches!(self, Self::Panicking | Self::AsyncPanicking)
    }

    fn stalls(self) -> bool {
        matches!(self, Self::Stalled | Self::AsyncStalled | Self::StreamStalled)
    }

    fn matches(self, item: &Item) -> bool {
        !matches!(self, Self::Filtered | Self::AsyncFiltered) || is_even(item)
    }
}

fn is_even(item: &Item) -> bool {
    item.bucket.is_multiple_of(2)
}

/// A handler that a manager has added, and the state that the tests check.
pub(crate) struct Member {
    form: Form,
    replica: Replica<Item>,
    violations: Arc<Mutex<Vec<String>>>,
    token: Weak<()>,
    hold: Hold,
}

/// The value that keeps a handler registered.
enum Hold {
    Registration(HandlerRegistration),
    /// `None` once the handler has removed itself.
    Own(Arc<Mutex<Option<HandlerRegistration>>>),
    Reader {
        synced: Completion,
        stop: CancellationToken,
        task: JoinHandle<()>,
    },
}

impl Member {
    pub(crate) fn join(world: &World, random: &mut Rng) -> Self {
        let form = FORMS[random.usize(..FORMS.len())];
        let token = Arc::new(());
        let weak = Arc::downgrade(&token);
        let (replica, violations) = (Replica::new(), Arc::default());
        let recorder = Recorder {
            replica: replica.clone(),
            indexer: world.informer.indexer().clone(),
            violations: Arc::clone(&violations),
            panics: form.panics().then(|| Mutex::new(random.fork())),
            _counted: Counted::new(&world.handlers),
            _token: token,
        };
        let hold = add(world, random, form, recorder);
        count(&world.tally.joined);
        Self { form, replica, violations, token: weak, hold }
    }

    /// Checks invariant I6: the handler syncs. Does not check handlers that may never sync, or that
    /// sync only after other tasks have progressed.
    async fn wait_until_synced(&self, world: &World) {
        let synced = match &self.hold {
            _ if self.form.stalls() => return,
            Hold::Own(_) => return,
            Hold::Registration(registration) => registration.synced(),
            Hold::Reader { synced, .. } => synced.clone(),
        };
        let outcome = within("a handler to sync", synced.wait()).await;
        assert!(outcome.is_ok() || world.shutdown.is_cancelled(), "{:?} has not synced", self.form);
    }

    /// Removes the handler in one of the possible ways.
    pub(crate) async fn leave(self, world: &World, random: &mut Rng) {
        let Self { form, replica, violations, token, hold } = self;
        match hold {
            Hold::Registration(registration) => {
                let stats = registration.stats();
                world.add_to_tally(stats);
                if random.bool() {
                    registration.remove();
                } else {
                    within("a handler to end", registration.remove_and_wait()).await;
                    assert!(token.upgrade().is_none(), "{form:?} is not dropped");
                }
            }
            Hold::Own(registration) => {
                let registration = registration.lock().take();
                drop(registration);
            }
            Hold::Reader { stop, task, .. } => {
                stop.cancel();
                within("a reader to end", task).await.expect("a reader does not panic");
                assert!(token.upgrade().is_none(), "{form:?} is not dropped");
            }
        }
        assert_no_violations(form, &replica, &violations);
        count(&world.tally.left);
    }

    /// Returns whether the handler may remove itself.
    pub(crate) fn leaves_by_itself(&self) -> bool {
        self.form == Form::Leaving
    }

    /// Returns whether the handler is still registered.
    fn is_registered(&self) -> bool {
        match &self.hold {
            Hold::Own(registration) => registration.lock().is_some(),
            Hold::Registration(_) | Hold::Reader { .. } => true,
        }
    }

    /// Waits until the handler has received the server's state, unless it has removed itself.
    pub(crate) async fn catch_up(&self, world: &World) {
        let of_the_server: BTreeMap<_, _> = world
            .source
            .objects()
            .into_iter()
            .filter(|item| self.form.matches(item))
            .map(|item| (item.key().to_string(), item.resource_version().to_string()))
            .collect();
        if self.is_registered() {
            let is_equal = || self.replica.versions() == of_the_server;
            let caught_up = self.replica.wait_until(|_| is_equal() || !self.is_registered());
            within(&format!("{:?} to catch up: {:?}", self.form, self.stats()), caught_up).await;
        }
        assert_no_violations(self.form, &self.replica, &self.violations);
    }

    fn stats(&self) -> Option<HandlerStats> {
        match &self.hold {
            Hold::Registration(registration) => Some(registration.stats()),
            Hold::Own(_) | Hold::Reader { .. } => None,
        }
    }
}

impl World {
    fn add_to_tally(&self, stats: HandlerStats) {
        self.tally.delivered.fetch_add(stats.delivered, Ordering::Relaxed);
        self.tally.coalesced.fetch_add(stats.coalesced, Ordering::Relaxed);
        self.tally.panicked.fetch_add(stats.panicked, Ordering::Relaxed);
    }
}

fn assert_no_violations(form: Form, replica: &Replica<Item>, violations: &Mutex<Vec<String>>) {
    assert_eq!(replica.violations(), [""; 0], "{form:?}");
    assert_eq!(*violations.lock(), [""; 0], "{form:?}");
}

/// Adds a handler of the given form to the informer.
fn add(world: &World, random: &mut Rng, form: Form, recorder: Recorder) -> Hold {
    let informer = &world.informer;
    let phase = form.stalls().then(|| world.phase.subscribe());
    let pauses = Pauses { random: Mutex::new(random.fork()), phase };
    let options = some_options(random, form);
    let options = &options;
    Hold::Registration(match form {
        Form::Plain | Form::Panicking => informer.add_event_handler_with(recorder, options),
        Form::Shared => informer.add_event_handler_with(Arc::new(recorder), options),
        Form::Closures => informer.add_event_handler_with(closures(recorder), options),
        Form::Filtered => informer.add_event_handler_with(Filtered::new(is_even, recorder), options),
        Form::Stalled => informer.add_event_handler_with(Blocking { recorder, pauses }, options),
        Form::Async | Form::AsyncPanicking | Form::AsyncStalled => {
            informer.add_async_event_handler_with(Asynchronous { recorder, pauses }, options)
        }
        Form::AsyncFiltered => {
            let handler = Filtered::new(is_even, Asynchronous { recorder, pauses });
            informer.add_async_event_handler_with(handler, options)
        }
        Form::Leaving => {
            let own = Arc::new(Mutex::new(None));
            let leaver = Leaver { recorder, registration: Arc::clone(&own), after: random.u64(..100_000) };
            let registration = informer.add_event_handler_with(leaver, options);
            *own.lock() = Some(registration);
            return Hold::Own(own);
        }
        Form::Stream | Form::StreamStalled => {
            let events = informer.events(options);
            let synced = events.registration().synced();
            let stop = CancellationToken::new();
            let task = tokio::spawn(read(events, recorder, pauses, stop.clone()));
            return Hold::Reader { synced, stop, task };
        }
    })
}

fn some_options(random: &mut Rng, form: Form) -> HandlerOptions {
    let thresholds = [Some(0), Some(1), Some(16), Some(1024), None];
    let resyncs = [Resync::Never, Resync::Default, Resync::Every(Duration::from_secs(2))];
    // Without a threshold, a stalled handler would use unbounded memory.
    let threshold = random.usize(..if form.stalls() { 4 } else { 5 });
    HandlerOptions::new()
        .name(format!("{form:?}"))
        .threshold(thresholds[threshold])
        .resync(resyncs[random.usize(..resyncs.len())])
}

/// Spawns the managers, the tasks that add and remove handlers. Each returns its remaining
/// handlers.
pub(crate) fn spawn_all(world: &Arc<World>) -> JoinSet<Vec<Member>> {
    (0..MANAGERS).map(|number| manage(Arc::clone(world), number)).collect()
}

/// Keeps a share of the handlers registered, and replaces one handler at a time until the producers
/// have stopped. Returns the remaining handlers.
async fn manage(world: Arc<World>, number: u64) -> Vec<Member> {
    let mut random = world.random(1000 + number);
    let mut members: Vec<_> = (0..HANDLERS / MANAGERS).map(|_| Member::join(&world, &mut random)).collect();
    while world.progress().await {
        let place = random.usize(..members.len());
        members.swap_remove(place).leave(&world, &mut random).await;
        let member = Member::join(&world, &mut random);
        if random.u8(..4) == 0 {
            member.wait_until_synced(&world).await;
        }
        members.push(member);
    }
    members
}
