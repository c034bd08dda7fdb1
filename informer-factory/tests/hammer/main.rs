//! The hammer test. For ten seconds, producers write, and watches break and lose events. Meanwhile,
//! handlers of every form join, leave, stall and panic, indexes are added and removed, and snapshots
//! are kept. Afterwards the server, the store and every handler have the same objects. After the
//! shutdown no task, object, handler or extra memory is left.
//!
//! A second test stops the informer during the load.
//!
//! The assertions do not depend on timing. `INFORMER_HAMMER_SECONDS` sets how long the producers
//! write, and `INFORMER_HAMMER_SEED` the random choices. The thread schedule is not seeded, so a
//! seed does not repeat a run exactly.

mod handlers;
mod item;
mod members;
mod producers;
mod readers;
mod world;

use std::collections::BTreeMap;
use std::env;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use informer_factory::status::StopCause;
use item::Item;
use members::Member;
use peak_alloc::PeakAlloc;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use world::{Tally, World, within};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// The payload of intended panics.
struct Intended;

/// The number of bytes that may stay allocated: the output of the test, and permanent per-thread
/// state such as `parking_lot`'s wait table. Objects and handlers are counted exactly.
const SLACK: usize = 64 * 1024;

fn setting(name: &str) -> Option<u64> {
    env::var(name)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{name} must be a number, but is {value:?}")))
}

/// Runs a test on its own runtime. Only one test runs at a time, because allocations are counted for
/// the whole process.
fn run<T: Future<Output = ()>>(test: impl FnOnce(u64) -> T) {
    static ALONE: Mutex<()> = Mutex::new(());
    static QUIET: Once = Once::new();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    QUIET.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.payload().is::<Intended>() {
                report(panic);
            }
        }));
    });
    let seed = setting("INFORMER_HAMMER_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("INFORMER_HAMMER_SEED={seed}");
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    // There are more threads than typical CI machines have cores, so that the operating system
    // interrupts threads at any point.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_time().build().expect("the runtime starts");
    runtime.block_on(test(seed));
    drop(runtime);
    let after = ALLOCATED.current_usage();
    println!("memory: {before} bytes before, {} at most, {after} after", ALLOCATED.peak_usage());
    assert!(after < before + SLACK, "{before} bytes before, {after} after");
}

#[test]
fn i12_hammered_server_store_and_handlers_are_equal() {
    let seconds = setting("INFORMER_HAMMER_SECONDS").unwrap_or(10);
    run(async |seed| {
        let (world, running) = World::new(Duration::from_secs(seconds), seed);
        let (readers, managers) = (readers::spawn_all(&world), members::spawn_all(&world));
        world.end(producers::spawn_all(&world)).await;
        readers.join_all().await;
        let survivors: Vec<_> = managers.join_all().await.into_iter().flatten().collect();
        write_last_object(&world).await;
        assert_store_equals_server(&world);
        for survivor in &survivors {
            survivor.catch_up(&world).await;
        }
        print_tally(&world, survivors.len());
        let survivors = assert_only_survivors_are_registered(&world, survivors).await;
        world.shutdown.cancel();
        assert_nothing_is_left(world, running, survivors).await;
    });
}

#[test]
fn i12_informer_stopped_under_load_leaves_nothing() {
    run(async |seed| {
        // The test ends after a number of writes, not after a time.
        let (world, running) = World::new(Duration::from_secs(3600), seed);
        let mut progress = world.progress.subscribe();
        let (readers, managers) = (readers::spawn_all(&world), members::spawn_all(&world));
        let producers = producers::spawn_all(&world);
        within("some writes", progress.wait_for(|rounds| *rounds > 500))
            .await
            .expect("the world has the sender");
        world.shutdown.cancel();
        // Handlers keep joining and leaving the stopped informer.
        assert_eq!(within("the informer to end", world.informer.stopped()).await, StopCause::Shutdown);
        let so_far = *progress.borrow();
        within("more writes", progress.wait_for(|rounds| *rounds > so_far + 500))
            .await
            .expect("the world has the sender");
        world.enough.cancel();
        world.end(producers).await;
        readers.join_all().await;
        let survivors: Vec<_> = managers.join_all().await.into_iter().flatten().collect();
        print_tally(&world, survivors.len());
        assert_nothing_is_left(world, running, survivors).await;
    });
}

