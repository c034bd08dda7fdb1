//! The processor compared with a naive model: random batches are published while readers join, read
//! some events, and leave. For each key, a reader's events must be a possible history that ends
//! with the current state.
//!
//! Readers are streams, which the test can read one event at a time. Events reach a handler with its
//! own task through the same code, except for the last step: the task calls the handler.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use informer_core::{
    Cached, Deleted, Event, EventBatch, EventStream, HandlerOptions, ObjectKey, Resync, SharedProcessor, Uid,
};
use proptest::prelude::*;

const NAMES: u8 = 10;

/// A change of one object. The number is the object's name.
#[derive(Debug, Clone, Copy)]
enum Change {
    Put(u8),
    /// Deletes the object. The watch reports this, with a newer last state if the flag is set.
    Delete(u8, bool),
    /// Deletes the object. Only a relist notices the deletion.
    Lose(u8),
    /// Replaces the object with another one of the same name.
    Recreate(u8),
    /// Releases the object: its namespace is no longer watched.
    Release(u8),
    /// Adds the released object again: its namespace is watched again.
    Watch(u8),
    /// Resyncs the object.
    Resync(u8),
}

/// A step of a history.
#[derive(Debug, Clone)]
enum Step {
    Publish {
        changes: Vec<Change>,
        completes: bool,
    },
    /// The period between the informer's resync checks has passed.
    Check,
    Join {
        threshold: Option<usize>,
        resync: bool,
        coalesce_drops_old: bool,
    },
    Read {
        reader: usize,
        count: usize,
    },
    Leave(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        5 => (0..NAMES).prop_map(Change::Put),
        2 => (0..NAMES, any::<bool>()).prop_map(|(name, changed)| Change::Delete(name, changed)),
        1 => (0..NAMES).prop_map(Change::Lose),
        1 => (0..NAMES).prop_map(Change::Recreate),
        1 => (0..NAMES).prop_map(Change::Release),
        1 => (0..NAMES).prop_map(Change::Watch),
        2 => (0..NAMES).prop_map(Change::Resync),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let threshold = prop_oneof![Just(None), (0..20_usize).prop_map(Some)];
    prop_oneof![
        8 => (prop::collection::vec(change(), 0..9), prop::bool::weighted(0.1))
            .prop_map(|(changes, completes)| Step::Publish { changes, completes }),
        1 => Just(Step::Check),
        1 => (threshold, any::<bool>(), any::<bool>()).prop_map(|(threshold, resync, coalesce_drops_old)| {
            Step::Join { threshold, resync, coalesce_drops_old }
        }),
        4 => (0..4_usize, 1..30_usize).prop_map(|(reader, count)| Step::Read { reader, count }),
        1 => (0..8_usize).prop_map(Step::Leave),
    ]
}

fn key(name: u8) -> ObjectKey {
    ObjectKey::namespaced("ns", &name.to_string())
}

/// The current objects, the history, and the readers.
struct World {
    processor: SharedProcessor<u64>,
    truth: BTreeMap<ObjectKey, Cached<u64>>,
    /// Objects that exist but are released.
    released: BTreeMap<ObjectKey, Cached<u64>>,
    /// The key and value of every state that ever existed. Values are unique and increase.
    history: BTreeSet<(ObjectKey, u64)>,
    value: u64,
    list_complete: bool,
    readers: Vec<Reader>,
}

/// A stream, and the state that its reader has received.
struct Reader {
    stream: EventStream<u64>,
    threshold: Option<usize>,
    wants_resyncs: bool,
    coalesce_drops_old: bool,
    /// The objects that existed when the reader joined and that the reader has not received yet.
    replay: BTreeMap<ObjectKey, u64>,
    /// The objects that exist according to the received events.
    known: BTreeMap<ObjectKey, u64>,
    /// The newest received state of each key.
    newest: BTreeMap<ObjectKey, u64>,
    /// The keys of received releases. These objects can be added again in the same state.
    released: BTreeSet<ObjectKey>,
    largest_batch: usize,
}

impl World {
    fn new() -> Self {
        let processor = SharedProcessor::new(Some(Duration::from_secs(1)));
        assert!(processor.freeze_check_period().is_some());
        Self {
            processor,
            truth: BTreeMap::new(),
            released: BTreeMap::new(),
            history: BTreeSet::new(),
            value: 0,
            list_complete: false,
            readers: Vec::new(),
        }
    }

