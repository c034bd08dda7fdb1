//! Parked keys wait until the caches have their writes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use informer_controller::{ControllerRunner, Priority, ReconcileRequest, Reconciled, WriteTracker};
use informer_factory::{InformerOptions, ObjectKey, SharedIndexInformer};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep};

use super::{Controller, ms, queue, settled, soon, watched};
use crate::{Running, config_map, create, key, source};

#[tokio::test(start_paused = true)]
async fn i9_key_waits_for_its_write_without_delaying_others() {
    let (source, running, runner) = watched().await;
    let children = crate::source();
    let of_children = Running::start(&children, InformerOptions::new()).synced().await;
    let (sender, mut receiver) = unbounded_channel();
    // The controller has one worker.
    let controller = Controller::start(runner, {
        let (children, informer) = (children.clone(), of_children.informer.clone());
        move |request: ReconcileRequest| {
            let (name, child) = (request.key().name(), request.key());
            _ = sender.send((name.to_owned(), informer.get(child).is_some()));
            if name == "a" && children.get(child).is_none() {
                let written = children.create_unseen(config_map(name, "")).expect("a new object");
                request.writes().wrote(&informer, &*written);
            }
            std::future::ready(Ok::<_, Infallible>(Reconciled::Done))
        }
    });
    create(&source, "a", "1");
    assert_eq!(soon(receiver.recv()).await, Some(("a".to_owned(), false)));
    settled().await;
    crate::update(&source, "a", "2");
    create(&source, "b", "1");
    assert_eq!(soon(receiver.recv()).await, Some(("b".to_owned(), false)));
    settled().await;
    let stats = controller.monitor.stats();
    assert_eq!((stats.parked, stats.parked_now, stats.active), (1, 1, 0));
    let parked = controller.monitor.parked_keys();
    assert!(matches!(&parked[..], [one] if one.key == format!("{:?}", key("a"))), "{parked:?}");
    // The watch has missed the write, so only a list delivers it.
    children.expire();
    children.disconnect();
    assert_eq!(soon(receiver.recv()).await, Some(("a".to_owned(), true)));
    settled().await;
    let stats = controller.monitor.stats();
    assert_eq!((stats.parked_now, stats.parked_timed_out, stats.succeeded), (0, 0, 3));
    assert!(controller.monitor.parked_keys().is_empty());
    controller.stop().await;
    of_children.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait_and_is_counted() {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let queue = queue();
    let tracker = WriteTracker::with_deadline(Duration::from_secs(5));
    let runner = ControllerRunner::new(queue.clone()).write_tracker(tracker.clone());
    let (sender, mut receiver) = unbounded_channel();
    let controller = Controller::start(runner, {
        let (source, informer) = (source.clone(), running.informer.clone());
        move |request: ReconcileRequest| {
            _ = sender.send(Instant::now());
            let name = format!("new-{}", source.resource_version());
            let written = source.create_unseen(config_map(&name, "")).expect("a new object");
            request.writes().wrote(&informer, &*written);
            std::future::ready(Ok::<_, Infallible>(Reconciled::Done))
        }
    });
    queue.add(key("a"));
    let first = soon(receiver.recv()).await.expect("the function is called");
    queue.add(key("a"));
    let second = soon(receiver.recv()).await.expect("the function is called");
    assert!(second - first >= Duration::from_secs(5) && second - first < Duration::from_secs(6));
    assert_eq!((controller.monitor.stats().parked_timed_out, tracker.timed_out()), (1, 1));
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn write_of_dropped_call_parks_key_until_deadline() {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let queue = queue();
    let runner = ControllerRunner::new(queue.clone())
        .reconcile_timeout(ms(300))
        .write_tracker(WriteTracker::with_deadline(Duration::from_secs(8)));
    let (sender, mut receiver) = unbounded_channel();
    let controller = Controller::start(runner, {
        let informer = running.informer.clone();
        move |request: ReconcileRequest| {
            let (sender, informer) = (sender.clone(), informer.clone());
            async move {
                _ = sender.send(Instant::now());
                let answer =
                    std::future::pending::<Result<k8s_openapi::api::core::v1::ConfigMap, kube::Error>>();
                request
                    .writes()
                    .track(&informer, &config_map("child", "1"), answer)
                    .await
                    .map(|_| Reconciled::Done)
            }
        }
    });
    queue.add(key("a"));
    let first = soon(receiver.recv()).await.expect("the function is called");
    let second = soon(receiver.recv()).await.expect("the function is called");
    let wait = second - first;
    assert!(wait >= ms(8_300) && wait < ms(8_400), "{wait:?}");
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn parked_key_does_not_delay_shutdown() {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let (queue, tracker) = (queue(), WriteTracker::new());
    let written = source.create_unseen(config_map("new", "")).expect("a new object");
    tracker.of(&key("a")).wrote(&running.informer, &*written);
    let (reconcile, mut called) = super::done();
    let runner = ControllerRunner::new(queue.clone()).write_tracker(tracker);
    let controller = Controller::start(runner, reconcile);
    queue.add(key("a"));
    settled().await;
    let (monitor, begun) = (controller.monitor.clone(), Instant::now());
    assert_eq!(monitor.stats().parked_now, 1);
    controller.stop().await;
    assert_eq!((begun.elapsed(), monitor.stats().parked_now), (Duration::ZERO, 0));
    assert!(called.rest().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn parked_key_keeps_its_failures() {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let queue = queue();
    let (sender, mut receiver) = unbounded_channel();
    let controller = Controller::start(ControllerRunner::new(queue.clone()), {
        let (source, informer) = (source.clone(), running.informer.clone());
        move |request: ReconcileRequest| {
            _ = sender.send(request.failures());
            let new = config_map(&format!("w-{}", request.failures()), "");
            let written = source.create_unseen(new).expect("a new object");
            request.writes().wrote(&informer, &*written);
            std::future::ready(Err::<Reconciled, _>("test failure"))
        }
    });
    queue.add(key("a"));
    for failures in 0..3 {
        assert_eq!(soon(receiver.recv()).await, Some(failures));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(controller.monitor.stats().parked_now, 1);
        source.bookmark();
    }
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn parked_key_returns_with_its_highest_priority() {
    for (again, order) in [(None, ["free", "parked"]), (Some(Priority::High), ["parked", "free"])] {
        let source = source();
        let running = Running::start(&source, InformerOptions::new()).synced().await;
        let (queue, tracker) = (queue(), WriteTracker::new());
        let written = source.create_unseen(config_map("new", "")).expect("a new object");
        tracker.of(&key("parked")).wrote(&running.informer, &*written);
        let (sender, mut receiver) = unbounded_channel();
        let runner = ControllerRunner::new(queue.clone()).write_tracker(tracker);
        let controller = Controller::start(runner, move |request: ReconcileRequest| {
            _ = sender.send(request.key().name().to_owned());
            async {
                sleep(Duration::from_secs(2)).await;
                Ok::<_, Infallible>(Reconciled::Done)
            }
        });
        queue.add_with_priority(key("parked"), Priority::Low);
        settled().await;
        again.into_iter().for_each(|again| queue.add_with_priority(key("parked"), again));
        settled().await;
        // The worker is busy while the other keys become ready.
        queue.add(key("busy"));
        settled().await;
        queue.add(key("free"));
        source.bookmark();
        settled().await;
        assert_eq!(controller.monitor.stats().parked_now, 0);
        for name in ["busy", order[0], order[1]] {
            assert_eq!(soon(receiver.recv()).await.as_deref(), Some(name), "{again:?}");
        }
        controller.stop().await;
        running.stop().await;
    }
}

/// Records the changes of keys and the reconcile calls in a test.
#[derive(Default)]
struct Ledger {
    /// The number of changes of each key.
    changed: HashMap<ObjectKey, u32>,
    /// For each key, the number of its changes at the start of its last successful call.
    seen: HashMap<ObjectKey, u32>,
    /// The keys of the calls in flight.
    in_flight: Vec<ObjectKey>,
}

/// A controller whose calls fail at random, and whose cache receives some writes late.
struct FaultyController {
    source: MemorySource<ConfigMap>,
    informer: SharedIndexInformer<ConfigMap>,
    tracker: WriteTracker<ObjectKey>,
    ledger: Mutex<Ledger>,
    dice: Mutex<fastrand::Rng>,
}

impl FaultyController {
    async fn reconcile(self: Arc<Self>, request: ReconcileRequest) -> Result<Reconciled, &'static str> {
        let key = request.key();
        let begun = {
            let mut ledger = self.ledger.lock();
            assert!(!ledger.in_flight.contains(key), "{key} has two workers");
            ledger.in_flight.push(key.clone());
            ledger.changed.get(key).copied().unwrap_or_default()
        };
        let _in_flight = InFlight(&self.ledger, key);
        assert!(self.tracker.of(key).is_ready(), "{key} should be parked");
        let (pause, luck) = {
            let mut dice = self.dice.lock();
            (dice.u64(0..250), dice.u32(0..10))
        };
        if luck < 6 {
            let new = config_map(&format!("w-{}", self.source.resource_version()), "");
            let written = if luck < 3 { self.source.create_unseen(new) } else { self.source.create(new) };
            request.writes().wrote(&self.informer, &*written.expect("a new object"));
        }
        sleep(ms(pause)).await;
        match luck {
            7 => return Err("test failure"),
            8 => panic!("test panic"),
            9 => drop(request.writes().begin()),
            _ => {}
        }
        self.ledger.lock().seen.insert(key.clone(), begun);
        Ok(Reconciled::Done)
    }
}

/// Removes a key from the list of calls in flight when dropped.
struct InFlight<'a>(&'a Mutex<Ledger>, &'a ObjectKey);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.lock().in_flight.retain(|key| key != self.1);
    }
}

/// Changes keys while calls fail and caches lag at random. Checks that a successful call follows
/// each change.
async fn run_with_random_faults(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let (queue, tracker) = (queue(), WriteTracker::with_deadline(Duration::from_secs(2)));
    let faulty = Arc::new(FaultyController {
        source: source.clone(),
        informer: running.informer.clone(),
        tracker: tracker.clone(),
        ledger: Mutex::default(),
        dice: Mutex::new(random.fork()),
    });
    let runner =
        ControllerRunner::new(queue.clone()).workers(3).reconcile_timeout(ms(200)).write_tracker(tracker);
    let calls = Arc::clone(&faulty);
    let controller = Controller::start(runner, move |request| Arc::clone(&calls).reconcile(request));
    for _ in 0..60 {
        let key = key(&random.u32(0..8).to_string());
        *faulty.ledger.lock().changed.entry(key.clone()).or_default() += 1;
        queue.add(key);
        if random.u32(0..4) == 0 {
            source.bookmark();
        }
        sleep(ms(random.u64(0..80))).await;
    }
    // Wait until the last failure has been retried.
    sleep(Duration::from_secs(600)).await;
    let stats = controller.monitor.stats();
    controller.stop().await;
    running.stop().await;
    let ledger = faulty.ledger.lock();
    assert_eq!(ledger.seen, ledger.changed, "seed {seed}: a change was lost");
    assert!(stats.parked > 0 && stats.failed > 0, "seed {seed} has no parked or failed key: {stats:?}");
}

#[tokio::test(start_paused = true)]
async fn each_change_is_followed_by_a_successful_call() {
    for seed in 0..30 {
        run_with_random_faults(seed).await;
    }
}

/// Runs on several threads: workers take keys from the queue while parked keys are queued again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_workers_never_share_a_key_and_miss_no_change() {
    const KEYS: u32 = 20;
    const CHANGES: u32 = 4_000;
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let (queue, ledger) = (queue(), Arc::new(Mutex::new(Ledger::default())));
    let progress = Arc::new(Notify::new());
    let runner = ControllerRunner::new(queue.clone()).workers(8);
    let controller = Controller::start(runner, {
        let (source, informer) = (source.clone(), running.informer.clone());
        let (ledger, progress) = (Arc::clone(&ledger), Arc::clone(&progress));
        move |request: ReconcileRequest| {
            let (source, informer) = (source.clone(), informer.clone());
            let (ledger, progress) = (Arc::clone(&ledger), Arc::clone(&progress));
            async move {
                let key = request.key().clone();
                let begun = {
                    let mut ledger = ledger.lock();
                    assert!(!ledger.in_flight.contains(&key), "{key} has two workers");
                    ledger.in_flight.push(key.clone());
                    ledger.changed[&key]
                };
                tokio::task::yield_now().await;
                let new = config_map(&format!("{}-{begun}", key.name()), "");
                if let Ok(written) = source.create(new) {
                    request.writes().wrote(&informer, &*written);
                }
                let mut ledger = ledger.lock();
                ledger.in_flight.retain(|other| *other != key);
                ledger.seen.insert(key, begun);
                progress.notify_one();
                Ok::<_, Infallible>(Reconciled::Done)
            }
        }
    });
    let mut random = fastrand::Rng::with_seed(1);
    soon(async {
        for change in 0..CHANGES {
            let key = key(&random.u32(0..KEYS).to_string());
            *ledger.lock().changed.entry(key.clone()).or_default() += 1;
            queue.add(key);
            if change % 5 == 0 {
                progress.notified().await;
            }
        }
        let is_done = || {
            let ledger = ledger.lock();
            ledger.seen == ledger.changed
        };
        while !is_done() {
            progress.notified().await;
        }
    })
    .await;
    let stats = controller.monitor.stats();
    assert_eq!((stats.panicked, stats.parked_timed_out), (0, 0), "{stats:?}");
    assert!(stats.parked > 0, "no key was parked: {stats:?}");
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn key_of_write_answered_500_is_retried_without_the_deadline() {
    let (warnings, _logging) = crate::log::Log::keep(tracing::Level::WARN);
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let queue = queue();
    let (sender, mut receiver) = unbounded_channel();
    let controller = Controller::start(ControllerRunner::new(queue.clone()), {
        let informer = running.informer.clone();
        move |request: ReconcileRequest| {
            let (sender, informer) = (sender.clone(), informer.clone());
            async move {
                _ = sender.send(Instant::now());
                let status = kube::core::Status { code: 500, ..Default::default() };
                let answer = async { Err::<ConfigMap, _>(kube::Error::Api(Box::new(status))) };
                let written = request.writes().track(&informer, &config_map("child", "1"), answer).await;
                written.map(|_| Reconciled::Done)
            }
        }
    });
    queue.add(key("a"));
    let first = soon(receiver.recv()).await.expect("the function is called");
    let second = soon(receiver.recv()).await.expect("the function is called");
    assert_eq!(second - first, ms(100), "the rate limiter must determine the delay");
    let line = warnings.with("call failed").remove(0);
    assert!(line.contains("retry_in=100ms") && line.contains("reading its object"), "{line}");
    controller.stop().await;
    running.stop().await;
}
