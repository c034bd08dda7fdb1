//! Faults that a test can request.
//!
//! [`Fault`] is a fault of one request, and `FaultQueue` assigns faults to requests. [`FaultPlan`]
//! draws a whole sequence of faults from a seed.

mod body;
mod gate;
mod injection;
mod kind;
mod plan;
mod queue;
mod response;
mod shutdown;
mod trouble;

pub use gate::Gate;
pub use injection::WatchInjection;
pub(crate) use injection::{Content, Ending, PlacedInjection};
pub use kind::Fault;
pub use plan::{FaultPlan, FaultPlanOptions, PlannedTrouble};
pub use queue::Disturbance;
pub(crate) use queue::FaultQueue;
pub use response::CannedResponse;
pub(crate) use response::flow_control;
pub use shutdown::ShutdownAnswer;
pub use trouble::Trouble;
