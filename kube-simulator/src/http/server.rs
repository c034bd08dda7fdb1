//! [`Server`]: the state of a simulated API server.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::credentials::Credentials;
use super::goaway::Goaways;
use super::request::RequestLog;
use super::tls::Tls;
use super::watch::{WatchRegistry, WatchRules};
use crate::api::list::LateLists;
use crate::api::{Api, Behavior};
use crate::fault::{FaultQueue, ShutdownAnswer};

/// The time between the ends of two watches that are open at the start of a shutdown with
/// [`ShutdownAnswer::TooManyRequests`].
const WATCH_END_INTERVAL: Duration = Duration::from_millis(5);

/// The time from the start of a shutdown with [`ShutdownAnswer::ServiceUnavailable`] to the end of
/// all watches. It equals the default `--request-timeout` of a real server.
const WATCH_GRACE_PERIOD: Duration = Duration::from_secs(60);

/// The configuration of a [`Server`]. Users set it with
/// [`SimulatorBuilder`](crate::SimulatorBuilder).
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) behavior: Behavior,
    pub(crate) watch_rules: WatchRules,
    pub(crate) bookmark_interval: Duration,
    /// The probability that an HTTP/2 request is the last of its connection.
    pub(crate) goaway_chance: f64,
    #[cfg(feature = "tls")]
    pub(crate) tls: bool,
    /// Whether streaming lists are compressed for clients that accept gzip. Watches over a
    /// WebSocket are never compressed.
    pub(crate) compressed_streams: bool,
    pub(crate) cbor: bool,
    pub(crate) late_lists: LateLists,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) api: Api,
    pub(crate) settings: Settings,
    pub(crate) watches: Arc<WatchRegistry>,
    pub(crate) faults: FaultQueue,
    pub(crate) requests: RequestLog,
    pub(crate) credentials: Credentials,
    pub(crate) goaways: Goaways,
    pub(crate) tls: Option<Tls>,
    /// The cancellation of this token ends all open watches. Later watches get a new token.
    watch_stop: Mutex<CancellationToken>,
    /// The answer to new requests during a shutdown.
    shutdown: Mutex<Option<ShutdownAnswer>>,
}

impl Server {
    pub(crate) fn new(settings: Settings, tls: Option<Tls>) -> Self {
        let api = Api::new(settings.behavior);
        Self {
            watches: Arc::new(WatchRegistry::new(settings.bookmark_interval)),
            faults: FaultQueue::default(),
            requests: RequestLog::default(),
            credentials: Credentials::default(),
            goaways: Goaways::new(settings.goaway_chance, settings.behavior.seed),
            tls,
            watch_stop: Mutex::new(api.stop.child_token()),
            shutdown: Mutex::default(),
            api,
            settings,
        }
    }

    /// Returns the token that is cancelled when the server stops or restarts, or when its watch
    /// cache becomes unready.
    pub(crate) fn watch_stop(&self) -> CancellationToken {
        self.watch_stop.lock().clone()
    }

    /// Ends all watches, and accepts requests again after a shutdown.
    pub(crate) fn restart(&self) {
        *self.shutdown.lock() = None;
        self.watches.reset();
        self.end_watches();
    }

    /// Starts a shutdown, which lasts until the server restarts.
    pub(crate) fn begin_shutdown(&self, answer: ShutdownAnswer) {
        *self.shutdown.lock() = Some(answer);
        match answer {
            ShutdownAnswer::Usual => self.watches.keep_new(),
            ShutdownAnswer::TooManyRequests => self.watches.end_all(Duration::ZERO, WATCH_END_INTERVAL),
            ShutdownAnswer::ServiceUnavailable => {
                self.watches.end_all(WATCH_GRACE_PERIOD, Duration::ZERO);
                self.goaways.to_all();
            }
        }
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.api.stop.is_cancelled() || self.shutdown.lock().is_some()
    }

    /// Returns the answer to a new request if the server is shutting down.
    ///
    /// Set `exempt` for requests that are served during a shutdown, such as health checks.
    pub(crate) fn shutdown_answer(&self, exempt: bool) -> Option<ShutdownAnswer> {
        // A stopped server refuses all requests, including exempt ones.
        if self.api.stop.is_cancelled() {
            return Some(ShutdownAnswer::ServiceUnavailable);
        }
        self.shutdown.lock().filter(|_| !exempt)
    }

    pub(crate) fn end_watches(&self) {
        let ended = std::mem::replace(&mut *self.watch_stop.lock(), self.api.stop.child_token());
        ended.cancel();
    }
}
