//! The write tracker: a key waits until the caches have its writes.

use std::time::Duration;

use informer_controller::{KeyWrites, WriteTracker};
use informer_factory::{Cached, InformerOptions, ObjectKey};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::core::Status;
use tokio::time::{Instant, sleep, timeout};

use crate::{Running, config_map, create, key, source, update};

const DEADLINE: Duration = Duration::from_secs(10);

struct World {
    source: MemorySource<ConfigMap>,
    running: Running,
    tracker: WriteTracker<ObjectKey>,
    writes: KeyWrites<ObjectKey>,
}

async fn world() -> World {
    let source = source();
    let running = Running::start(&source, InformerOptions::new()).synced().await;
    let tracker = WriteTracker::new();
    let writes = tracker.of(&key("parent"));
    World { source, running, tracker, writes }
}

impl World {
    /// Waits for the key's writes. Returns the duration, and whether the caches then have all
    /// writes.
    async fn wait(&self) -> (Duration, bool) {
        let begun = Instant::now();
        let in_time = timeout(DEADLINE * 4, self.writes.ready()).await.expect("a deadline ends every wait");
        (begun.elapsed(), in_time)
    }

    /// Tracks a creation of the object `child`, which fails with an unknown outcome.
    async fn track_failure(&self, answer: impl Future<Output = Result<ConfigMap, kube::Error>>) {
        let (informer, child) = (&self.running.informer, config_map("child", "1"));
        self.writes.track(informer, &child, answer).await.expect_err("an unknown outcome");
    }
}

fn api_error(code: u16) -> kube::Error {
    kube::Error::Api(Box::new(Status { code, ..Status::default() }))
}

fn failed_webhook() -> kube::Error {
    let status = Status { code: 500, reason: "InternalError".to_owned(), ..Status::default() };
    kube::Error::Api(Box::new(status))
}

fn unreachable() -> kube::Error {
    kube::Error::Service("connection reset".into())
}

