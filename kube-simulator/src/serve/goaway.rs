//! [`Goaways`]: when clients are told to leave their connections, though the server goes on.

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Tells connections that no more requests are to come over them.
#[derive(Debug)]
pub(crate) struct Goaways {
    /// How likely a request over HTTP/2 is to be the last of its connection.
    chance: f64,
    random: Mutex<fastrand::Rng>,
    /// Cancelled when everybody is to leave; a new one is made then.
    everybody: Mutex<CancellationToken>,
}

impl Goaways {
    pub(crate) fn new(chance: f64, seed: u64) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Self { chance, random, everybody: Mutex::default() }
    }

    /// The token of a new connection, to be cancelled when it is to be left.
    pub(super) fn new_connection(&self) -> CancellationToken {
        self.everybody.lock().child_token()
    }

    /// Draws whether a request is the last of its connection.
    pub(super) fn draw(&self) -> bool {
        self.random.lock().f64() < self.chance
    }

    /// Has everybody leave; what comes later may stay.
    pub(crate) fn to_all(&self) {
        std::mem::take(&mut *self.everybody.lock()).cancel();
    }
}
