//! Compares the queue with a naive model, with and without groups. Random histories contain adds,
//! delays, takes, all ends of an item, advances of the clock and a shutdown. The queue and the
//! model must agree on the taken keys, their priorities and the remaining keys.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use futures::FutureExt;
use informer_workqueue::{Item, ItemExponential, Priority, Workqueue};
use proptest::prelude::*;
use tokio::time::advance;

/// A key of the queue. The first number is the key's group in a fair queue.
type Key = (u8, u8);

const PRIORITIES: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// The number of times in a row that a priority can be passed over before its next key is taken.
/// Must equal `MAX_PASSED` in `src/lanes.rs`.
const MAX_PASSED: usize = 10;

/// The longest wait of a retry, in milliseconds.
const MAX_WAIT: u64 = 40;

#[derive(Debug, Clone)]
enum Step {
    Add(Key, Priority),
    AddAll([Key; 2], Priority),
    AddAfter(Key, u64, Priority),
    AddRateLimited(Key),
    Take,
    /// Ends one of the taken items, which the number selects.
    End(usize, End),
    Advance(u64),
    ShutDown,
}

#[derive(Debug, Clone)]
enum End {
    Done,
    DoneAfter(u64),
    Retry,
    Release,
    Dropped,
}

/// Decodes a step from a random number. A proptest strategy per step would be slower than the test
/// itself.
fn step(mut number: u64) -> Step {
    let mut pick = |among: u64| {
        let picked = number % among;
        number /= among;
        picked
    };
    let kind = pick(50);
    let key = (pick(3) as u8, pick(5) as u8);
    let priority = PRIORITIES[pick(3) as usize];
    let ms = pick(30);
    match kind {
        0..10 => Step::Add(key, priority),
        10..12 => Step::AddAll([key, (pick(3) as u8, pick(5) as u8)], priority),
        12..18 => Step::AddAfter(key, ms, priority),
        18..20 => Step::AddRateLimited(key),
        20..36 => Step::Take,
        36..44 => {
            let end = match pick(8) {
                0 => End::DoneAfter(ms),
                1 => End::Dropped,
                2..4 => End::Retry,
                4 => End::Release,
                _ => End::Done,
            };
            Step::End(pick(100) as usize, end)
        }
        _ => Step::Advance(1 + ms),
    }
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let steps = |size: Range<usize>| prop::collection::vec(any::<u64>().prop_map(step), size);
    let (until, after) = (steps(1..150), steps(0..30));
    (until, after).prop_map(|(mut steps, after)| {
        steps.push(Step::ShutDown);
        steps.extend(after);
        steps
    })
}

/// The queue in its simplest form: vectors with linear search.
#[derive(Default)]
struct Model {
    is_fair: bool,
    is_shut_down: bool,
    now: u64,
    /// The queued keys of each priority, in the order of the groups' turns.
    waiting: [Vec<(u8, Vec<Key>)>; 3],
    passed: [usize; 3],
    /// Keys that workers have. For a key that was added meanwhile, the value is the priority with
    /// which the key will be queued again.
    running: BTreeMap<Key, Option<usize>>,
    /// The delayed keys. Each entry is the time at which the key is due, a sequence number, the key
    /// and its priority.
    delayed: Vec<(u64, usize, Key, usize)>,
    delays: usize,
    failures: BTreeMap<Key, u32>,
}

impl Model {
    fn group(&self, key: Key) -> u8 {
        if self.is_fair { key.0 } else { 0 }
    }

    fn enqueue(&mut self, key: Key, level: usize) {
        let group = self.group(key);
        let lane = &mut self.waiting[level];
        if lane.is_empty() {
            self.passed[level] = 0;
        }
        match lane.iter_mut().find(|(other, _)| *other == group) {
            Some((_, keys)) => keys.push(key),
            None => lane.push((group, vec![key])),
        }
    }

    fn level_of(&self, key: Key) -> Option<usize> {
        (0..3).find(|level| self.waiting[*level].iter().any(|(_, keys)| keys.contains(&key)))
    }