#[tokio::test(start_paused = true)]
async fn i9_key_waits_until_the_store_has_its_write() {
    let world = world().await;
    assert_eq!(world.wait().await, (Duration::ZERO, true), "nothing was written");
    // The test does not await between the write and the check, so the informer cannot run.
    let written = create(&world.source, "child", "1");
    world.writes.wrote(&world.running.informer, &*written);
    assert!(!world.writes.is_ready());
    assert!(world.tracker.of(&key("another")).is_ready(), "other keys must not wait");
    assert_eq!(world.wait().await, (Duration::ZERO, true));
    assert!(world.running.informer.get(written.key()).is_some());
    assert_eq!(world.tracker.keys(), 0, "a write that the cache has must be removed");
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn latest_of_several_writes_counts_in_any_order() {
    let world = world().await;
    let informer = &world.running.informer;
    let first = create(&world.source, "child", "1");
    let second = world.source.update_unseen(config_map("child", "2")).expect("the object exists");
    world.writes.wrote(informer, &*second);
    world.writes.wrote(informer, &*first);
    world.running.reach(&first).await;
    assert!(!world.writes.is_ready());
    world.source.bookmark();
    assert_eq!(world.wait().await, (Duration::ZERO, true));
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn writes_in_several_stores_are_all_waited_for() {
    let world = world().await;
    let other = source();
    let of_other = Running::start(&other, InformerOptions::new()).synced().await;
    let here = world.source.create_unseen(config_map("here", "1")).expect("a new object");
    let there = other.create_unseen(config_map("there", "1")).expect("a new object");
    world.writes.wrote(&world.running.informer, &*here);
    world.writes.wrote(&of_other.informer, &*there);
    world.source.bookmark();
    world.running.reach(&here).await;
    assert!(!world.writes.is_ready());
    other.bookmark();
    assert_eq!(world.wait().await, (Duration::ZERO, true));
    of_other.stop().await;
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_every_wait() {
    let world = world().await;
    let written = world.source.create_unseen(config_map("child", "1")).expect("a new object");
    world.writes.wrote(&world.running.informer, &*written);
    let _forgotten = world.writes.begin();
    assert_eq!(world.wait().await, (DEADLINE, false));
    assert_eq!((world.tracker.timed_out(), world.tracker.keys()), (2, 0));
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deadline_is_reported_to_each_of_two_waits_and_counted_once() {
    let world = world().await;
    let written = world.source.create_unseen(config_map("child", "1")).expect("a new object");
    world.writes.wrote(&world.running.informer, &*written);
    let waits = tokio::join!(world.wait(), world.wait());
    assert_eq!(waits, ((DEADLINE, false), (DEADLINE, false)));
    assert_eq!((world.tracker.timed_out(), world.tracker.keys()), (1, 0));
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deadline_counts_from_late_answer_with_older_version() {
    // After the second delay, the write with the newer version is expired.
    for delay in [DEADLINE / 2, DEADLINE] {
        let world = world().await;
        let informer = &world.running.informer;
        let older = world.source.create_unseen(config_map("older", "1")).expect("a new object");
        let newer = world.source.create_unseen(config_map("newer", "1")).expect("a new object");
        world.writes.wrote(informer, &*newer);
        sleep(delay).await;
        world.writes.wrote(informer, &*older);
        assert_eq!(world.wait().await, (DEADLINE, false), "{delay:?}");
        world.running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn write_that_a_check_finds_expired_is_counted() {
    let world = world().await;
    let written = world.source.create_unseen(config_map("child", "1")).expect("a new object");
    world.writes.wrote(&world.running.informer, &*written);
    sleep(DEADLINE).await;
    assert!(world.writes.is_ready());
    assert_eq!((world.tracker.timed_out(), world.tracker.keys()), (1, 0));
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deletion_ends_when_the_object_with_its_uid_is_deleted() {
    let world = world().await;
    let informer = &world.running.informer;
    let child = create(&world.source, "child", "1");
    world.running.reach(&child).await;
    let deletion = world.writes.begin_deletion(informer, &child);
    assert!(!world.writes.is_ready());
    world.source.delete(child.key()).expect("the object exists");
    // Recreate the object under the same name before the informer receives the deletion.
    create(&world.source, "child", "2");
    drop(deletion);
    assert!(!world.writes.is_ready());
    assert_eq!(world.wait().await, (Duration::ZERO, true));
    assert!(informer.get(child.key()).is_some_and(|cached| cached.uid() != child.uid()));
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deletion_with_finalizers_is_seen_when_marked() {
    let world = world().await;
    let child = create(&world.source, "child", "1");
    world.running.reach(&child).await;
    let deletion = world.writes.begin_deletion(&world.running.informer, &child);
    let mark = |object: &mut ConfigMap| {
        object.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    };
    world.source.modify(child.key(), mark).expect("the object exists");
    drop(deletion);
    assert!(!world.writes.is_ready());
    assert_eq!(world.wait().await, (Duration::ZERO, true));
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn object_not_yet_in_the_cache_is_not_taken_for_deleted() {
    let world = world().await;
    let child = create(&world.source, "child", "1");
    let deletion = world.writes.begin_deletion(&world.running.informer, &child);
    assert!(!world.writes.is_ready(), "the object is not in the store yet");
    world.running.reach(&child).await;
    assert!(!world.writes.is_ready());
    world.source.delete(child.key()).expect("the object exists");
    drop(deletion);
    assert_eq!(world.wait().await, (Duration::ZERO, true));
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn write_that_was_not_sent_delays_no_key() {
    let world = world().await;
    let informer = &world.running.informer;
    let child = create(&world.source, "child", "1");
    world.running.reach(&child).await;
    let not_sent = || kube::Error::BuildRequest(kube::core::request::Error::Validation("no name".into()));
    let answer = async { Err::<ConfigMap, _>(not_sent()) };
    world.writes.track(informer, &config_map("child", "1"), answer).await.expect_err("not sent");
    let answer = async { Err::<Status, _>(not_sent()) };
    world.writes.track_deletion(informer, &child, answer).await.expect_err("not sent");
    assert!(world.writes.is_ready());
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn rejected_create_of_a_generated_name_delays_no_key() {
    let world = world().await;
    let informer = &world.running.informer;
    let errors = [400, 401, 403, 404, 409, 413, 422, 429].map(api_error);
    // No read can show whether an attempt before the rejection was applied.
    for error in errors.into_iter().chain([failed_webhook()]) {
        let answer = async { Err::<ConfigMap, _>(error) };
        let error = world.writes.track(informer, &generated(), answer).await.expect_err("refused");
        assert!(world.writes.is_ready(), "{error}");
    }
    world.running.stop().await;
}

/// An object whose name the server generates, so that no read can find it.
fn generated() -> ConfigMap {
    let mut map = config_map("child", "1");
    map.metadata.generate_name = map.metadata.name.take();
    map
}

#[tokio::test(start_paused = true)]
async fn unknown_create_of_a_generated_name_waits_for_deadline() {
    for error in [|| api_error(500), || api_error(504), || api_error(408), unreachable] {
        let world = world().await;
        let answer = async {
            sleep(Duration::from_secs(3)).await;
            Err::<ConfigMap, _>(error())
        };
        world.writes.track(&world.running.informer, &generated(), answer).await.expect_err("a lost answer");
        assert_eq!(world.wait().await, (DEADLINE, false), "the deadline must count from the error");
        world.running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_counts_as_possibly_applied() {
    let world = world().await;
    let child = config_map("child", "1");
    let answer = std::future::pending::<Result<ConfigMap, kube::Error>>();
    let request = world.writes.track(&world.running.informer, &child, answer);
    timeout(Duration::from_secs(4), request).await.expect_err("an endless request");
    assert_eq!(world.wait().await, (DEADLINE, false));
    // A request that was never polled has not been sent.
    let answer = std::future::pending::<Result<ConfigMap, kube::Error>>();
    drop(world.writes.track(&world.running.informer, &child, answer));
    assert!(world.writes.is_ready());
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn answer_replaces_request_during_a_wait() {
    let world = world().await;
    let (source, writes) = (world.source.clone(), world.writes.clone());
    let informer = world.running.informer.clone();
    let request = tokio::spawn(async move {
        let answer = async {
            sleep(Duration::from_secs(6)).await;
            let written = source.create_unseen(config_map("child", "1")).expect("a new object");
            Ok(ConfigMap::clone(&written))
        };
        writes.track(&informer, &config_map("child", "1"), answer).await.expect("an answer");
        sleep(Duration::from_secs(6)).await;
        source.bookmark();
    });
    tokio::task::yield_now().await;
    assert_eq!(world.wait().await, (Duration::from_secs(12), true));
    request.await.expect("no panic");
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deletion_of_a_deleted_object_waits_for_the_cache() {
    let world = world().await;
    let informer = &world.running.informer;
    let child = create(&world.source, "child", "1");
    world.running.reach(&child).await;
    world.source.delete_unseen(child.key()).expect("the object exists");
    let answer = async { Err::<ConfigMap, _>(api_error(404)) };
    world.writes.track_deletion(informer, &child, answer).await.expect_err("not found");
    assert!(!world.writes.is_ready());
    // Only a list delivers the deletion, because the watch has missed it.
    world.source.expire();
    world.source.disconnect();
    assert!(world.wait().await.1);
    assert!(informer.get(child.key()).is_none());
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stopped_informer_delays_no_key() {
    let World { source, running, writes, .. } = world().await;
    let child = create(&source, "child", "1");
    running.reach(&child).await;
    let informer = running.informer.clone();
    let written = source.update_unseen(config_map("child", "2")).expect("the object exists");
    writes.wrote(&informer, &*written);
    drop(writes.begin_deletion(&informer, &child));
    let (waited, ()) = tokio::join!(timeout(DEADLINE / 2, writes.ready()), running.stop());
    assert_eq!(waited, Ok(true));
    assert!(writes.is_ready());
}

#[tokio::test(start_paused = true)]
async fn version_without_order_delays_no_key() {
    let world = world().await;
    for version in [None, Some("0"), Some("v2-abc")] {
        let mut written = config_map("child", "1");
        written.metadata.resource_version = version.map(str::to_owned);
        world.writes.wrote(&world.running.informer, &written);
        assert!(world.writes.is_ready(), "{version:?}");
    }
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cleared_key_is_removed_with_its_writes() {
    let world = world().await;
    let _write = world.writes.begin();
    assert_eq!(world.tracker.keys(), 1);
    world.writes.clear();
    assert_eq!((world.tracker.keys(), world.writes.is_ready()), (0, true));
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn keys_without_checks_are_removed_after_their_deadline() {
    let world = world().await;
    let written: Cached<ConfigMap> = create(&world.source, "child", "1");
    let written = { update(&world.source, written.name(), "2") };
    for round in 0..20 {
        for n in 0..1_000 {
            let key = ObjectKey::namespaced("shop", &format!("{round}-{n}"));
            drop(world.tracker.of(&key).begin());
            world.tracker.of(&key).wrote(&world.running.informer, &*written);
        }
        sleep(DEADLINE * 2).await;
        assert!(world.tracker.keys() <= 3_000, "{} keys", world.tracker.keys());
    }
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn late_failure_parks_the_key_again() {
    let world = world().await;
    let informer = &world.running.informer;
    let object = create(&world.source, "child", "1");
    world.running.reach(&object).await;
    for is_deletion in [false, true] {
        let request = async {
            sleep(DEADLINE * 2).await;
            Err::<ConfigMap, _>(unreachable())
        };
        // The check happens before the request fails, but after the deadline of the write. So the check
        // removes the write.
        let check = async {
            sleep(DEADLINE + DEADLINE / 2).await;
            assert!(world.writes.is_ready());
        };
        let answer = async {
            if is_deletion {
                world.writes.track_deletion(informer, &object, request).await
            } else {
                world.writes.track(informer, &generated(), request).await
            }
        };
        let (answer, ()) = tokio::join!(answer, check);
        assert!(answer.is_err() && !world.writes.is_ready(), "the outcome is unknown");
        // The tracker can read the object of the deletion, but not the object whose name is unknown.
        assert_eq!(world.wait().await, if is_deletion { (Duration::ZERO, true) } else { (DEADLINE, false) });
    }
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unused_key_drops_old_writes() {
    let world = world().await;
    for _ in 0..100 {
        for _ in 0..100 {
            drop(world.writes.begin());
        }
        sleep(DEADLINE * 2).await;
    }
    let held = format!("{:?}", world.tracker);
    let writes =
        held.split("writes: ").nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    assert!(writes.is_some_and(|count| count.parse::<u32>().is_ok_and(|count| count < 300)), "{held}");
    world.running.stop().await;
}

/// Errors after which it is unknown whether the write was applied.
const UNKNOWN: [fn() -> kube::Error; 12] = [
    || api_error(500),
    || api_error(503),
    || api_error(504),
    || api_error(408),
    || api_error(401),
    || api_error(403),
    || api_error(404),
    || api_error(409),
    || api_error(422),
    || api_error(429),
    failed_webhook,
    unreachable,
];

#[tokio::test(start_paused = true)]
async fn write_not_applied_is_settled_by_a_read_of_its_object() {
    for error in UNKNOWN {
        let world = world().await;
        let answer = async { Err::<ConfigMap, _>(error()) };
        world.track_failure(answer).await;
        assert!(!world.writes.is_ready(), "the object has not been read yet");
        assert_eq!(world.wait().await, (Duration::ZERO, true));
        assert_eq!((world.tracker.keys(), world.source.list_count()), (0, 2));
        world.running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn i9_write_applied_despite_an_error_is_waited_for() {
    for error in UNKNOWN {
        let world = world().await;
        let answer = async {
            world.source.create_unseen(config_map("child", "1")).expect("a new object");
            Err::<ConfigMap, _>(error())
        };
        world.track_failure(answer).await;
        let bookmark = async {
            sleep(Duration::from_secs(3)).await;
            assert!(!world.writes.is_ready());
            world.source.bookmark();
        };
        let (waited, ()) = tokio::join!(world.wait(), bookmark);
        assert_eq!(waited, (Duration::from_secs(3), true));
        world.running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn deletion_with_unknown_outcome_is_settled_by_a_read() {
    for is_applied in [false, true] {
        let world = world().await;
        let informer = &world.running.informer;
        let child = create(&world.source, "child", "1");
        world.running.reach(&child).await;
        let answer = async {
            if is_applied {
                world.source.delete_unseen(child.key()).expect("the object exists");
            }
            Err::<ConfigMap, _>(unreachable())
        };
        world.writes.track_deletion(informer, &child, answer).await.expect_err("an unknown outcome");
        let relist = async {
            sleep(Duration::from_secs(3)).await;
            world.source.expire();
            world.source.disconnect();
        };
        let ((waited, in_time), ()) = tokio::join!(world.wait(), relist);
        assert!(in_time && waited < DEADLINE);
        assert_eq!(waited >= Duration::from_secs(3), is_applied, "{waited:?}");
        assert_eq!(informer.get(child.key()).is_none(), is_applied);
        world.running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn i9_late_cache_is_awaited_if_an_object_is_gone() {
    let world = world().await;
    let informer = &world.running.informer;
    // The informer runs only after the read of the object, which the server no longer has.
    let child = create(&world.source, "child", "1");
    world.writes.wrote(informer, &*child);
    world.source.delete_unseen(child.key()).expect("the object exists");
    let answer = async { Err::<ConfigMap, _>(unreachable()) };
    world.writes.track_deletion(informer, &child, answer).await.expect_err("an unknown outcome");
    assert!(informer.get(child.key()).is_none());
    let relist = async {
        sleep(Duration::from_secs(3)).await;
        assert!(informer.get(child.key()).is_some() && !world.writes.is_ready());
        world.source.expire();
        world.source.disconnect();
    };
    let ((_, in_time), ()) = tokio::join!(world.wait(), relist);
    assert!(in_time && informer.get(child.key()).is_none());
    world.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_deletion_ends_waits_that_began_during_the_request() {
    for error in [|| api_error(409), || api_error(429), unreachable] {
        let world = world().await;
        let child = create(&world.source, "child", "1");
        world.running.reach(&child).await;
        let answer = async {
            sleep(Duration::from_secs(3)).await;
            Err::<ConfigMap, _>(error())
        };
        let deletion = world.writes.track_deletion(&world.running.informer, &child, answer);
        let (answer, waited) = tokio::join!(deletion, world.wait());
        answer.expect_err("the deletion fails");
        assert_eq!(waited, (Duration::from_secs(3), true));
        world.running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn failing_read_is_repeated_and_ends_with_the_deadline() {
    for (failures, is_settled) in [(3, true), (100, false)] {
        let world = world().await;
        (0..failures).for_each(|_| world.source.fail_next_list(refusal()));
        let answer = async { Err::<ConfigMap, _>(unreachable()) };
        world.track_failure(answer).await;
        let (waited, in_time) = world.wait().await;
        assert_eq!((in_time, waited < DEADLINE), (is_settled, is_settled), "{waited:?}");
        world.running.stop().await;
    }
}

fn refusal() -> informer_factory::ListWatchError {
    Box::new(Status { code: 403, ..Status::default() }).into()
}
