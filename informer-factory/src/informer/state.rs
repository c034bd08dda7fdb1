//! [`InformerState`]: whether an informer is at work, and if not, why.

use tokio::sync::watch;

/// The state of an informer's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InformerState {
    /// Its task has not been run yet.
    Idle,
    /// Its task runs; see its [health](super::SharedIndexInformer::health).
    Running,
    /// The informer has ended and cannot be started again. Its store can still be read and stays
    /// unchanged.
    Stopped(StopCause),
}

/// Why an informer has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopCause {
    /// It was stopped on request.
    Shutdown,
    /// Its task was dropped before or while it ran.
    Dropped,
    /// Its task panicked.
    Panicked,
}

/// Publishes the state. The task owns it, so that its drop shows every end of the task.
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
