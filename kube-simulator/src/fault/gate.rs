//! [`Gate`]: holds stalled responses until a test releases them.

use tokio_util::sync::CancellationToken;

/// Holds stalled responses until it is [released](Self::release). A clone is another handle to the
/// same gate.
///
/// A gate that is never released holds responses until the client disconnects or the simulator
/// stops.
#[derive(Clone, Debug, Default)]
pub struct Gate(CancellationToken);

impl Gate {
    /// Returns a gate that holds responses until it is released.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Releases all stalled responses. Later responses do not stall. This cannot be undone.
    pub fn release(&self) {
        self.0.cancel();
    }

    /// Returns whether [`release`](Self::release) has been called.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the gate is [released](Self::release), or the server stops.
    pub(crate) async fn wait_for_release(&self, stop: &CancellationToken) {
        tokio::select! {
            biased;
            () = self.0.cancelled() => {}
            () = stop.cancelled() => {}
        }
    }
}
