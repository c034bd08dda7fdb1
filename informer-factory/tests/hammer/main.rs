//! The hammer: everything at once, for ten seconds. Producers write, watches break and lose events,
//! handlers of every form come and go, stall and panic, indices are added and removed, snapshots
//! are kept. In the end the server, the store and every handler have the same objects; and when it
//! is over, no task, no object and no handler is left, and the memory is as it was.
//!
//! A second test stops the informer in the midst of it.
//!
//! Nothing here depends on how fast things are. `INFORMER_HAMMER_SECONDS` says how long the
//! producers write, and `INFORMER_HAMMER_SEED` what they do; how threads meet is another matter, so
//! a seed doesn't repeat a run exactly.

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

use informer_factory::StopCause;
use item::Item;
use members::Member;
use peak_alloc::PeakAlloc;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use world::{Tally, World, within};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// What panics on purpose panics with this.
struct Intended;

/// What may be allocated afterwards and was not before: what the test prints, and what is kept for
/// good for as many threads as there were at most, such as `parking_lot`'s table of those that
/// wait. Objects and handlers are counted one by one.
const SLACK: usize = 64 * 1024;

fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Runs a test by itself, because what is allocated is counted for all, on a runtime of its own.
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
    // More threads than most machines that test have processors, so that they are interrupted
    // anywhere.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_time().build().expect("a runtime");
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
        let (readers, managers) = (readers::set_to_work(&world), members::set_to_work(&world));
        world.end(producers::set_to_work(&world)).await;
        readers.join_all().await;
        let survivors: Vec<_> = managers.join_all().await.into_iter().flatten().collect();
        write_the_last(&world).await;
        assert_the_store_is_the_servers(&world);
        for survivor in &survivors {
            survivor.catch_up(&world).await;
        }
        tell(&world, survivors.len());
        let survivors = only_survivors_are_registered(&world, survivors).await;
        world.shutdown.cancel();
        nothing_is_left(world, running, survivors).await;
    });
}

#[test]
fn i12_informer_stopped_under_the_hammer_leaves_nothing() {
    run(async |seed| {
        // Told to end after so much work, not after a time.
        let (world, running) = World::new(Duration::from_secs(3600), seed);
        let mut progress = world.progress.subscribe();
        let (readers, managers) = (readers::set_to_work(&world), members::set_to_work(&world));
        let producers = producers::set_to_work(&world);
        within("some writes", progress.wait_for(|rounds| *rounds > 500)).await.expect("the world is there");
        world.shutdown.cancel();
        // Handlers go on coming to an informer that has stopped, and leaving it.
        assert_eq!(within("the informer to end", world.informer.stopped()).await, StopCause::Shutdown);
        let so_far = *progress.borrow();
        within("more writes", progress.wait_for(|rounds| *rounds > so_far + 500))
            .await
            .expect("the world is there");
        world.enough.cancel();
        world.end(producers).await;
        readers.join_all().await;
        let survivors: Vec<_> = managers.join_all().await.into_iter().flatten().collect();
        tell(&world, survivors.len());
        nothing_is_left(world, running, survivors).await;
    });
}

/// I12: when the informer has ended, there is no task, and when nobody uses it any more, no object
/// and no handler.
async fn nothing_is_left(world: Arc<World>, running: JoinHandle<()>, survivors: Vec<Member>) {
    within("the informer to end", running).await.expect("it does not panic");
    assert_eq!(world.informer.stopped().await, StopCause::Shutdown);
    for survivor in survivors {
        survivor.leave(&world, &mut world.random(0)).await;
    }
    let (items, handlers) = (Arc::clone(&world.items), Arc::clone(&world.handlers));
    drop(world);
    within("the tasks to end", no_task_is_left()).await;
    println!("items: {} made, at most {} at a time", items.born(), items.most());
    println!("handlers: {} made, at most {} at a time", handlers.born(), handlers.most());
    assert_eq!((items.alive(), handlers.alive()), (0, 0), "items and handlers that are left");
}

/// I12: of a handler that has left, the informer keeps nothing, also while it runs.
async fn only_survivors_are_registered(world: &World, survivors: Vec<Member>) -> Vec<Member> {
    let (fickle, steady): (Vec<_>, Vec<_>) = survivors.into_iter().partition(Member::leaves_by_itself);
    for member in fickle {
        member.leave(world, &mut world.random(0)).await;
    }
    let informer = format!("{:?}", world.informer);
    assert!(informer.contains(&format!("handlers: {},", steady.len())), "{}: {informer}", steady.len());
    steady
}

/// Writes once more, behind all trouble, and waits for it.
async fn write_the_last(world: &World) {
    let last = world.source.create(Item::new("own", "the-last", 0, &world.items)).expect("a new object");
    assert!(world.reach(last.resource_version()).await);
    assert!(world.informer.get(last.key()).is_some_and(|stored| stored.same_version(&last)));
}

/// I9: the store is the server's state, and its indices go with it.
fn assert_the_store_is_the_servers(world: &World) {
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

async fn no_task_is_left() {
    // Tasks that have ended are counted until the runtime removes them, without an event.
    while Handle::current().metrics().num_alive_tasks() > 0 {
        tokio::task::yield_now().await;
    }
}

fn tell(world: &World, survivors: usize) {
    let Tally {
        writes,
        refused,
        own_writes_read,
        troubles,
        joined,
        left,
        delivered,
        coalesced,
        panicked,
        indices,
        snapshots,
    } = &world.tally;
    let [writes, refused, read, troubles, joined, left, delivered, coalesced, panicked, indices, snapshots] =
        [
            writes,
            refused,
            own_writes_read,
            troubles,
            joined,
            left,
            delivered,
            coalesced,
            panicked,
            indices,
            snapshots,
        ]
        .map(|counter| counter.load(Ordering::Relaxed));
    println!("{writes} writes, {refused} of them refused, {read} waited for and read");
    println!(
        "{troubles} troubles, {} lists, {} watches",
        world.source.list_count(),
        world.source.watch_count()
    );
    println!("{joined} handlers joined, {left} left, {survivors} stayed");
    println!("of those that left: {delivered} calls, {panicked} panics, {coalesced} events coalesced");
    println!("{indices} indices added and removed, {snapshots} snapshots kept");
}
