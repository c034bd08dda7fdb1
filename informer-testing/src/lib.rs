//! Test utilities for informers and for programs that use them.
//!
//! - [`MemorySource`] replaces the API server and its client: a `ListerWatcher` whose objects are
//!   in memory, without HTTP, JSON or tasks.
//! - [`Replica`] is a handler that rebuilds the store from its events and records invalid events,
//!   for example an update of an object that does not exist.
//! - [`Simulator`] is an API server that keeps its objects in memory. This crate re-exports it with
//!   all other items of [`kube_simulator`].

mod memory_source;
mod replica;

pub use kube_simulator::*;
pub use memory_source::MemorySource;
pub use replica::Replica;
