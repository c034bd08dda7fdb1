//! [`SharedServer`]: records whether a server is available, and for which resources streaming lists
//! are disabled. Several reflectors can share this record.
//!
//! client-go has no counterpart: its informers retry independently of each other.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::outage::Outage;

/// The minimum time for which streaming lists of a resource are disabled. The maximum is three
/// times as long.
const UNSUPPORTED_FOR: Duration = Duration::from_secs(10 * 60);

/// Records whether a server is available, and for which resources streaming lists are disabled.
/// Several reflectors can share this record. A clone is another handle to the same record.
///
/// Set the same value for all reflectors with the same server and credentials, with
/// [`ReflectorConfig::server`](super::ReflectorConfig::server). A shared informer factory does
/// that. By default, each [`ReflectorConfig::new`](super::ReflectorConfig::new) has its own value,
/// which clones of the config share.
///
/// While the server is unavailable (it cannot be reached, returns 502, 503 or 504, or reports that
/// its storage did not respond in time):
/// - After a failure, each reflector backs off. The maximum backoff is half of the time since the
///   reflector's first failure in the outage. The maximum is never less than twice the first wait
///   of the [backoff](super::ReflectorConfig::backoff). The first wait is 0.8 seconds by default. A
///   longer `Retry-After` takes precedence.
/// - After its backoff, a reflector waits for its turn. The reflectors send their requests one
///   after another, with pauses of 0.3 to 5 seconds. The longer a reflector has been failing, the
///   later is its turn, so that resources with a permanent failure delay no others.
/// - When a reflector gets its first response after the outage, two waiting reflectors can send
///   their requests before their backoffs are over. Only a `Retry-After`, and a random pause of up
///   to 0.1 seconds, still delay these requests. When one of the two gets a response, two more
///   reflectors can send their requests, and so on.
///
/// If a streaming list of a resource stalls, is invalid or is refused as unsupported, all
/// reflectors make paged lists of the resource for the next 10 to 30 minutes. The same happens if
/// the server closes two streaming lists of a reflector early, one after the other.
#[derive(Clone, Default)]
pub struct SharedServer {
    /// The resources whose streaming lists were disabled. The value is the time at which the
    /// streaming lists of the resource are enabled again.
    unsupported: Arc<Mutex<HashMap<String, Instant>>>,
    pub(super) outage: Arc<Outage>,
}

impl SharedServer {
    /// Returns the initial state: the server is available and supports streaming lists.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn may_stream(&self, resource: &str) -> bool {
        let mut unsupported = self.unsupported.lock();
        let is_over = unsupported.get(resource).is_none_or(|until| *until <= Instant::now());
        if is_over {
            unsupported.remove(resource);
        }
        is_over
    }

    /// Disables streaming lists of this resource for 10 to 30 minutes.
    pub(super) fn disable_streams(&self, resource: &str) {
        // Random, so that not all reflectors request streaming lists from an upgraded server at
        // once.
        let until = Instant::now() + UNSUPPORTED_FOR.mul_f64(1.0 + 2.0 * fastrand::f64());
        self.unsupported.lock().insert(resource.to_owned(), until);
    }
}

impl fmt::Debug for SharedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unsupported: Vec<_> = self.unsupported.lock().keys().cloned().collect();
        f.debug_struct("SharedServer").field("not_streamed", &unsupported).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refused_streams_are_tried_again_after_ten_to_thirty_minutes() {
        let server = SharedServer::new();
        server.disable_streams("pods");
        assert!(!server.may_stream("pods") && server.may_stream("nodes"));
        tokio::time::advance(Duration::from_secs(599)).await;
        assert!(!server.clone().may_stream("pods"));
        tokio::time::advance(Duration::from_secs(1202)).await;
        assert!(server.may_stream("pods"));
    }
}
