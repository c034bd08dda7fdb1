//! [`Target`]: the servers that scenarios talk to, and how the real ones are found that `cargo xtask e2e` starts.

use kube_simulator::{SimulatorBuilder, StreamingLists};

/// Says that a controller-manager takes care of what is on the real servers.
const CONTROLLERS: &str = "INFORMER_E2E_CONTROLLERS";

/// Which server a scenario is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One as it comes.
    Usual,
    /// One with other feature gates: CBOR is on, and streaming lists are off.
    OtherGates,
    /// One that takes its time to leave, once it is told to. There is one for the whole suite.
    Leaving,
    /// One that leaves at once, as without any flags. There is one for the whole suite.
    LeavingAtOnce,
}

impl Target {
    /// Names the kubeconfig of the real server.
    pub(crate) fn kubeconfig(self) -> &'static str {
        match self {
            Self::Usual => "INFORMER_E2E_KUBECONFIG",
            Self::OtherGates => "INFORMER_E2E_OTHER_GATES_KUBECONFIG",
            Self::Leaving => "INFORMER_E2E_LEAVING_KUBECONFIG",
            Self::LeavingAtOnce => "INFORMER_E2E_LEAVING_AT_ONCE_KUBECONFIG",
        }
    }

    /// Whether a scenario may tell it to leave.
    pub(crate) fn leaves(self) -> bool {
        matches!(self, Self::Leaving | Self::LeavingAtOnce)
    }

    /// Whether controllers take care of what is on the real server. Of objects of its own, no controller knows.
    pub(crate) fn has_controllers(self) -> bool {
        self != Self::OtherGates && std::env::var_os(CONTROLLERS).is_some()
    }

    /// Names the process of the real server.
    pub(crate) fn process(self) -> String {
        self.kubeconfig().replace("KUBECONFIG", "PID")
    }

    /// Under which key the real server stores everything.
    pub(crate) fn prefix(self) -> &'static str {
        if self == Self::OtherGates { "/other-gates" } else { "/registry" }
    }

    /// Makes the simulator the same.
    pub(crate) fn simulated(self, builder: SimulatorBuilder) -> SimulatorBuilder {
        match self {
            Self::OtherGates => builder.serve_cbor().streaming_lists(StreamingLists::Refused),
            Self::Usual | Self::Leaving | Self::LeavingAtOnce => builder,
        }
    }
}
