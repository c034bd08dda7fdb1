//! A work queue for controllers: the part of client-go's `util/workqueue` that every controller is built on, in Rust.
//!
//! A controller is told of changes, and brings the world to where it should be, key by key. Between the two is this
//! queue. Callbacks [add](Workqueue::add) keys, at any rate and from any thread; workers [take](Workqueue::get) them. A
//! key is queued once, however often it is added, and is never with two workers at a time; if it is added while a worker
//! has it, it is queued once more afterwards. So no change is missed, and no two workers meet over one object.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use std::time::Duration;
//! use informer_workqueue::{Item, Workqueue};
//!
//! async fn reconcile(key: &str) -> Result<(), std::io::Error> {
//!     println!("looking after {key}");
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
//! queue.shut_down_with_drain().await; // What is delayed is forgotten then.
//! for worker in workers {
//!     worker.await?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It knows nothing of Kubernetes, and keys can be of any type. It starts no task and no thread.
//!
//! # Failures
//!
//! An [`Item`] says how the work went: [`done`](Item::done), done [for now](Item::done_after), or to be
//! [retried](Item::retry). What is dropped without a word is retried, too: a worker that panics, is cancelled or returns
//! early loses nothing. When a retried key comes again is the business of a [`RateLimiter`].
//!
//! # Priorities
//!
//! After a restart a controller is told of all objects that exist, and all of them are queued; a change that somebody
//! waits for should not have to wait behind them. So add what is not urgent with [`Priority::Low`]: initial adds and
//! resyncs. Everything else overtakes it, but it does not starve: a priority that has something waiting, and has been
//! passed over ten times in a row, goes first. So at least one item in twelve is taken from it, however much there is
//! above it; and with items above it that are fewer than that, more.
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
//! With [`fair_by`](WorkqueueBuilder::fair_by), groups of keys take turns, for example namespaces: a namespace with ten
//! thousand keys in the queue delays each key of the others by one turn only. That holds within each priority.
//!
//! # Time
//!
//! Time is tokio's, so tests can pause it. Delayed keys have no task: of the workers that wait in [`Workqueue::get`], one
//! sleeps until the earliest delay is over. Adding, with a delay or without, needs no runtime.
//!
//! # What is different from client-go
//!
//! - A drain ends when nothing is queued and no worker has anything, for everyone who waits for it. Workers are not sent
//!   home before, while a key that a worker has is still to come back.
//! - Nothing is dropped half-way: an item ends once, by type. What isn't ended is retried.
//! - Priorities and fairness.
//! - Adding with a delay never waits, and shutting down leaves nothing behind that has to end first.
//! - It is not bounded, as there: whoever adds keys never waits, and a key that nobody takes stays. What keeps it small is
//!   that a key is in it once.
//! - A rate limiter forgets keys that are not forgotten by their workers, some time after their last failure.

mod builder;
mod delays;
mod get;
mod item;
mod lanes;
mod metrics;
mod priority;
mod queue_metrics;
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
pub use queue_metrics::QueueMetrics;
pub use rate_limiter::{
    Bucket, ItemExponential, ItemFastSlow, MaxOf, RateLimiter, WithMaxWait, default_controller_rate_limiter,
    default_item_based_rate_limiter,
};
pub use workqueue::Workqueue;

/// So that its examples are compiled, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
