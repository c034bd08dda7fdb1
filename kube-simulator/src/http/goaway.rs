//! [`Goaways`]: asks clients to move to another connection while the server keeps running.

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Makes clients leave their connections: HTTP/2 connections receive a `GOAWAY`, and idle HTTP/1.1
/// connections are closed.
#[derive(Debug)]
pub(crate) struct Goaways {
    /// The probability that an HTTP/2 request is the last of its connection.
    chance: f64,
    random: Mutex<fastrand::Rng>,
    /// The parent of the cancellation tokens of all connections since the last [`Goaways::to_all`].
    parent: Mutex<CancellationToken>,
}

impl Goaways {
    pub(crate) fn new(chance: f64, seed: u64) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Self { chance, random, parent: Mutex::default() }
    }

    /// Returns a token that is cancelled when the client must leave the connection.
    pub(super) fn new_connection(&self) -> CancellationToken {
        self.parent.lock().child_token()
    }

    /// Decides at random whether a request is the last of its connection.
    pub(super) fn draw(&self) -> bool {
        self.random.lock().f64() < self.chance
    }

    /// Makes clients leave all current connections, except those in a TLS handshake.
    pub(crate) fn to_all(&self) {
        std::mem::take(&mut *self.parent.lock()).cancel();
    }
}
