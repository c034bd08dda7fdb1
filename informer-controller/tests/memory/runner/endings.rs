//! The outcomes of calls: success, failure, panic, timeout and requeue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use informer_controller::{ControllerRunner, ReconcileRequest, Reconciled, RunnerStats, Workqueue};
use informer_factory::ObjectKey;
use informer_workqueue::ItemFastSlow;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::{Barrier, Notify};
use tokio::time::{Instant, sleep};

use super::{Controller, ms, queue, settled, soon, watched};
use crate::{create, key};

/// How a reconcile call fails.
#[derive(Debug, Clone, Copy)]
enum How {
    Error,
    /// Panics before it returns a future.
    Panic,
    /// Panics in the future, after an await.
    PanicLater,
    /// Panics with a payload that panics when it is dropped.
    HostilePanic,
    /// Never completes.
    Hang,
}

struct HostilePayload;

impl Drop for HostilePayload {
    fn drop(&mut self) {
        std::panic::panic_any(Self);
    }
}

/// Runs a reconcile function that fails three times. Returns the statistics, and for each call the
/// time since the last call and the key's number of failures.
async fn fails_three_times(how: How) -> (RunnerStats, Vec<(Duration, u32)>) {
    let (source, running, runner) = watched().await;
    let (sender, mut receiver) = unbounded_channel();
    let runner = runner.reconcile_timeout(Duration::from_secs(1));
    let controller = Controller::start(runner, move |request: ReconcileRequest| {
        let failures = request.failures();
        sender.send((Instant::now(), failures)).expect("the receiver exists");
        assert!(failures == 3 || !matches!(how, How::Panic), "test panic before the future is created");
        async move {
            match how {
                _ if failures == 3 => return Ok(Reconciled::Done),
                How::Error => return Err("refused"),
                How::Hang => std::future::pending().await,
                How::HostilePanic => std::panic::panic_any(HostilePayload),
                How::Panic | How::PanicLater => tokio::task::yield_now().await,
            }
            panic!("test panic after an await");
        }
    });
    create(&source, "a", "1");
    let mut calls = Vec::new();
    let mut last = Instant::now();
    for _ in 0..4 {
        let (at, failures) = soon(receiver.recv()).await.expect("the controller runs");
        calls.push((at - last, failures));
        last = at;
    }
    settled().await;
    let stats = controller.monitor.stats();
    crate::update(&source, "a", "2");
    let again = soon(receiver.recv()).await.map(|(_, failures)| failures);
    assert_eq!(again, Some(0), "{how:?}: success must reset the failures");
    controller.stop().await;
    running.stop().await;
    (stats, calls)
}

