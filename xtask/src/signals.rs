//! Ctrl-C and termination, turned into an error that unwinds: whatever is being waited for, the
//! wait ends and every server started so far is stopped by its `Drop`.

use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context;

/// The error that a wait ends with when the user asked to stop.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Receives SIGINT, SIGTERM and SIGHUP instead of letting them end the process on the spot.
#[derive(Debug)]
pub(crate) struct Signals {
    received: Mutex<Receiver<()>>,
}

impl Signals {
    /// Takes over the signals. Works once per process.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        // A failed send means that nobody waits any more: the process is already on its way out.
        ctrlc::set_handler(move || sender.send(()).unwrap_or_default())
            .context("cannot handle Ctrl-C; run `cargo xtask` from an ordinary shell")?;
        Ok(Self { received: Mutex::new(receiver) })
    }

    /// Waits for `duration`, or returns [`Interrupted`] as soon as the user asks to stop.
    pub(crate) fn pause(&self, duration: Duration) -> Result<(), Interrupted> {
        let received = self.received.lock().map_err(|_| Interrupted)?;
        match received.recv_timeout(duration) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Err(Interrupted),
        }
    }
}
