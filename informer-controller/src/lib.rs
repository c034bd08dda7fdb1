//! Kubernetes controllers on top of [shared informers](informer_factory).
//!
//! - [`ControllerRunner`] calls an async function with keys, such as those of changed objects or of
//!   their owners.
//! - [`WriteTracker`] delays the function for a key while a cache lacks the controller's own last
//!   write for the key, but not longer than a deadline.
//! - [`LeaderElector`] makes sure that only one of several processes does the work.
//!
//! Each is useful alone. [`ControllerRunner`] has a complete example.

mod leader_election;
#[cfg(doctest)]
mod readme;
mod runner;
mod write_tracker;

pub use {informer_factory, informer_workqueue};

pub use informer_workqueue::{Priority, Workqueue};
pub use leader_election::{
    ElectionProblem, ElectionStatus, LeaderElectionConfig, LeaderElectionError, LeaderElector, LeadershipEnd,
};
pub use runner::{
    ControllerRunner, FailedKey, ParkedKey, ReconcileRequest, Reconciled, RunnerMonitor, RunnerStats,
    controller_key, keys_in_index, own_key,
};
pub use write_tracker::{KeyWrites, WriteInFlight, WriteTracker};