    fn state(&mut self, name: u8) -> Cached<u64> {
        self.value += 1;
        self.history.insert((key(name), self.value));
        Cached::from_parts(key(name), self.value.into(), Uid::default(), self.value)
    }

    fn add(&mut self, name: u8, events: &mut Vec<Event<u64>>) {
        let object = self.state(name);
        self.released.remove(&key(name));
        self.truth.insert(key(name), object.clone());
        events.push(Event::Added { object, is_in_initial_list: !self.list_complete });
    }

    /// Applies a change and appends its events.
    fn change(&mut self, change: Change, events: &mut Vec<Event<u64>>) {
        match change {
            Change::Put(name) => match self.truth.get(&key(name)).cloned() {
                None => self.add(name, events),
                Some(old) => {
                    let new = self.state(name);
                    self.truth.insert(key(name), new.clone());
                    events.push(Event::Updated { old, new });
                }
            },
            Change::Delete(name, changed) => {
                if let Some(old) = self.truth.remove(&key(name)) {
                    let last = if changed { self.state(name) } else { old.clone() };
                    events.push(Event::Deleted(Deleted::exact(last).after(old)));
                }
            }
            Change::Lose(name) => {
                if let Some(old) = self.truth.remove(&key(name)) {
                    events.push(Event::Deleted(Deleted::missed(key(name), None).after(old)));
                }
            }
            Change::Recreate(name) => {
                if self.truth.contains_key(&key(name)) {
                    self.change(Change::Lose(name), events);
                    self.add(name, events);
                }
            }
            Change::Release(name) => {
                if let Some(last) = self.truth.remove(&key(name)) {
                    self.released.insert(key(name), last.clone());
                    events.push(Event::Released(last));
                }
            }
            Change::Watch(name) if !self.truth.contains_key(&key(name)) => {
                if let Some(object) = self.released.remove(&key(name)) {
                    self.truth.insert(key(name), object.clone());
                    events.push(Event::Added { object, is_in_initial_list: false });
                }
            }
            Change::Watch(_) => {}
            Change::Resync(name) => {
                events.extend(self.truth.get(&key(name)).cloned().map(Event::Resynced));
            }
        }
    }

    async fn run(&mut self, step: Step) {
        match step {
            Step::Publish { changes, completes } => {
                let mut events = Vec::new();
                changes.into_iter().for_each(|change| self.change(change, &mut events));
                let completes_initial_list = completes && !self.list_complete;
                self.list_complete |= completes;
                for reader in &mut self.readers {
                    reader.largest_batch = reader.largest_batch.max(events.len());
                }
                self.processor.publish(EventBatch { events, completes_initial_list }, || {});
            }
            Step::Check => {
                tokio::time::advance(Duration::from_secs(1)).await;
                let wanted = self.readers.iter().any(|reader| reader.wants_resyncs);
                assert_eq!(self.processor.check_resync(), wanted);
            }
            Step::Join { threshold, resync, coalesce_drops_old } => {
                self.join(threshold, resync, coalesce_drops_old);
            }
            Step::Read { reader, count } => {
                if let Some(reader) = self.readers.get_mut(reader) {
                    (0..count).for_each(|_| _ = reader.read(&self.history));
                }
            }
            Step::Leave(reader) if reader < self.readers.len() => drop(self.readers.remove(reader)),
            Step::Leave(_) => {}
        }
        let readers = self.readers.len();
        self.readers.iter().for_each(|reader| reader.check(self.list_complete, readers));
    }

