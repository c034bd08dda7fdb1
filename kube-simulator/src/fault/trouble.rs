//! [`Trouble`]: what can go wrong with a server for a while, and how it begins and ends.

use std::fmt;

use http::StatusCode;

use super::gate::Gate;
use super::kind::Fault;
use super::queue::Disturbance;
use super::response::CannedResponse;
use super::shutdown::ShutdownAnswer;
use crate::request::RequestFilter;
use crate::simulator::Simulator;
use crate::storage::Backup;
use crate::watch::WatchInjection;

/// What can go wrong with a server. Some of it happens at once and is over, the rest lasts for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// At once: all open watches end cleanly.
    CloseWatches,
    /// At once: the connections of all open watches break off.
    AbortWatches,
    /// At once: all open watches are told 410 `Expired`.
    ExpireWatches,
    /// At once: all open watches are told of an internal error.
    FailWatches,
    /// At once: the next event of each open watch is cut short, and the connection breaks off.
    CutNextEvent,
    /// At once: the next event of each open watch is replaced by a line (or what takes its place in other encodings) that
    /// is no event. The watch goes on.
    GarbleNextEvent,
    /// At once: the history is forgotten.
    Compact,
    /// At once: the server restarts, with its history.
    Restart,
    /// At once: the server restarts without its history.
    RestartWithoutHistory,
    /// At once: clients are to leave their connections ([`Simulator::drain_connections`]); nothing for those in process.
    DrainConnections,
    /// For a while: requests are not answered at all.
    Refuse,
    /// For a while: requests are answered with this code, and with `Retry-After` in seconds if it is not 0. The 429 is
    /// that of the server's flow control, in plain text.
    Respond {
        /// The HTTP status code.
        code: u16,
        /// How long the client is asked to wait, in seconds.
        retry_after: u32,
    },
    /// For a while: requests are answered when it is over.
    Stall,
    /// For a while: the bodies of answers stop after so many bytes, and go on when it is over.
    StallBodies(u64),
    /// For a while: the bodies of answers end after so many bytes.
    CloseBodies(u64),
    /// For a while: connections break off after so many bytes of an answer's body.
    AbortBodies(u64),
    /// For a while: every request is answered with 401. Afterwards the same tokens are accepted as before.
    ExpireTokens,
    /// For a while: no bookmarks come.
    LoseBookmarks,
    /// For a while: bookmarks come a tenth as often ([`Simulator::delay_bookmarks`]).
    DelayBookmarks,
    /// For a while: the watch cache is being filled; all watches end at its beginning
    /// ([`Simulator::set_watch_cache_ready`]).
    EmptyWatchCache,
    /// For a while: the server shuts down in this way; then it has restarted.
    ShutDown(ShutdownAnswer),
    /// For a while: all [lagging replicas](Simulator::lagging_replica) learn of nothing new.
    HoldReplicas,
    /// For a while nothing seems wrong; then all that was written since is undone, and the resource versions go on
    /// 1,000 after the latest ([`Simulator::restore_ahead`]).
    UndoWrites,
}

/// Trouble that has not ended; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Ongoing<'a> {
    simulator: &'a Simulator,
    what: What,
}

/// What has to be undone.
#[derive(Debug)]
enum What {
    Nothing,
    Requests { _ends: Disturbance },
    Stalled { _ends: Disturbance, gate: Gate },
    Tokens,
    Bookmarks,
    DelayedBookmarks,
    Replicas,
    WatchCache,
    Shutdown,
    Writes(Backup),
}

impl Trouble {
    /// Returns whether it lasts, and is not over as soon as it has happened.
    #[must_use]
    pub fn lasts(self) -> bool {
        !matches!(
            self,
            Self::CloseWatches
                | Self::AbortWatches
                | Self::ExpireWatches
                | Self::FailWatches
                | Self::CutNextEvent
                | Self::GarbleNextEvent
                | Self::Compact
                | Self::Restart
                | Self::RestartWithoutHistory
                | Self::DrainConnections
        )
    }

