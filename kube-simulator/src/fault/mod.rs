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
mod server_fault;
mod shutdown;

pub use gate::Gate;
pub use injection::WatchInjection;
pub(crate) use injection::{Content, Ending, PlacedInjection};
pub use kind::Fault;
pub use plan::{FaultPlan, FaultPlanOptions, PlannedFault};
pub use queue::FaultGuard;
pub(crate) use queue::FaultQueue;
pub use response::CannedResponse;
pub(crate) use response::flow_control;
pub use server_fault::ServerFault;
pub use shutdown::ShutdownAnswer;
