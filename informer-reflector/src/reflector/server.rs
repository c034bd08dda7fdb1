//! [`SharedServer`]: what the reflectors of one client know together about their server.
//!
//! It remembers which resources cannot be streamed, and coordinates the requests of all reflectors while the server is
//! unavailable. client-go has neither: there, N informers retry N times as often in an outage.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::outage::{Outage, Recovery, Trouble};

/// How long streaming lists are not tried again after they failed: between this and three times as long, so that an
/// upgraded server is noticed before long, and not by all reflectors at once.
const SHUN: Duration = Duration::from_secs(10 * 60);

/// What the reflectors of one client know together about their server. Cloning gives another handle on the same
/// knowledge.
///
/// Give one to all reflectors that talk to the same server with the same credentials:
/// [`ReflectorConfig::server`](super::ReflectorConfig::server). A shared informer factory does; a reflector that is given
/// none has one of its own.
///
/// While the server is unavailable (it cannot be reached, or answers 502, 503 or 504):
/// - Each reflector backs off, but never for longer than half the time since its first failure.
/// - After its backoff a reflector waits for its turn. A turn is granted once every fifth of the time that the reflector
///   has been failing, at most every 5 seconds. Reflectors that were served most recently go first, so that resources
///   that are down for good delay no others.
/// - A reflector that gets an answer releases two of the waiting ones at once, and so on; one that is refused stops that.
///   So recovery is as quick as the server can bear. A wait that the server asked for (`Retry-After`) is completed first.
///
/// A resource whose lists cannot be streamed is listed in pages for the next 10 to 30 minutes, by all reflectors.
#[derive(Clone)]
pub struct SharedServer {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Resources that are not to be streamed, and until when.
    shunned: Mutex<HashMap<String, Instant>>,
    outage: Arc<Outage>,
}

impl SharedServer {
    /// Returns knowledge of a server of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self { inner: Arc::default() }
    }

    /// Returns whether streaming lists of this resource are worth a try.
    pub(super) fn may_stream(&self, resource: &str) -> bool {
        let mut shunned = self.inner.shunned.lock();
        let is_over = shunned.get(resource).is_none_or(|until| *until <= Instant::now());
        if is_over {
            shunned.remove(resource);
        }
        is_over
    }

    /// Stops streaming lists of this resource for some time.
    pub(super) fn shun_streams(&self, resource: &str) {
        let until = Instant::now() + SHUN.mul_f64(1.0 + 2.0 * fastrand::f64());
        self.inner.shunned.lock().insert(resource.to_owned(), until);
    }

    /// Waits for the next request of a reflector to an unavailable server, as the type's documentation says.
    ///
    /// # Cancel safety
    /// If the future is dropped, the turn goes to the next waiter.
    pub(super) async fn wait_for_turn(&self, trouble: &Trouble, queued: impl FnMut(Instant)) {
        self.inner.outage.wait_for_turn(trouble, queued).await;
    }

    /// Notes that a reflector whose server was unavailable got an answer, and releases two waiters.
    pub(super) fn answered(&self) -> Recovery {
        Outage::answered(&self.inner.outage)
    }

    /// Counts an answer to any reflector.
    pub(super) fn count_answer(&self) {
        self.inner.outage.count_answer();
    }

    /// Returns how many requests have been answered so far.
    pub(super) fn answers(&self) -> u64 {
        self.inner.outage.answers()
    }
}

impl Default for SharedServer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SharedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shunned: Vec<_> = self.inner.shunned.lock().keys().cloned().collect();
        f.debug_struct("SharedServer").field("not_streamed", &shunned).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refused_streams_are_tried_again_after_ten_to_thirty_minutes() {
        let server = SharedServer::new();
        server.shun_streams("pods");
        assert!(!server.may_stream("pods") && server.may_stream("nodes"));
        tokio::time::advance(Duration::from_secs(599)).await;
        assert!(!server.clone().may_stream("pods"));
        tokio::time::advance(Duration::from_secs(1202)).await;
        assert!(server.may_stream("pods"));
    }
}
