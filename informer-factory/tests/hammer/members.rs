//! How handlers join and leave, and what is asked of those that stay to the end.

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

use crate::handlers::{Asynchronous, Blocking, Leaver, Pauses, Witness, closures, read};
use crate::item::{Item, Life};
use crate::world::{World, count, within};

/// How many handlers there are at any time.
const HANDLERS: u64 = 100;

/// How many tasks see to it.
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

/// A handler, seen from outside.
pub(crate) struct Member {
    form: Form,
    replica: Replica<Item>,
    complaints: Arc<Mutex<Vec<String>>>,
    token: Weak<()>,
    hold: Hold,
}

/// What keeps a handler in place.
enum Hold {
    Registration(HandlerRegistration),
    /// It can have removed itself.
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
        let (replica, complaints) = (Replica::new(), Arc::default());
        let witness = Witness {
            replica: replica.clone(),
            indexer: world.informer.indexer().clone(),
            complaints: Arc::clone(&complaints),
            panics: form.panics().then(|| Mutex::new(random.fork())),
            _life: Life::new(&world.handlers),
            _token: token,
        };
        let hold = add(world, random, form, witness);
        count(&world.tally.joined);
        Self { form, replica, complaints, token: weak, hold }
    }

    /// I6: once it is synced, it has been told of what existed when it joined. What never is
    /// synced, or only when the others have got on, is not waited for.
    async fn wait_until_synced(&self, world: &World) {
        let synced = match &self.hold {
            _ if self.form.stalls() => return,
            Hold::Own(_) => return,
            Hold::Registration(registration) => registration.synced(),
            Hold::Reader { synced, .. } => synced.clone(),
        };
        let outcome = within("a handler to sync", synced.wait()).await;
        assert!(
            outcome.is_ok() || world.shutdown.is_cancelled(),
            "{:?} is not told of what exists",
            self.form
        );
    }

    /// Leaves in one of the possible ways.
    pub(crate) async fn leave(self, world: &World, random: &mut Rng) {
        let Self { form, replica, complaints, token, hold } = self;
        match hold {
            Hold::Registration(registration) => {
                let stats = registration.stats();
                world.note(stats);
                if random.bool() {
                    registration.remove();
                } else {
                    within("a handler to end", registration.remove_and_wait()).await;
                    assert!(token.upgrade().is_none(), "{form:?} is still there");
                }
            }
            Hold::Own(registration) => {
                let registration = registration.lock().take();
                drop(registration);
            }
            Hold::Reader { stop, task, .. } => {
                stop.cancel();
                within("a reader to end", task).await.expect("a reader does not panic");
                assert!(token.upgrade().is_none(), "{form:?} is still there");
            }
        }
        assert_no_complaints(form, &replica, &complaints);
        count(&world.tally.left);
    }

    /// Returns whether it may leave without being told to.
    pub(crate) fn leaves_by_itself(&self) -> bool {
        self.form == Form::Leaving
    }

    /// Returns whether it is still being told, unless it has removed itself.
    fn is_in_place(&self) -> bool {
        match &self.hold {
            Hold::Own(registration) => registration.lock().is_some(),
            Hold::Registration(_) | Hold::Reader { .. } => true,
        }
    }

    /// Waits until it has been told of everything that the server has; it need not have been, if it
    /// has removed itself.
    pub(crate) async fn catch_up(&self, world: &World) {
        let of_the_server: BTreeMap<_, _> = world
            .source
            .objects()
            .into_iter()
            .filter(|item| self.form.matches(item))
            .map(|item| (item.key().to_string(), item.resource_version().to_string()))
            .collect();
        if self.is_in_place() {
            let is_equal = || self.replica.versions() == of_the_server;
            let caught_up = self.replica.wait_until(|_| is_equal() || !self.is_in_place());
            within(&format!("{:?} to catch up: {:?}", self.form, self.stats()), caught_up).await;
        }
        assert_no_complaints(self.form, &self.replica, &self.complaints);
    }

    fn stats(&self) -> Option<HandlerStats> {
        match &self.hold {
            Hold::Registration(registration) => Some(registration.stats()),
            Hold::Own(_) | Hold::Reader { .. } => None,
        }
    }
}

impl World {
    fn note(&self, stats: HandlerStats) {
        self.tally.delivered.fetch_add(stats.delivered, Ordering::Relaxed);
        self.tally.coalesced.fetch_add(stats.coalesced, Ordering::Relaxed);
        self.tally.panicked.fetch_add(stats.panicked, Ordering::Relaxed);
    }
}

fn assert_no_complaints(form: Form, replica: &Replica<Item>, complaints: &Mutex<Vec<String>>) {
    assert_eq!(replica.violations(), [""; 0], "{form:?}");
    assert_eq!(*complaints.lock(), [""; 0], "{form:?}");
}

/// Adds a handler to the informer in the form that is asked for.
fn add(world: &World, random: &mut Rng, form: Form, witness: Witness) -> Hold {
    let informer = &world.informer;
    let phase = form.stalls().then(|| world.phase.subscribe());
    let pauses = Pauses { random: Mutex::new(random.fork()), phase };
    let options = some_options(random, form);
    let options = &options;
    Hold::Registration(match form {
        Form::Plain | Form::Panicking => informer.add_event_handler_with(witness, options),
        Form::Shared => informer.add_event_handler_with(Arc::new(witness), options),
        Form::Closures => informer.add_event_handler_with(closures(witness), options),
        Form::Filtered => informer.add_event_handler_with(Filtered::new(is_even, witness), options),
        Form::Stalled => informer.add_event_handler_with(Blocking { witness, pauses }, options),
        Form::Async | Form::AsyncPanicking | Form::AsyncStalled => {
            informer.add_async_event_handler_with(Asynchronous { witness, pauses }, options)
        }
        Form::AsyncFiltered => {
            let handler = Filtered::new(is_even, Asynchronous { witness, pauses });
            informer.add_async_event_handler_with(handler, options)
        }
        Form::Leaving => {
            let own = Arc::new(Mutex::new(None));
            let leaver = Leaver { witness, registration: Arc::clone(&own), after: random.u64(..100_000) };
            let registration = informer.add_event_handler_with(leaver, options);
            *own.lock() = Some(registration);
            return Hold::Own(own);
        }
        Form::Stream | Form::StreamStalled => {
            let events = informer.events(options);
            let synced = events.registration().synced();
            let stop = CancellationToken::new();
            let task = tokio::spawn(read(events, witness, pauses, stop.clone()));
            return Hold::Reader { synced, stop, task };
        }
    })
}

fn some_options(random: &mut Rng, form: Form) -> HandlerOptions {
    let thresholds = [Some(0), Some(1), Some(16), Some(1024), None];
    let resyncs = [Resync::Never, Resync::Default, Resync::Every(Duration::from_secs(2))];
    // The memory of a stalled handler without a threshold is unbounded.
    let threshold = random.usize(..if form.stalls() { 4 } else { 5 });
    HandlerOptions::new()
        .name(format!("{form:?}"))
        .threshold(thresholds[threshold])
        .resync(resyncs[random.usize(..resyncs.len())])
}

/// Sets all managers to work; each returns the handlers that are there in the end.
pub(crate) fn set_to_work(world: &Arc<World>) -> JoinSet<Vec<Member>> {
    (0..MANAGERS).map(|number| manage(Arc::clone(world), number)).collect()
}

/// Keeps its share of handlers in place, and replaces one at a time until the producers have
/// stopped; returns those that are there in the end.
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
