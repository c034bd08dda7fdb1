//! Faults that a test can request.
//!
//! [`Fault`] is a fault of one request, and `FaultQueue` assigns faults to requests. [`FaultPlan`] draws a whole
//! sequence of faults from a seed. Faults of open watches are in `watch/injection.rs`.

mod body;
mod gate;
mod kind;
mod plan;
mod queue;
mod response;
mod shutdown;
mod trouble;

pub use gate::Gate;
pub use kind::Fault;
pub use plan::{FaultPlan, FaultPlanOptions, PlannedTrouble};
pub use queue::Disturbance;
pub(crate) use queue::FaultQueue;
pub use response::CannedResponse;
pub(crate) use response::flow_control;
pub use shutdown::ShutdownAnswer;
pub use trouble::Trouble;
