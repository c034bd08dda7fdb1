//! Turns Ctrl-C and termination signals into an error. While the error is returned to `main`, all
//! servers are dropped, which stops them.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context;

/// The error of a wait that the user interrupted.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Receives SIGINT, SIGTERM and SIGHUP, which would otherwise end the process at once.
#[derive(Debug)]
pub(crate) struct Signals {
    received: Receiver<()>,
}

impl Signals {
    /// Fails if this process has already called this function.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        // Sending fails only while the process ends, when no receiver is left.
        ctrlc::set_handler(move || sender.send(()).unwrap_or_default())
            .context("cannot install a signal handler for Ctrl-C; the system's reason follows")?;
        Ok(Self { received: receiver })
    }

    /// Waits for `duration`, or returns [`Interrupted`] as soon as a signal arrives.
    pub(crate) fn pause(&self, duration: Duration) -> Result<(), Interrupted> {
        match self.received.recv_timeout(duration) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Err(Interrupted),
        }
    }
}
