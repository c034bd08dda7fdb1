//! Resyncs: the handlers that receive them, and their periods.

use tokio::sync::mpsc::UnboundedReceiver;

use super::*;

fn every(seconds: u64) -> HandlerOptions {
    HandlerOptions::new().resync(Resync::Every(Duration::from_secs(seconds)))
}

fn never() -> HandlerOptions {
    HandlerOptions::new().resync(Resync::Never)
}

/// Runs all tasks, and returns the events that the handler has received since the last call.
async fn received_now(received: &mut UnboundedReceiver<String>) -> Vec<String> {
    tokio::task::yield_now().await;
    std::iter::from_fn(|| received.try_recv().ok()).collect()
}

/// Advances the clock by `after`, and then checks for resyncs as an informer does. Returns whether
/// a resync was due.
async fn tick(running: &Running, after: Duration) -> bool {
    tokio::time::advance(after).await;
    let due = running.processor.check_resync();
    if due {
        running.processor.publish(batch(vec![Event::Resynced(object("a", 1))]), || {});
    }
    due
}

#[tokio::test(start_paused = true)]
async fn resync_reaches_only_handlers_that_are_due() {
    let running = Running::with_resync(Some(Duration::from_secs(2)));
    let (due, mut received) = recorder();
    let (never, mut received_never) = recorder();
    let _due = running.add(due);
    let options = HandlerOptions::new().resync(Resync::Never);
    let _never = running.processor.add_handler(never, &options, std::iter::empty);
    assert_eq!(running.processor.freeze_check_period(), Some(Duration::from_secs(2)));
    assert!(!running.processor.check_resync(), "not yet");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(running.processor.check_resync());
    running.processor.publish(batch(vec![Event::Resynced(object("a", 1)), added("b", 1)]), || {});
    assert_eq!(received.recv().await.as_deref(), Some("a=1>1"));
    assert_eq!(received.recv().await.as_deref(), Some("+b=1"));
    assert_eq!(received_never.recv().await.as_deref(), Some("+b=1"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_handler_keeps_its_own_resync_period() {
    let running = Running::start();
    let (two, mut received_two) = recorder();
    let (three, mut received_three) = recorder();
    let _two = running.processor.add_handler(two, &every(2), std::iter::empty);
    let _three = running.processor.add_handler(three, &every(3), std::iter::empty);
    let check_period = running.processor.freeze_check_period().expect("a handler has a resync period");
    let mut checks = Vec::new();
    for _ in 0..3 {
        tokio::time::advance(check_period).await;
        checks.push(running.processor.check_resync());
        running.processor.publish(batch(vec![Event::Resynced(object("a", 1))]), || {});
        tokio::task::yield_now().await;
    }
    running.stop().await;
    let count = |received: &mut tokio::sync::mpsc::UnboundedReceiver<String>| {
        std::iter::from_fn(|| received.try_recv().ok()).count()
    };
    // Checks at 2, 4 and 6 s: the period of 3 s is rounded up to 4 s.
    assert_eq!((checks, count(&mut received_two), count(&mut received_three)), (vec![true; 3], 3, 1));
}

#[tokio::test]
async fn resync_of_other_handlers_does_not_wake_a_handler() {
    let processor = SharedProcessor::new(None);
    let registration = processor.add_handler(Handlers::new(), &HandlerOptions::default(), std::iter::empty);
    processor.publish(batch((0..5_000).map(|value| Event::Resynced(object("a", value))).collect()), || {});
    assert_eq!(registration.stats().pending, 0);
    processor.publish(batch(vec![added("a", 1), Event::Resynced(object("b", 1))]), || {});
    assert_eq!(registration.stats().pending, 1);
}

#[test]
fn resync_period_is_limited_and_zero_means_never() {
    let default = Some(Duration::from_millis(5));
    assert_eq!(
        Resync::Default.period(default),
        Some(Duration::from_secs(1)),
        "not more often than each second"
    );
    assert_eq!(Resync::Default.period(Some(Duration::ZERO)), None, "zero means never, as in client-go");
    assert_eq!(Resync::Every(Duration::ZERO).period(default), None);
    let processor = SharedProcessor::<Object>::new(Some(Duration::MAX));
    let options = HandlerOptions::new().resync(Resync::Every(Duration::MAX));
    processor.add_handler(Handlers::new(), &options, std::iter::empty).detach();
    assert!(processor.freeze_check_period().is_some_and(|period| period < Duration::MAX));
}

#[tokio::test(start_paused = true)]
async fn handlers_get_resyncs_at_their_own_periods_or_never() {
    // client-go's ListenerResyncPeriods.
    let running = Running::start();
    let ((never_, mut received_never), (two, mut received_two), (three, mut received_three)) =
        (recorder(), recorder(), recorder());
    let add =
        |handler, options: &HandlerOptions| running.processor.add_handler(handler, options, std::iter::empty);
    let _registrations = [add(never_, &never()), add(two, &every(2)), add(three, &every(3))];
    // The test checks every second, although the check period is two seconds.
    assert_eq!(running.processor.freeze_check_period(), Some(Duration::from_secs(2)));
    let mut due = Vec::new();
    for _ in 0..6 {
        due.push(tick(&running, Duration::from_secs(1)).await);
        let counts =
            (received_now(&mut received_two).await.len(), received_now(&mut received_three).await.len());
        due.push(counts == (1, 0) || counts == (1, 1) || counts == (0, 1));
    }
    assert_eq!(due, [false, false, true, true, true, true, true, true, false, false, true, true]);
    assert!(received_now(&mut received_never).await.is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resync_periods_begin_when_the_informer_starts() {
    // client-go's ListenerResyncPeriodsDelayed: the processor starts long after its handlers were
    // added.
    let processor = SharedProcessor::new(None);
    let (handler, mut received) = recorder();
    let _registration = processor.add_handler(handler, &every(2), std::iter::empty);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(processor.freeze_check_period(), Some(Duration::from_secs(2)));
    let running = Running::of(processor);
    assert!(!tick(&running, Duration::from_secs(1)).await, "a second after the start");
    assert!(tick(&running, Duration::from_secs(1)).await);
    assert_eq!(received.recv().await.as_deref(), Some("a=1>1"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resync_check_period_is_the_shortest_at_the_start() {
    // client-go's ResyncCheckPeriod: 12 h by default, then handlers with 1 min, 55 s, 5 s.
    let processor = SharedProcessor::<Object>::new(Some(Duration::from_secs(12 * 3600)));
    let periods = |processor: &SharedProcessor<Object>| {
        let registry = processor.shared.registry.lock();
        registry.listeners.iter().filter_map(|listener| listener.resync_period()).collect::<Vec<_>>()
    };
    let add = |options: &HandlerOptions| {
        processor.add_handler(Handlers::new(), options, std::iter::empty).detach();
    };
    add(&HandlerOptions::default());
    [60, 55, 5].into_iter().for_each(|seconds| add(&every(seconds)));
    add(&never());
    assert_eq!(processor.freeze_check_period(), Some(Duration::from_secs(5)));
    let seconds =
        |seconds: &[u64]| seconds.iter().map(|&seconds| Duration::from_secs(seconds)).collect::<Vec<_>>();
    assert_eq!(periods(&processor), seconds(&[12 * 3600, 60, 55, 5]), "each handler keeps its own period");
    add(&every(1));
    add(&every(7));
    assert_eq!(processor.freeze_check_period(), Some(Duration::from_secs(5)), "the check period is fixed");
    assert_eq!(
        periods(&processor),
        seconds(&[12 * 3600, 60, 55, 5, 5, 7]),
        "later handlers get at least the check period"
    );
}

#[tokio::test(start_paused = true)]
async fn relist_delivers_unchanged_objects_only_as_resyncs() {
    // client-go's WatchDisruption.
    let running = Running::start();
    let ((plain, mut received_plain), (resynced, mut received_resynced)) = (recorder(), recorder());
    let add =
        |handler, options: &HandlerOptions| running.processor.add_handler(handler, options, std::iter::empty);
    let _registrations = [add(plain, &never()), add(resynced, &every(1))];
    assert!(running.processor.freeze_check_period().is_some());
    running.processor.publish(complete(vec![added("a", 1), added("b", 1)]), || {});
    assert_eq!(received_now(&mut received_plain).await, ["+a=1", "+b=1"]);
    assert_eq!(received_now(&mut received_resynced).await, ["+a=1", "+b=1"]);
    let relist = || batch(vec![Event::Resynced(object("a", 1)), updated("b", 1, 2), added("c", 1)]);
    running.processor.publish(relist(), || {});
    assert_eq!(received_now(&mut received_plain).await, ["b=1>2", "+c=1"]);
    assert_eq!(received_now(&mut received_resynced).await, ["a=1>1", "b=1>2", "+c=1"]);
    // The handlers that a check marks receive resyncs until the next check.
    assert!(tick(&running, Duration::from_secs(1)).await);
    assert_eq!(received_now(&mut received_resynced).await, ["a=1>1"]);
    running.processor.publish(batch(vec![Event::Resynced(object("c", 1))]), || {});
    assert_eq!(received_now(&mut received_resynced).await, ["c=1>1"]);
    assert!(!tick(&running, Duration::from_millis(500)).await);
    running.processor.publish(batch(vec![Event::Resynced(object("c", 1))]), || {});
    assert!(received_now(&mut received_resynced).await.is_empty(), "no handler was due at the last check");
    assert!(received_now(&mut received_plain).await.is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn i10_missing_resyncs_are_logged() {
    log::keep();
    let without = SharedProcessor::<Object>::new(None);
    assert_eq!(without.freeze_check_period(), None);
    let options = |name: &str, seconds| every(seconds).name(name);
    let add = |processor: &SharedProcessor<Object>, options: &HandlerOptions| {
        processor.add_handler(Handlers::new(), options, std::iter::empty).detach();
    };
    add(&without, &options("too-late", 5));
    add(&without, &options("wants-none", 0));
    let with = SharedProcessor::<Object>::new(Some(Duration::from_secs(10)));
    assert!(with.freeze_check_period().is_some());
    add(&with, &options("too-often", 5));
    add(&with, &options("in-time", 20));
    let open = SharedProcessor::<Object>::new(None);
    let fast = HandlerOptions::new().resync(Resync::Every(Duration::from_millis(5))).name("too-fast");
    add(&open, &fast);
    for (handler, lines) in
        [("too-late", 1), ("too-often", 1), ("too-fast", 1), ("wants-none", 0), ("in-time", 0)]
    {
        assert_eq!(log::about(handler).len(), lines, "{:?}", log::about(handler));
    }
    assert!(
        log::about("too-late")[0].contains("no resyncs") && log::about("too-often")[0].contains("period=10s")
    );
}
