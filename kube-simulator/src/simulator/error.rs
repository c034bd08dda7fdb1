//! The errors of the in-process interface, which does not use HTTP.

use kube::core::Status;

/// An error of the simulator's in-process interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The simulator refused the operation, with the status that an API server would return over
    /// HTTP.
    #[error("the API server refused: {0}")]
    Refused(#[source] Box<Status>),

    /// The simulator does not serve this resource. Register it with the builder.
    #[error("the simulator does not serve {kind} in {api_version}; register it with the builder")]
    UnknownResource {
        /// The requested `apiVersion`.
        api_version: String,
        /// The requested `kind`.
        kind: String,
    },

    /// An object could not be converted to JSON, or JSON to the requested type.
    #[error("the object could not be converted to or from JSON")]
    Conversion(#[from] serde_json::Error),

    /// The loopback port could not be bound.
    #[error("the simulator could not listen on a loopback port")]
    Listen(#[source] std::io::Error),

    /// The client for the simulator could not be built.
    #[error("the client for the simulator could not be built")]
    Client(#[source] kube::Error),
}

impl From<Box<Status>> for Error {
    fn from(status: Box<Status>) -> Self {
        Self::Refused(status)
    }
}
