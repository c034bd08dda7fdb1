//! [`InformerState`]: whether an informer is idle, running or stopped, and why it stopped.

use tokio::sync::watch;

/// The state of an informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InformerState {
    /// The informer's task has not been run yet.
    Idle,
    /// The informer's task runs. The informer's [health](super::SharedIndexInformer::health) shows
    /// whether its lists and watches succeed.
    Running,
    /// The informer has stopped and cannot be started again. Its store can still be read, but no
    /// longer changes.
    Stopped(StopCause),
}

/// Why an informer has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopCause {
    /// The informer was stopped on request, or because its factory was dropped.
    Shutdown,
    /// The informer's task was dropped before or while it ran.
    Dropped,
    /// The informer's task panicked, or was dropped by another panic while it ran.
    Panicked,
}

/// Publishes the state of an informer. Dropping this value publishes that the informer's task has
/// ended.
#[derive(Debug)]
pub(super) struct StateKeeper(watch::Sender<InformerState>);

impl StateKeeper {
    pub(super) fn new() -> (Self, watch::Receiver<InformerState>) {
        let (sender, receiver) = watch::channel(InformerState::Idle);
        (Self(sender), receiver)
    }

    pub(super) fn running(&self) {
        self.0.send_replace(InformerState::Running);
    }

    pub(super) fn shut_down(self) {
        self.0.send_replace(InformerState::Stopped(StopCause::Shutdown));
    }
}

impl Drop for StateKeeper {
    fn drop(&mut self) {
        let panicking = std::thread::panicking();
        self.0.send_if_modified(|state| {
            let cause = match state {
                InformerState::Stopped(_) => return false,
                // A task that has not run can't have panicked, even if another panic is unwinding.
                InformerState::Running if panicking => StopCause::Panicked,
                InformerState::Idle | InformerState::Running => StopCause::Dropped,
            };
            *state = InformerState::Stopped(cause);
            true
        });
    }
}
