//! Loom models of the queue's lock: add, take, end, shutdown, and the timekeeper of delayed keys.
//! `cargo xtask loom` runs the models; in an ordinary build this file is empty.
#![cfg(informer_loom)]

use std::time::Duration;

use futures::FutureExt;
use informer_workqueue::{ItemExponential, Workqueue};
use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use loom::thread;

type Queue = Workqueue<&'static str>;

const MINUTE: Duration = Duration::from_secs(60);

/// Explores all interleavings of the threads in `f` with at most three preemptions; nearly all bugs
/// need at most two preemptions.
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

fn queue() -> Queue {
    Workqueue::builder().rate_limiter(ItemExponential::new(MINUTE, MINUTE)).build()
}

/// Takes items until the queue is shut down and empty. Returns their keys, sorted.
fn work(queue: &Queue) -> Vec<&'static str> {
    let mut keys = Vec::new();
    while let Some(item) = block_on(queue.get()) {
        keys.push(*item.key());
        item.done();
    }
    keys.sort_unstable();
    keys
}

#[test]
fn worker_takes_keys_of_two_producers_until_shutdown() {
    model(|| {
        let queue = queue();
        let producers = ["a", "b"].map(|key| {
            let queue = queue.clone();
            thread::spawn(move || queue.add(key))
        });
        let worker = thread::spawn({
            let queue = queue.clone();
            move || work(&queue)
        });
        for producer in producers {
            producer.join().expect("no panic");
        }
        queue.shut_down();
        assert_eq!(worker.join().expect("no panic"), ["a", "b"]);
    });
}

#[test]
fn key_is_exclusive_and_processed_after_its_last_add() {
    model(|| {
        let queue = queue();
        let is_busy = Arc::new(AtomicBool::new(false));
        let (wanted, reached) = (Arc::new(AtomicUsize::new(1)), Arc::new(AtomicUsize::new(0)));
        queue.add("a");
        let workers = [(); 2].map(|()| {
            let (queue, is_busy) = (queue.clone(), Arc::clone(&is_busy));
            let (wanted, reached) = (Arc::clone(&wanted), Arc::clone(&reached));
            thread::spawn(move || {
                while let Some(item) = block_on(queue.get()) {
                    assert!(!is_busy.swap(true, SeqCst), "two workers have the key");
                    reached.store(wanted.load(SeqCst), SeqCst);
                    is_busy.store(false, SeqCst);
                    item.done();
                }
            })
        });
        wanted.store(2, SeqCst);
        queue.add("a");
        assert!(block_on(queue.shut_down_with_drain()));
        assert_eq!(reached.load(SeqCst), 2);
        for worker in workers {
            worker.join().expect("no panic");
        }
    });
}

#[test]
fn two_keys_reach_two_workers_that_take_one_each() {
    model(|| {
        let queue = queue();
        let workers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || {
                let item = block_on(queue.get()).expect("not shut down");
                let key = *item.key();
                item.done();
                key
            })
        });
        queue.add("a");
        queue.add("b");
        let mut keys = workers.map(|worker| worker.join().expect("no panic"));
        keys.sort_unstable();
        // Each key is queued only once, so the two workers have taken different keys.
        assert_eq!(keys, ["a", "b"]);
    });
}

#[test]
fn cancelled_get_loses_no_wake_up() {
    model(|| {
        let queue = queue();
        let cancelled = thread::spawn({
            let queue = queue.clone();
            // Polls once, and drops a pending future.
            move || queue.get().now_or_never().flatten().map(|item| item.done()).is_some()
        });
        let worker = thread::spawn({
            let queue = queue.clone();
            move || work(&queue).len()
        });
        queue.add("a");
        let is_taken = cancelled.join().expect("no panic");
        assert!(block_on(queue.shut_down_with_drain()));
        assert_eq!(usize::from(is_taken) + worker.join().expect("no panic"), 1);
    });
}

#[test]
fn drain_ends_for_all_waiters_when_all_is_processed() {
    model(|| {
        let queue = queue();
        queue.add("a");
        let done = Arc::new(AtomicUsize::new(0));
        let worker = thread::spawn({
            let (queue, done) = (queue.clone(), Arc::clone(&done));
            move || {
                while let Some(item) = block_on(queue.get()) {
                    done.fetch_add(1, SeqCst);
                    item.done();
                }
            }
        });
        let other = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.shut_down_with_drain())
        });
        assert!(block_on(queue.shut_down_with_drain()));
        assert_eq!(done.load(SeqCst), 1);
        assert!(other.join().expect("no panic"));
        worker.join().expect("no panic");
    });
}

#[test]
fn key_added_during_processing_is_drained() {
    model(|| {
        let queue = queue();
        queue.add("a");
        let item = block_on(queue.get()).expect("not shut down");
        queue.add("a");
        let worker = thread::spawn({
            let queue = queue.clone();
            move || work(&queue)
        });
        let first = thread::spawn(move || item.done());
        assert!(block_on(queue.shut_down_with_drain()));
        first.join().expect("no panic");
        assert_eq!(worker.join().expect("no panic"), ["a"]);
    });
}

#[test]
fn shutdown_ends_an_endless_drain() {
    model(|| {
        let queue = queue();
        queue.add("a");
        let item = block_on(queue.get()).expect("not shut down");
        let drain = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.shut_down_with_drain())
        });
        // Waits for the drain to begin, so that the shutdown ends it.
        while !queue.is_shut_down() {
            thread::yield_now();
        }
        queue.shut_down();
        assert!(!drain.join().expect("no panic"));
        item.done();
    });
}

#[test]
fn shorter_delay_wakes_a_waiting_worker() {
    model(|| {
        let queue = queue();
        queue.add_after("late", 10 * MINUTE);
        let worker = thread::spawn({
            let queue = queue.clone();
            move || {
                let item = block_on(queue.get()).expect("not shut down");
                let key = *item.key();
                item.done();
                key
            }
        });
        queue.add_after("early", MINUTE);
        queue.advance(MINUTE);
        assert_eq!(worker.join().expect("no panic"), "early");
    });
}

#[test]
fn one_of_two_waiting_workers_is_the_timekeeper() {
    model(|| {
        let queue = queue();
        queue.add_after("first", MINUTE);
        queue.add_after("second", 2 * MINUTE);
        let workers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.get()).expect("not shut down").done())
        });
        queue.advance(MINUTE);
        queue.advance(MINUTE);
        for worker in workers {
            worker.join().expect("no panic");
        }
        assert_eq!((queue.len(), queue.delayed()), (0, 0));
    });
}

#[test]
fn cancelled_timekeeper_is_replaced() {
    model(|| {
        let queue = queue();
        queue.add_after("a", MINUTE);
        let cancelled = thread::spawn({
            let queue = queue.clone();
            move || queue.get().now_or_never().flatten().map(|item| item.done()).is_some()
        });
        let worker = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get()).map(|item| item.done()).is_some()
        });
        queue.advance(MINUTE);
        if cancelled.join().expect("no panic") {
            queue.shut_down();
            assert!(!worker.join().expect("no panic"));
        } else {
            assert!(worker.join().expect("no panic"));
        }
    });
}

#[test]
fn item_dropped_by_a_worker_is_taken_by_another() {
    model(|| {
        let queue = queue();
        queue.add("a");
        let item = block_on(queue.get()).expect("not shut down");
        let worker = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get()).expect("not shut down").done()
        });
        drop(item);
        queue.advance(MINUTE);
        worker.join().expect("no panic");
        assert_eq!(queue.abandoned(), 1);
    });
}
