//! Trouble on request: what can happen to a request in the place of its true answer, and for how long.
//!
//! [`Fault`] says what happens, `FaultQueue` to which requests. [`FaultPlan`] draws a whole sequence of them from a
//! seed. What concerns open watches only is in `watch/injection.rs`.

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
