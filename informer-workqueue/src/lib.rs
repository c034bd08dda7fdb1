//! A work queue for controllers, like client-go's `util/workqueue`.
//!
//! Callbacks [add](Workqueue::add) the keys of changed objects, with any frequency and from any
//! thread; workers [take](Workqueue::get) keys and reconcile their objects. A key is queued once,
//! however often it is added. A key that is added while a worker processes it is queued again
//! afterwards. So no change is missed, and two workers never process the same object at the same
//! time.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use std::time::Duration;
//! use informer_workqueue::{Item, Workqueue};
//!
//! async fn reconcile(key: &str) -> Result<(), std::io::Error> {
//!     println!("reconciling {key}");
//!     Ok(())
//! }
//!
//! async fn work(queue: Workqueue<String>) {
//!     while let Some(item) = queue.get().await {
//!         match reconcile(item.key()).await {
//!             Ok(()) => item.done(),
//!             Err(error) => {
//!                 eprintln!("{}: {error}", item.key());
//!                 item.retry();
//!             }
//!         }
//!     }
//! }
//!
//! let queue = Workqueue::new();
//! let workers = [(); 2].map(|()| tokio::spawn(work(queue.clone())));
//! queue.add("shop/apple".to_owned());
//! queue.add_after("shop/pear".to_owned(), Duration::from_secs(60));
//! queue.shut_down_with_drain().await; // Delayed keys are dropped.
//! for worker in workers {
//!     worker.await?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does not depend on Kubernetes: keys can have any type that is `Hash`, `Eq`, `Clone`,
//! `Send` and `'static`. It starts no task and no thread.
//!
//! # Failures
//!
//! A worker ends an [`Item`] with [`done`](Item::done), [`done_after`](Item::done_after),
//! [`retry`](Item::retry) or [`release`](Item::release). A dropped item is retried, too, so no key
//! is lost if a worker panics, is cancelled or returns early. A [`RateLimiter`] determines when
//! items are retried. After a shutdown, no item is retried.
//!
//! # Priorities
//!
//! After a restart, all existing objects are queued, and urgent changes should not wait for all of
//! them. So add initial objects and resyncs with [`Priority::Low`]. Keys of higher priorities are
//! taken first, but cannot starve keys of lower priorities: while a priority has queued keys, at
//! most eleven keys in a row are taken from other priorities.
//!
//! ```
//! use informer_workqueue::{Priority, Workqueue};
//!
//! fn on_add(queue: &Workqueue<String>, key: &str, is_in_initial_list: bool) {
//!     let priority = if is_in_initial_list { Priority::Low } else { Priority::Normal };
//!     queue.add_with_priority(key.to_owned(), priority);
//! }
//! # on_add(&Workqueue::new(), "shop/apple", true);
//! ```
//!
//! # Fairness
//!
//! With [`fair_by`](WorkqueueBuilder::fair_by), groups of keys take turns, for example namespaces:
//! a namespace with ten thousand queued keys delays a key of another namespace by only one turn.
//! Groups take turns within each priority.
//!
//! # Time
//!
//! The queue uses tokio's clock, so tests can pause time. The queue starts no task for delayed
//! keys: one of the workers that wait in [`Workqueue::get`] sleeps until the earliest delay is
//! over. Adding keys, with or without a delay, needs no runtime.
//!
//! # Differences from client-go
//!
//! - A drain ends for all waiters when no key is queued and no worker has an item. A key can be
//!   added while a worker has its item. Such a key is queued again when the item ends. During a
//!   drain, `get` waits for such keys before it returns `None`.
//! - The type of items ensures that each item ends at most once. An item that is dropped without
//!   being ended is retried.
//! - Queues have priorities and fairness between groups.
//! - Adding with a delay never waits, and no background work remains after a shutdown.
//! - A key whose delay is over is queued when a worker takes or waits for an item, or when
//!   [`len`](Workqueue::len) or [`delayed`](Workqueue::delayed) is called. So while all workers are
//!   busy, a key that is [added](Workqueue::add) later can be queued first, and the wait that
//!   [`Metrics::taken`] receives is shorter than in client-go.
//! - A rate limiter that holds failures of at least 1,024 keys drops old failures from time to
//!   time. client-go's limiters keep the failures of a key until the worker calls `Forget`.
//!
//! As in client-go, the queue is unbounded: adding never waits, and keys that no worker takes stay
//! queued. The size of the queue is limited by the number of different keys.

mod builder;
mod delays;
mod get;
mod item;
mod lanes;
mod metrics;
mod priority;
mod rate_limiter;
mod shared;
mod slots;
mod state;
mod sync;
mod waiters;
mod workqueue;

pub use builder::WorkqueueBuilder;
pub use item::Item;
pub use metrics::{Metrics, UnfinishedWork};
pub use priority::Priority;
pub use rate_limiter::{
    Bucket, ItemExponential, ItemFastSlow, MaxOf, RateLimiter, WithMaxWait, default_controller_rate_limiter,
    default_item_based_rate_limiter,
};
pub use workqueue::Workqueue;

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
