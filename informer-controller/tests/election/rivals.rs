//! Several candidates with faults of all kinds: at most one works at a time, and after the faults
//! one works again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use informer_controller::LeadershipEnd;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    LONGEST_RETRY, LeaderWork, WorkEvent, elector, holder, next, simulator, within, work_until_dropped,
};
use crate::network::{Behavior, Link};

#[tokio::test(start_paused = true)]
async fn stopped_leader_is_replaced_within_longest_retry() {
    let simulator = simulator();
    let mut candidates = JoinSet::new();
    let shutdowns = ["ann", "bob", "cid"].map(|name| {
        let (mut elector, shutdown) = (elector(&Link::to(&simulator), name), CancellationToken::new());
        let (work, events) = LeaderWork::new();
        let token = shutdown.clone();
        candidates.spawn(async move { elector.run(token.clone(), |stop| work.run(stop, token)).await });
        (name, shutdown, events)
    });
    let mut names = Vec::new();
    let mut waiting = Vec::from(shutdowns);
    while !waiting.is_empty() {
        let began = Instant::now();
        let leader = within(async {
            loop {
                let begun =
                    waiting.iter_mut().position(|(_, _, events)| events.try_recv() == Ok(WorkEvent::Began));
                match begun {
                    Some(leader) => break leader,
                    None => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        })
        .await;
        assert!(began.elapsed() <= LONGEST_RETRY + Duration::from_millis(10), "{:?}", began.elapsed());
        let (name, shutdown, _) = waiting.remove(leader);
        assert_eq!(holder(&simulator), name);
        names.push(name);
        shutdown.cancel();
        let end = within(candidates.join_next()).await.expect("a candidate ends").expect("no panic");
        assert_eq!(end, LeadershipEnd::Finished("done"));
    }
    names.sort_unstable();
    assert_eq!(names, ["ann", "bob", "cid"]);
}

#[tokio::test(start_paused = true)]
async fn takeover_waits_for_the_end_of_the_leaders_work() {
    let simulator = simulator();
    let (cut, open) = (Link::to(&simulator), Link::to(&simulator));
    let (_ann, mut of_first) = work_until_dropped(elector(&cut, "ann"));
    assert_eq!(next(&mut of_first).await, WorkEvent::Began);
    let (_bob, mut of_second) = work_until_dropped(elector(&open, "bob"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(of_second.try_recv().is_err(), "bob must not lead while ann leads");
    cut.set(Behavior::Silent);
    assert_eq!(next(&mut of_first).await, WorkEvent::Cancelled);
    assert_eq!(next(&mut of_first).await, WorkEvent::Over);
    assert!(of_second.try_recv().is_err(), "bob must not lead before ann's lease ends");
    assert_eq!(next(&mut of_second).await, WorkEvent::Began);
    assert_eq!(holder(&simulator), "bob");
}

/// A guard that counts as one working candidate until dropped. There must be at most one.
struct Working(Arc<AtomicUsize>);

impl Working {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        assert_eq!(count.fetch_add(1, Ordering::SeqCst), 0, "another candidate is working");
        Self(count.clone())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Contends for the lease repeatedly. In each term, works for a random time, or until the work is
/// dropped. Sometimes drops the whole run.
async fn contend(link: Link, name: String, seed: u64, working: Arc<AtomicUsize>, terms: Arc<AtomicUsize>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut candidate = elector(&link, &name);
    loop {
        let (length, ends_when_cancelled) = (Duration::from_millis(random.u64(..60_000)), random.bool());
        let work = |stop: CancellationToken| async {
            let _at_work = Working::begin(&working);
            terms.fetch_add(1, Ordering::SeqCst);
            let length = tokio::time::sleep(length);
            if ends_when_cancelled { _ = stop.run_until_cancelled_owned(length).await } else { length.await }
        };
        let shutdown = CancellationToken::new();
        let life = Duration::from_millis(random.u64(..120_000));
        if tokio::time::timeout(life, candidate.run(shutdown, work)).await.is_err() && random.bool() {
            candidate = elector(&link, &name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn faulty_requests_leave_one_leader_and_recover() {
    for seed in 0..10 {
        fastrand::seed(seed);
        let simulator = simulator();
        let (working, terms) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let links = [0, 1, 2].map(|_| Link::to(&simulator));
        let mut candidates = JoinSet::new();
        for (number, link) in links.iter().enumerate() {
            link.set(Behavior::Troubled(fastrand::u64(..)));
            let (link, working, terms) = (link.clone(), working.clone(), terms.clone());
            candidates.spawn(contend(link, format!("candidate-{number}"), fastrand::u64(..), working, terms));
        }
        let all = async {
            for _ in 0..60 {
                tokio::time::sleep(Duration::from_secs(10)).await;
                let link = &links[fastrand::usize(..3)];
                link.set(if fastrand::bool() {
                    Behavior::Silent
                } else {
                    Behavior::Troubled(fastrand::u64(..))
                });
            }
            links.iter().for_each(|link| link.set(Behavior::Open));
            // From now on, there must be a working candidate at least every 30 seconds, even if a dropped
            // run leaves a lease that must expire first.
            let mut idle_since = Instant::now();
            let quiet_until = idle_since + Duration::from_secs(300);
            while Instant::now() < quiet_until {
                tokio::time::sleep(Duration::from_millis(100)).await;
                if working.load(Ordering::SeqCst) > 0 {
                    idle_since = Instant::now();
                }
                assert!(
                    idle_since.elapsed() < Duration::from_secs(30),
                    "seed {seed}: no candidate is working"
                );
            }
        };
        tokio::select! {
            () = all => {}
            Some(ended) = candidates.join_next() => panic!("seed {seed}: {ended:?}"),
        }
        assert!(terms.load(Ordering::SeqCst) > 10, "seed {seed}: too few changes of the leader");
    }
}