    fn add(&mut self, key: Key, level: usize) {
        if let Some(again) = self.running.get_mut(&key) {
            *again = Some(again.map_or(level, |before| before.max(level)));
            return;
        }
        match self.level_of(key) {
            Some(before) if before >= level => {}
            Some(before) => {
                self.waiting[before].iter_mut().for_each(|(_, keys)| keys.retain(|other| *other != key));
                self.waiting[before].retain(|(_, keys)| !keys.is_empty());
                self.enqueue(key, level);
            }
            None => self.enqueue(key, level),
        }
    }

    fn add_after(&mut self, key: Key, delay: u64, level: usize) {
        if delay == 0 {
            return self.add(key, level);
        }
        let at = self.now + delay;
        self.delays += 1;
        match self.delayed.iter_mut().find(|delayed| delayed.2 == key) {
            Some(delayed) => {
                delayed.3 = delayed.3.max(level);
                if at < delayed.0 {
                    (delayed.0, delayed.1) = (at, self.delays);
                }
            }
            None => self.delayed.push((at, self.delays, key, level)),
        }
    }

    fn rate_limited(&mut self, key: Key) -> u64 {
        let failures = self.failures.entry(key).or_default();
        *failures += 1;
        (1 << (*failures - 1).min(20)).min(MAX_WAIT)
    }

    /// Adds the delayed keys whose delay is over.
    fn catch_up(&mut self) {
        self.delayed.sort_unstable();
        while self.delayed.first().is_some_and(|delayed| delayed.0 <= self.now) {
            let (_, _, key, level) = self.delayed.remove(0);
            self.add(key, level);
        }
    }

    fn take(&mut self) -> Option<(Key, usize)> {
        let waiting = |level: &usize| !self.waiting[*level].is_empty();
        let starving = (0..3).find(|level| waiting(level) && self.passed[*level] >= MAX_PASSED);
        let level = starving.or_else(|| (0..3).rev().find(waiting))?;
        let lane = &mut self.waiting[level];
        let (group, mut keys) = lane.remove(0);
        let key = keys.remove(0);
        if !keys.is_empty() {
            lane.push((group, keys));
        }
        for other in 0..3 {
            let is_passed = other != level && !self.waiting[other].is_empty();
            self.passed[other] = if is_passed { self.passed[other] + 1 } else { 0 };
        }
        self.running.insert(key, None);
        Some((key, level))
    }

    fn end(&mut self, key: Key, level: usize, end: &End) {
        let again = self.running.remove(&key).expect("a worker has the key");
        if let Some(again) = again {
            self.enqueue(key, again);
        }
        let delay = match end {
            End::Done | End::DoneAfter(_) => {
                self.failures.remove(&key);
                if let End::DoneAfter(delay) = end { Some(*delay) } else { None }
            }
            End::Retry | End::Dropped => Some(self.rate_limited(key)),
            End::Release => None,
        };
        if let Some(delay) = delay.filter(|_| !self.is_shut_down) {
            self.add_after(key, delay, level);
        }
    }

    fn len(&self) -> usize {
        self.waiting.iter().flatten().map(|(_, keys)| keys.len()).sum()
    }
}

/// The queue, its model, and the taken items.
struct World {
    queue: Workqueue<Key>,
    model: Model,
    items: Vec<Item<Key>>,
    dropped: u64,
}

impl World {
    fn new(is_fair: bool) -> Self {
        let limiter = ItemExponential::new(Duration::from_millis(1), Duration::from_millis(MAX_WAIT));
        let builder = Workqueue::builder().rate_limiter(limiter);
        let builder = if is_fair { builder.fair_by(|key: &Key| &key.0) } else { builder };
        let model = Model { is_fair, ..Model::default() };
        Self { queue: builder.build(), model, items: Vec::new(), dropped: 0 }
    }