    /// Makes it happen, to the requests that match if it is about requests.
    pub(super) fn begin<'a>(self, simulator: &'a Simulator, requests: &RequestFilter) -> Ongoing<'a> {
        let what = match self.injection() {
            Some(injection) => {
                simulator.inject(requests, &injection);
                What::Nothing
            }
            None => self.disturb(simulator, requests),
        };
        Ongoing { simulator, what }
    }

    /// What it puts into open watches.
    fn injection(self) -> Option<WatchInjection> {
        Some(match self {
            Self::CloseWatches => WatchInjection::close(),
            Self::AbortWatches => WatchInjection::abort(),
            Self::ExpireWatches => WatchInjection::expired(),
            Self::FailWatches => {
                WatchInjection::error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "etcd is unwell")
            }
            Self::CutNextEvent => WatchInjection::half_of_next_event().then_abort(),
            Self::GarbleNextEvent => WatchInjection::no_event().instead_of_next_event(),
            _ => return None,
        })
    }

    /// What it does to the server and to requests.
    fn disturb(self, simulator: &Simulator, requests: &RequestFilter) -> What {
        let disturb = |fault: Fault| simulator.fail_while(requests.clone(), fault);
        let gate = Gate::new();
        match self {
            Self::Compact => simulator.compact(),
            Self::Restart => simulator.restart(),
            Self::RestartWithoutHistory => simulator.restart_without_history(),
            Self::DrainConnections => simulator.drain_connections(),
            Self::Refuse => return What::Requests { _ends: disturb(Fault::refuse()) },
            Self::Respond { code, retry_after } => {
                return What::Requests { _ends: disturb(refusal(code, retry_after).into()) };
            }
            Self::CloseBodies(bytes) => {
                return What::Requests { _ends: disturb(Fault::close_body_after(bytes)) };
            }
            Self::AbortBodies(bytes) => {
                return What::Requests { _ends: disturb(Fault::abort_body_after(bytes)) };
            }
            Self::Stall => return What::Stalled { _ends: disturb(Fault::stall(&gate)), gate },
            Self::StallBodies(bytes) => {
                return What::Stalled { _ends: disturb(Fault::stall_body_after(bytes, &gate)), gate };
            }
            Self::ExpireTokens => {
                simulator.expire_tokens_for_a_while(true);
                return What::Tokens;
            }
            Self::LoseBookmarks => {
                simulator.lose_bookmarks(true);
                return What::Bookmarks;
            }
            Self::DelayBookmarks => {
                simulator.delay_bookmarks(true);
                return What::DelayedBookmarks;
            }
            Self::EmptyWatchCache => {
                simulator.set_watch_cache_ready(false);
                return What::WatchCache;
            }
            Self::ShutDown(answer) => {
                simulator.begin_shutdown(answer);
                return What::Shutdown;
            }
            Self::HoldReplicas => {
                simulator.hold_replicas(u64::MAX);
                return What::Replicas;
            }
            Self::UndoWrites => return What::Writes(simulator.backup()),
            Self::CloseWatches
            | Self::AbortWatches
            | Self::ExpireWatches
            | Self::FailWatches
            | Self::CutNextEvent
            | Self::GarbleNextEvent => {}
        }
        What::Nothing
    }
}

/// How far the resource versions jump when writes are undone.
const JUMP: u64 = 1_000;

fn refusal(code: u16, retry_after: u32) -> CannedResponse {
    if code == 429 {
        return CannedResponse::too_many_requests(retry_after);
    }
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = match code.as_u16() {
        410 => return CannedResponse::expired(),
        403 => "Forbidden",
        404 => "NotFound",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let response = CannedResponse::failure(code, reason, "a planned fault");
    if retry_after > 0 { response.retry_after(retry_after) } else { response }
}

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        match &self.what {
            What::Nothing | What::Requests { .. } => {}
            What::Stalled { gate, .. } => gate.release(),
            What::Tokens => self.simulator.expire_tokens_for_a_while(false),
            What::Bookmarks => self.simulator.lose_bookmarks(false),
            What::DelayedBookmarks => self.simulator.delay_bookmarks(false),
            What::Replicas => self.simulator.hold_replicas(0),
            What::WatchCache => self.simulator.set_watch_cache_ready(true),
            What::Shutdown => self.simulator.restart(),
            What::Writes(backup) => self.simulator.restore_ahead(backup, JUMP),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::CloseWatches => "close watches",
            Self::AbortWatches => "abort watches",
            Self::ExpireWatches => "tell watches 410",
            Self::FailWatches => "tell watches 500",
            Self::CutNextEvent => "cut the next event",
            Self::GarbleNextEvent => "garble the next event",
            Self::Compact => "compact",
            Self::Restart => "restart",
            Self::RestartWithoutHistory => "restart without history",
            Self::DrainConnections => "drain connections",
            Self::Refuse => "refuse",
            Self::Respond { code, retry_after: 0 } => return write!(f, "respond {code}"),
            Self::Respond { code, retry_after } => {
                return write!(f, "respond {code}, retry after {retry_after} s");
            }
            Self::Stall => "stall",
            Self::StallBodies(bytes) => return write!(f, "stall bodies after {bytes} bytes"),
            Self::CloseBodies(bytes) => return write!(f, "close bodies after {bytes} bytes"),
            Self::AbortBodies(bytes) => return write!(f, "abort bodies after {bytes} bytes"),
            Self::ExpireTokens => "expire tokens",
            Self::LoseBookmarks => "lose bookmarks",
            Self::DelayBookmarks => "delay bookmarks",
            Self::EmptyWatchCache => "empty the watch cache",
            Self::ShutDown(ShutdownAnswer::TooManyRequests) => "shut down with 429",
            Self::ShutDown(ShutdownAnswer::ServiceUnavailable) => "shut down with 503",
            Self::ShutDown(ShutdownAnswer::Usual) => "announce a shutdown",
            Self::HoldReplicas => "hold replicas",
            Self::UndoWrites => "undo writes",
        };
        f.write_str(text)
    }
}