#[tokio::test(start_paused = true)]
async fn failed_or_panicked_call_is_retried_with_backoff() {
    for how in [How::Error, How::Panic, How::PanicLater, How::HostilePanic] {
        let (stats, calls) = fails_three_times(how).await;
        let waits: Vec<_> = calls.iter().skip(1).map(|(wait, _)| wait.as_millis()).collect();
        assert_eq!(waits, [100, 200, 400], "{how:?}");
        assert_eq!(calls.iter().map(|(_, failures)| *failures).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let expected = if matches!(how, How::Error) { (3, 0) } else { (0, 3) };
        assert_eq!((stats.failed, stats.panicked), expected, "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn key_that_is_never_retried_does_not_end_the_controller() {
    let limiter = ItemFastSlow::new(Duration::MAX, Duration::MAX, 0);
    let queue = Workqueue::<ObjectKey>::builder().rate_limiter(limiter).build();
    let controller = Controller::start(ControllerRunner::new(queue.clone()), |_| {
        std::future::ready(Err::<Reconciled, _>("refused"))
    });
    queue.add(key("a"));
    settled().await;
    queue.add(key("b"));
    settled().await;
    assert_eq!(controller.monitor.stats().failed, 2);
    assert!(controller.monitor.failed_keys().iter().all(|failed| failed.retry_at > failed.at));
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn call_that_times_out_is_dropped_and_retried() {
    let (stats, calls) = fails_three_times(How::Hang).await;
    let waits: Vec<_> = calls.iter().skip(1).map(|(wait, _)| wait.as_millis()).collect();
    assert_eq!(waits, [1_100, 1_200, 1_400]);
    assert_eq!((stats.timed_out, stats.failed, stats.longest), (3, 0, Duration::from_secs(1)));
}

#[tokio::test(start_paused = true)]
async fn requeued_key_returns_after_the_requested_delay() {
    let (source, running, runner) = watched().await;
    let (sender, mut receiver) = unbounded_channel();
    let controller = Controller::start(runner, move |_| {
        _ = sender.send(Instant::now());
        std::future::ready(Ok::<_, String>(Reconciled::RequeueAfter(Duration::from_secs(60))))
    });
    create(&source, "a", "1");
    let first = soon(receiver.recv()).await.expect("the controller runs");
    let second = soon(receiver.recv()).await.expect("the controller runs");
    assert_eq!(second - first, Duration::from_secs(60));
    settled().await;
    let stats = controller.monitor.stats();
    assert_eq!((stats.succeeded, stats.requeued), (2, 2));
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn keys_are_processed_by_all_workers_in_parallel() {
    let (source, running, runner) = watched().await;
    let meeting = Arc::new(Barrier::new(3));
    let (sender, mut receiver) = unbounded_channel();
    let controller = Controller::start(runner.workers(3), move |_| {
        let (meeting, sender) = (Arc::clone(&meeting), sender.clone());
        async move {
            // The barrier opens when all workers have arrived.
            meeting.wait().await;
            _ = sender.send(());
            Ok::<_, String>(Reconciled::Done)
        }
    });
    for name in ["a", "b", "c"] {
        create(&source, name, "1");
    }
    for _ in 0..3 {
        soon(receiver.recv()).await.expect("the controller runs");
    }
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changed_key_is_called_again_but_never_concurrently() {
    let (source, running, runner) = watched().await;
    let (running_calls, go_on) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
    let (sender, mut receiver) = unbounded_channel();
    let controller = Controller::start(runner.workers(4), {
        let go_on = Arc::clone(&go_on);
        move |_| {
            let (running_calls, go_on, sender) =
                (Arc::clone(&running_calls), Arc::clone(&go_on), sender.clone());
            async move {
                assert_eq!(running_calls.fetch_add(1, Ordering::SeqCst), 0, "another worker has the key");
                _ = sender.send(());
                go_on.notified().await;
                running_calls.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, String>(Reconciled::Done)
            }
        }
    });
    create(&source, "a", "1");
    soon(receiver.recv()).await.expect("the controller runs");
    for value in ["2", "3"] {
        running.reach(&crate::update(&source, "a", value)).await;
    }
    settled().await;
    assert!(receiver.try_recv().is_err());
    go_on.notify_one();
    soon(receiver.recv()).await.expect("the controller runs");
    go_on.notify_one();
    settled().await;
    assert!(receiver.try_recv().is_err(), "all changes during the first call must lead to one call");
    assert_eq!((controller.monitor.stats().panicked, controller.monitor.stats().succeeded), (0, 2));
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stats_report_calls_in_flight_and_their_duration() {
    let queue = queue();
    let controller =
        Controller::start(ControllerRunner::new(queue.clone()).workers(2), |request| async move {
            sleep(Duration::from_secs(if request.key().name() == "a" { 3 } else { 5 })).await;
            Ok::<_, String>(Reconciled::Done)
        });
    queue.add(key("a"));
    queue.add(key("b"));
    sleep(ms(2_000)).await;
    let stats = controller.monitor.stats();
    assert_eq!((stats.active, stats.longest_active, stats.longest), (2, ms(2_000), Duration::ZERO));
    sleep(ms(2_000)).await;
    let stats = controller.monitor.stats();
    assert_eq!((stats.active, stats.longest_active, stats.longest), (1, ms(4_000), ms(3_000)));
    controller.stop().await;
}

/// An error whose `Display` panics.
#[derive(Debug)]
struct PanicsInDisplay;

impl std::fmt::Display for PanicsInDisplay {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("test panic")
    }
}

impl std::error::Error for PanicsInDisplay {}

#[tokio::test(start_paused = true)]
async fn error_that_panics_in_display_counts_as_panic() {
    let (source, running, runner) = watched().await;
    let (sender, mut receiver) = unbounded_channel();
    let controller = Controller::start(runner, move |request: ReconcileRequest| {
        _ = sender.send(request.failures());
        std::future::ready(if request.failures() == 0 { Err(PanicsInDisplay) } else { Ok(Reconciled::Done) })
    });
    create(&source, "a", "1");
    assert_eq!((soon(receiver.recv()).await, soon(receiver.recv()).await), (Some(0), Some(1)));
    settled().await;
    assert_eq!((controller.monitor.stats().panicked, controller.monitor.stats().succeeded), (1, 1));
    controller.stop().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_key_is_listed_until_a_call_succeeds() {
    let (source, running, runner) = watched().await;
    let (sender, mut receiver) = unbounded_channel();
    let controller = Controller::start(runner, move |request: ReconcileRequest| {
        _ = sender.send(request.failures());
        let is_fixed = request.failures() == 2;
        std::future::ready(if is_fixed { Ok(Reconciled::Done) } else { Err("refused") })
    });
    create(&source, "a", "1");
    assert_eq!((soon(receiver.recv()).await, soon(receiver.recv()).await), (Some(0), Some(1)));
    let failed = controller.monitor.failed_keys();
    let [first] = &failed[..] else { panic!("expected one failed key: {failed:?}") };
    let key = format!("{:?}", key("a"));
    assert_eq!((&first.key, first.failure.as_str(), first.failures), (&key, "failed: refused", 2));
    assert!(first.retry_at > first.at);
    assert_eq!(soon(receiver.recv()).await, Some(2));
    settled().await;
    assert!(controller.monitor.failed_keys().is_empty());
    assert_eq!(controller.monitor.queued(), 0);
    controller.stop().await;
    running.stop().await;
}
