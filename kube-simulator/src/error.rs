//! What can go wrong when a program drives the simulator directly, that is, without HTTP.

use kube::core::Status;

/// The errors of the simulator's in-process interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The simulator refused the operation, for the reason that an API server would give over HTTP.
    #[error("the API server refused: {0}")]
    Refused(#[source] Box<Status>),

    /// The simulator does not serve this resource; register it with the builder.
    #[error("the simulator does not serve {kind} in {api_version}")]
    UnknownResource {
        /// The `apiVersion` that was asked for.
        api_version: String,
        /// The `kind` that was asked for.
        kind: String,
    },

    /// An object could not be turned into JSON, or JSON not into the wanted type.
    #[error("the object could not be converted")]
    Conversion(#[from] serde_json::Error),

    /// The loopback port could not be bound.
    #[error("the simulator could not listen on a loopback port")]
    Listen(#[source] std::io::Error),

    /// The client for the simulator could not be built.
    #[error("the client could not be built")]
    Client(#[source] kube::Error),
}

impl From<Box<Status>> for Error {
    fn from(status: Box<Status>) -> Self {
        Self::Refused(status)
    }
}
