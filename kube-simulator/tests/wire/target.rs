//! [`Target`]: the kinds of servers, and the environment variables by which `cargo xtask e2e`
//! passes the real servers.

use kube_simulator::{SimulatorBuilder, StreamingLists};

/// The environment variable that is set if a controller-manager runs on the real servers.
const CONTROLLERS: &str = "INFORMER_E2E_CONTROLLERS";

/// The kind of server that a scenario needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A server with default settings.
    Usual,
    /// A server with different feature gates: CBOR is on, and streaming lists are off.
    OtherGates,
    /// A server with a shutdown delay. The suite has one such server, for one scenario.
    WithShutdownDelay,
    /// A server without a shutdown delay, which is the default of a kube-apiserver. The suite has
    /// one such server, for one scenario.
    WithoutShutdownDelay,
}

impl Target {
    /// Returns the environment variable with the path of the real server's kubeconfig.
    pub(crate) fn kubeconfig(self) -> &'static str {
        match self {
            Self::Usual => "INFORMER_E2E_KUBECONFIG",
            Self::OtherGates => "INFORMER_E2E_OTHER_GATES_KUBECONFIG",
            Self::WithShutdownDelay => "INFORMER_E2E_WITH_SHUTDOWN_DELAY_KUBECONFIG",
            Self::WithoutShutdownDelay => "INFORMER_E2E_WITHOUT_SHUTDOWN_DELAY_KUBECONFIG",
        }
    }

    /// Returns whether a scenario can shut the server down.
    pub(crate) fn can_be_shut_down(self) -> bool {
        matches!(self, Self::WithShutdownDelay | Self::WithoutShutdownDelay)
    }

    /// Returns whether controllers manage the real server. The server with different gates has its
    /// own storage prefix and no controllers.
    pub(crate) fn has_controllers(self) -> bool {
        self != Self::OtherGates && std::env::var_os(CONTROLLERS).is_some()
    }

    /// Returns the environment variable with the process ID of the real server.
    pub(crate) fn process(self) -> String {
        self.kubeconfig().replace("KUBECONFIG", "PID")
    }

    /// Returns the prefix of all keys of the real server in etcd.
    pub(crate) fn prefix(self) -> &'static str {
        if self == Self::OtherGates { "/other-gates" } else { "/registry" }
    }

    /// Configures a simulator like the real server.
    pub(crate) fn simulated(self, builder: SimulatorBuilder) -> SimulatorBuilder {
        match self {
            Self::OtherGates => builder.serve_cbor().streaming_lists(StreamingLists::Refused),
            Self::Usual | Self::WithShutdownDelay | Self::WithoutShutdownDelay => builder,
        }
    }
}