    fn join(&mut self, threshold: Option<usize>, wants_resyncs: bool, coalesce_drops_old: bool) {
        let resync = if wants_resyncs { Resync::Default } else { Resync::Never };
        let mut options = HandlerOptions::new().threshold(threshold).resync(resync);
        options.coalesce_drops_old = coalesce_drops_old;
        let existing: Vec<_> = self.truth.values().cloned().collect();
        self.readers.push(Reader {
            stream: self.processor.events(&options, move || existing.into_iter()),
            threshold,
            wants_resyncs,
            coalesce_drops_old,
            replay: self.truth.iter().map(|(key, object)| (key.clone(), **object)).collect(),
            known: BTreeMap::new(),
            newest: BTreeMap::new(),
            released: BTreeSet::new(),
            largest_batch: 0,
        });
    }
}

impl Reader {
    /// Reads one event, if available, and checks that it fits the history. Returns whether there
    /// was one.
    fn read(&mut self, history: &BTreeSet<(ObjectKey, u64)>) -> bool {
        // Unconstrained, because otherwise the stream sometimes yields to other tasks.
        let next = tokio::task::unconstrained(self.stream.next()).now_or_never();
        let Some(event) = next.flatten() else { return false };
        let key = event.key().clone();
        let replayed = self.replay.remove(&key);
        match &event {
            Event::Added { object, is_in_initial_list } => {
                // I5: each existing object is replayed once and unchanged, before any other event.
                assert!(replayed.is_none_or(|value| value == **object && *is_in_initial_list));
                assert!(
                    replayed.is_some() || self.replay.is_empty(),
                    "{event:?} before the replay has ended"
                );
                self.check_state(&key, **object, history);
                assert_eq!(self.known.insert(key, **object), None, "I4: {event:?} is known already");
            }
            Event::Updated { old, new } => {
                self.check_state(&key, **new, history);
                let received = self.known.insert(key, **new);
                let may_skip_states = self.coalesce_drops_old && old.ptr_eq(new) && received.is_some();
                assert!(may_skip_states || received == Some(**old), "I4: {event:?} after {received:?}");
            }
            Event::Released(object) => {
                let received = self.known.remove(&key);
                let may_skip_states = self.coalesce_drops_old && received < Some(**object);
                assert!(
                    received.is_some() && (may_skip_states || received == Some(**object)),
                    "I4: {event:?} after {received:?}"
                );
                self.released.insert(key);
            }
            Event::Resynced(object) => {
                assert!(self.wants_resyncs);
                assert_eq!(self.known.get(&key), Some(&**object), "{event:?} of another state");
            }
            Event::Deleted(deleted) => {
                let received = self.known.remove(&key);
                let previous = deleted.previous().map(|previous| **previous);
                let may_skip_states = self.coalesce_drops_old && received.is_some() && previous > received;
                assert!(may_skip_states || received == previous, "I4: {event:?} after {received:?}");
                let last = **deleted.last_known().expect("the reader received the object");
                if Some(last) != received && deleted.is_exact() {
                    self.check_state(&key, last, history);
                }
            }
        }
        assert!(self.replay.is_empty() || replayed.is_some(), "I5: {event:?} before the replay has ended");
        true
    }

    /// Checks I1: a received state existed, and is newer than all earlier states of its key.
    fn check_state(&mut self, key: &ObjectKey, value: u64, history: &BTreeSet<(ObjectKey, u64)>) {
        assert!(history.contains(&(key.clone(), value)), "{key} never had the value {value}");
        let before = self.newest.insert(key.clone(), value);
        let is_again = self.released.remove(key) && before == Some(value);
        assert!(is_again || before.is_none_or(|before| before < value), "{key} goes back to {value}");
    }

    fn check(&self, list_complete: bool, readers: usize) {
        let stats = self.stream.registration().stats();
        if let Some(threshold) = self.threshold {
            // I11: the backlog is bounded by the threshold, one batch, and one event per key (two
            // for an object that was removed and added again) in each section of the shared
            // backlog. Each reader can require one more section.
            let limit = threshold + self.largest_batch + 2 * usize::from(NAMES) * (readers + 2);
            assert!(stats.pending <= limit, "{stats:?} with a limit of {limit}");
        }
        if self.stream.registration().has_synced() {
            // I6: a synced reader has received all objects of its replay.
            assert!(list_complete && self.replay.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]
    #[test]
    fn i1_every_reader_ends_with_the_true_state(steps in prop::collection::vec(step(), 1..100)) {
        let clock = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        clock.expect("a runtime").block_on(async {
            let mut world = World::new();
            world.join(Some(5), true, false);
            for step in steps {
                world.run(step).await;
            }
            let truth: BTreeMap<_, _> = world.truth.iter().map(|(key, object)| (key.clone(), **object)).collect();
            for reader in &mut world.readers {
                while reader.read(&world.history) {}
                assert_eq!(reader.known, truth);
                assert!(reader.replay.is_empty());
                let registration = reader.stream.registration();
                assert_eq!(registration.stats().pending, 0);
                assert_eq!(registration.has_synced(), world.list_complete);
                assert_eq!(registration.waiting_for().is_none(), world.list_complete);
            }
        });
    }
}

/// Returns the number of random histories to try: the variable `INFORMER_CASES`, or 2,000.
fn cases() -> u32 {
    std::env::var("INFORMER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}
