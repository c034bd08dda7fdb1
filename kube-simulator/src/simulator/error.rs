//! The errors of the in-process interface, which does not use HTTP.

use kube::core::Status;

/// An error of the simulator's in-process interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The simulator refused the operation, with the status that an API server would return over
    /// HTTP.
    #[error("the simulated API server refused the request: {0}")]
    Refused(#[source] Box<Status>),

    /// The simulator does not serve this kind. Add the kind with
    /// [`SimulatorBuilder::resource`](crate::SimulatorBuilder::resource).
    #[error(
        "the simulator does not serve kind {kind:?} of {api_version:?}; add the kind with `SimulatorBuilder::resource`"
    )]
    UnknownResource {
        /// The requested `apiVersion`.
        api_version: String,
        /// The requested `kind`.
        kind: String,
    },

    /// An object could not be converted to JSON, or JSON could not be converted to the requested
    /// type.
    #[error("failed to convert an object to or from JSON")]
    Conversion(#[from] serde_json::Error),

    /// The loopback port could not be bound, or the TLS certificate could not be generated.
    #[error("failed to bind a loopback port or to generate a TLS certificate for the simulator")]
    Listen(#[source] std::io::Error),

    /// The client for the simulator could not be built.
    #[error("failed to build a client for the simulator")]
    Client(#[source] kube::Error),
}

impl From<Box<Status>> for Error {
    fn from(status: Box<Status>) -> Self {
        Self::Refused(status)
    }
}
