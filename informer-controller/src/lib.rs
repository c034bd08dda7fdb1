//! Kubernetes controllers on top of [shared informers](informer_factory).
//!
//! - [`ControllerRunner`] calls an async function with the key of each object that changes.
//! - [`WriteTracker`] delays the function while a cache lacks the controller's own last write.
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