    async fn run(&mut self, step: Step) {
        match step {
            Step::Advance(ms) => {
                advance(Duration::from_millis(ms)).await;
                self.model.now += ms;
            }
            Step::Take => self.take(),
            Step::End(index, end) if !self.items.is_empty() => {
                let item = self.items.remove(index % self.items.len());
                self.end(item, &end);
            }
            Step::End(..) => {}
            Step::ShutDown => {
                self.queue.shut_down();
                self.model.is_shut_down = true;
                self.model.delayed.clear();
            }
            Step::Add(key, priority) => {
                self.queue.add_with_priority(key, priority);
                if !self.model.is_shut_down {
                    self.model.add(key, priority as usize);
                }
            }
            Step::AddAll(keys, priority) => {
                self.queue.add_all(keys, priority);
                if !self.model.is_shut_down {
                    keys.into_iter().for_each(|key| self.model.add(key, priority as usize));
                }
            }
            Step::AddAfter(key, ms, priority) => {
                self.queue.add_after_with_priority(key, Duration::from_millis(ms), priority);
                if !self.model.is_shut_down {
                    self.model.add_after(key, ms, priority as usize);
                }
            }
            Step::AddRateLimited(key) => {
                let delay = self.model.rate_limited(key);
                assert_eq!(self.queue.add_rate_limited(key), Duration::from_millis(delay));
                if !self.model.is_shut_down {
                    self.model.add_after(key, delay, Priority::Normal as usize);
                }
            }
        }
    }

    fn take(&mut self) {
        self.model.catch_up();
        let expected = self.model.take().map(|(key, level)| (key, PRIORITIES[level]));
        match tokio::task::unconstrained(self.queue.get()).now_or_never() {
            Some(Some(item)) => {
                assert_eq!(Some((*item.key(), item.priority())), expected);
                let is_alone = self.items.iter().all(|other| other.key() != item.key());
                assert!(is_alone, "two workers have {:?}", item.key());
                self.items.push(item);
            }
            Some(None) => assert!(expected.is_none() && self.model.is_shut_down),
            None => assert!(expected.is_none() && !self.model.is_shut_down),
        }
    }

    fn end(&mut self, item: Item<Key>, end: &End) {
        self.model.end(*item.key(), item.priority() as usize, end);
        match end {
            End::Done => item.done(),
            End::DoneAfter(ms) => item.done_after(Duration::from_millis(*ms)),
            End::Retry => _ = item.retry(),
            End::Release => item.release(),
            End::Dropped => {
                self.dropped += 1;
                drop(item);
            }
        }
    }

    fn compare(&self) {
        for (key, times) in &self.model.failures {
            assert_eq!(self.queue.num_requeues(key), *times, "{key:?}");
        }
        assert_eq!(self.queue.abandoned(), self.dropped);
    }

    /// Compares the numbers of queued and delayed keys with the model. Reading them also queues the
    /// keys whose delay is over. If the test did this after each step, the other operations would
    /// never have to queue such keys.
    fn compare_lengths(&mut self) {
        self.model.catch_up();
        assert_eq!(self.queue.len(), self.model.len());
        assert_eq!(self.queue.delayed(), self.model.delayed.len());
    }
}

async fn run_history(steps: Vec<Step>, is_fair: bool) {
    let mut world = World::new(is_fair);
    for (number, step) in steps.into_iter().enumerate() {
        world.run(step).await;
        world.compare();
        if number % 3 == 0 {
            world.compare_lengths();
        }
    }
    // Takes all remaining keys.
    while !world.items.is_empty() || !world.queue.is_empty() {
        world.take();
        let item = world.items.remove(0);
        world.end(item, &End::Done);
    }
    world.take();
    world.compare_lengths();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]
    #[test]
    fn queue_behaves_like_the_naive_model(steps in history(), is_fair in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(run_history(steps, is_fair));
    }
}

/// Returns the number of random histories to try: the variable `INFORMER_CASES`, or 4,000.
fn cases() -> u32 {
    std::env::var("INFORMER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4_000)
}