/// Checks invariant I12: no task is left after the informer has ended, and no object and no handler
/// is left after the informer's handles are dropped.
async fn assert_nothing_is_left(world: Arc<World>, running: JoinHandle<()>, survivors: Vec<Member>) {
    within("the informer to end", running).await.expect("no panic");
    assert_eq!(world.informer.stopped().await, StopCause::Shutdown);
    for survivor in survivors {
        survivor.leave(&world, &mut world.random(0)).await;
    }
    let (items, handlers) = (Arc::clone(&world.items), Arc::clone(&world.handlers));
    drop(world);
    within("the tasks to end", wait_until_no_task_is_left()).await;
    println!("items: {} created, at most {} at a time", items.created(), items.max_alive());
    println!("handlers: {} created, at most {} at a time", handlers.created(), handlers.max_alive());
    assert_eq!((items.alive(), handlers.alive()), (0, 0), "leaked items and handlers");
}

/// Checks invariant I12: removes the handlers that may have removed themselves, and checks that
/// only the other handlers are registered. Returns the registered handlers.
async fn assert_only_survivors_are_registered(world: &World, survivors: Vec<Member>) -> Vec<Member> {
    let (leaving, staying): (Vec<_>, Vec<_>) = survivors.into_iter().partition(Member::leaves_by_itself);
    for member in leaving {
        member.leave(world, &mut world.random(0)).await;
    }
    let informer = format!("{:?}", world.informer);
    assert!(informer.contains(&format!("handlers: {},", staying.len())), "{}: {informer}", staying.len());
    staying
}

/// Creates an object after all faults have ended, and waits until the store has the object.
async fn write_last_object(world: &World) {
    let last = world.source.create(Item::new("own", "the-last", 0, &world.items)).expect("a new object");
    assert!(world.reach(last.resource_version()).await);
    assert!(world.informer.get(last.key()).is_some_and(|stored| stored.same_version(&last)));
}

/// Checks invariant I9: the store and its indexes equal the server's state.
fn assert_store_equals_server(world: &World) {
    let of_the_server: BTreeMap<_, _> = world
        .source
        .objects()
        .into_iter()
        .map(|item| (item.key().clone(), item.resource_version().clone()))
        .collect();
    let snapshot = world.informer.indexer().snapshot();
    assert_eq!(readers::versions(&snapshot), of_the_server);
    let of_own = of_the_server.keys().filter(|key| key.namespace() == Some("own")).count();
    assert_eq!(world.informer.indexer().in_namespace("own").len(), of_own);
    assert_eq!(world.informer.indexer().index_names(), ["namespace"]);
    assert_eq!(world.informer.indexer().index_failures(), []);
}

async fn wait_until_no_task_is_left() {
    // The runtime counts finished tasks until it removes them, and does not report the removal.
    while Handle::current().metrics().num_alive_tasks() > 0 {
        tokio::task::yield_now().await;
    }
}

fn print_tally(world: &World, survivors: usize) {
    let Tally {
        writes,
        refused,
        own_writes_read,
        faults,
        joined,
        left,
        delivered,
        coalesced,
        panicked,
        indexes,
        snapshots,
    } = &world.tally;
    let [writes, refused, read, faults, joined, left, delivered, coalesced, panicked, indexes, snapshots] = [
        writes,
        refused,
        own_writes_read,
        faults,
        joined,
        left,
        delivered,
        coalesced,
        panicked,
        indexes,
        snapshots,
    ]
    .map(|counter| counter.load(Ordering::Relaxed));
    println!("{writes} writes: {refused} refused, {read} waited for and read back");
    println!("{faults} faults, {} lists, {} watches", world.source.list_count(), world.source.watch_count());
    println!("{joined} handlers joined, {left} left, {survivors} stayed");
    println!("handlers that left: {delivered} calls, {panicked} panics, {coalesced} events coalesced");
    println!("{indexes} pairs of indexes added and removed, {snapshots} snapshots kept");
}
