//! [`ServerFault`]: the kinds of server faults in a plan, with their start and end.

use std::fmt;

use http::StatusCode;

use super::gate::Gate;
use super::injection::WatchInjection;
use super::kind::Fault;
use super::queue::FaultGuard;
use super::response::CannedResponse;
use super::shutdown::ShutdownAnswer;
use crate::http::RequestFilter;
use crate::simulator::Simulator;
use crate::storage::Backup;

/// A kind of server fault. Some kinds happen immediately or at the next event of each watch; the
/// others [last for a while](Self::has_duration). `FaultPlanOptions::requests` selects the requests
/// and watches that a fault affects. Faults of the whole server, such as a restart, expired tokens
/// or lost bookmarks, ignore this filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerFault {
    /// Ends all open watches cleanly.
    CloseWatches,
    /// Aborts the connections (in HTTP/2, the streams) of all open watches.
    AbortWatches,
    /// Ends all open watches with 410 `Expired`.
    ExpireWatches,
    /// Ends all open watches with an internal error.
    FailWatches,
    /// At the next event of each open watch: only half of the event is sent, and then the
    /// connection (in HTTP/2, the stream) is aborted.
    CutNextEvent,
    /// Replaces the next event of each open watch with a message that is not a valid event, for
    /// example the JSON line `{"type":7}`. The framing is correct, and the watch continues.
    GarbleNextEvent,
    /// Removes the server's history of past events ([`Simulator::compact`]).
    Compact,
    /// Restarts the server, which keeps its history of past events.
    Restart,
    /// Restarts the server without its history of past events.
    RestartWithoutHistory,
    /// Makes all clients move to new connections ([`Simulator::drain_connections`]). Clients of
    /// [`Simulator::service`] use no connections, so the fault does not affect them.
    DrainConnections,
    /// During the fault: each request fails without an answer, as if the server were down
    /// ([`Fault::refuse`]).
    Refuse,
    /// During the fault: requests are answered with this code. The answer 429 is in plain text, as
    /// from the server's flow control.
    Respond {
        /// The HTTP status code. An invalid code becomes 500.
        code: u16,
        /// The value of `Retry-After`, in seconds. If the value is 0, or if the code is 410, the
        /// answer has no `Retry-After` header.
        retry_after: u32,
    },
    /// Requests that arrive during the fault are answered only after its end.
    Stall,
    /// During the fault: the body of each new answer stalls after this many bytes. The rest follows
    /// after the end of the fault.
    StallBodies(u64),
    /// During the fault: the body of each new answer ends after this many bytes, as if it were
    /// complete.
    CloseBodies(u64),
    /// During the fault: each new answer is aborted after this many bytes of its body.
    AbortBodies(u64),
    /// During the fault: every request is answered with 401. Afterwards, the same tokens are
    /// accepted as before.
    ExpireTokens,
    /// During the fault: no periodic bookmarks are sent ([`Simulator::lose_bookmarks`]).
    LoseBookmarks,
    /// During the fault: bookmarks are sent a tenth as often ([`Simulator::delay_bookmarks`]).
    DelayBookmarks,
    /// During the fault: the watch cache is not ready, as if it were still being filled
    /// ([`Simulator::set_watch_cache_ready`]). All open watches end at the start of the fault.
    EmptyWatchCache,
    /// During the fault: the server is shutting down, and gives this answer to new requests. At the
    /// end, the server restarts.
    ShutDown(ShutdownAnswer),
    /// During the fault: the watch caches of all [lagging replicas](Simulator::lagging_replica)
    /// that exist at the start receive no writes.
    HoldReplicas,
    /// During the fault: no visible effect. At the end: the server restarts, and all writes since
    /// the start of the fault are lost. The newest resource version still increases, by 1,000
    /// ([`Simulator::restore_ahead`]).
    UndoWrites,
}

/// A guard for a fault that has started. Dropping the guard ends a fault that [lasts for a
/// while](ServerFault::has_duration).
#[derive(Debug)]
pub(super) struct ActiveFault<'a> {
    simulator: &'a Simulator,
    effect: Effect,
}

/// The change to the simulator that must be undone at the end of a fault. For example, `Tokens`
/// means that all tokens are expired.
#[derive(Debug)]
enum Effect {
    Nothing,
    Requests { _guard: FaultGuard },
    Stalled { _guard: FaultGuard, gate: Gate },
    Tokens,
    Bookmarks,
    DelayedBookmarks,
    Replicas,
    WatchCache,
    Shutdown,
    Writes(Backup),
}

impl ServerFault {
    /// Returns whether this fault lasts for a while.
    #[must_use]
    pub fn has_duration(self) -> bool {
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

    /// Starts this fault, and returns its guard.
    ///
    /// `requests` selects the requests and watches that the fault affects. Faults of the whole
    /// server ignore this filter.
    pub(super) fn begin<'a>(self, simulator: &'a Simulator, requests: &RequestFilter) -> ActiveFault<'a> {
        let effect = match self.injection() {
            Some(injection) => {
                simulator.inject(requests, &injection);
                Effect::Nothing
            }
            None => self.start_without_injection(simulator, requests),
        };
        ActiveFault { simulator, effect }
    }

    /// Returns the bytes, error or end that this fault injects into open watches. Returns `None` if
    /// the fault injects nothing.
    fn injection(self) -> Option<WatchInjection> {
        Some(match self {
            Self::CloseWatches => WatchInjection::close(),
            Self::AbortWatches => WatchInjection::abort(),
            Self::ExpireWatches => WatchInjection::expired(),
            Self::FailWatches => WatchInjection::error(
                StatusCode::INTERNAL_SERVER_ERROR,
                "InternalError",
                "etcd is unavailable",
            ),
            Self::CutNextEvent => WatchInjection::half_of_next_event().then_abort(),
            Self::GarbleNextEvent => WatchInjection::invalid_event().instead_of_next_event(),
            _ => return None,
        })
    }

    /// Starts a fault that injects nothing into watches. Returns the change that must be undone at
    /// the end of the fault.
    fn start_without_injection(self, simulator: &Simulator, requests: &RequestFilter) -> Effect {
        let fail = |fault: Fault| simulator.fail_while(requests.clone(), fault);
        let gate = Gate::new();
        match self {
            Self::Compact => simulator.compact(),
            Self::Restart => simulator.restart(),
            Self::RestartWithoutHistory => simulator.restart_without_history(),
            Self::DrainConnections => simulator.drain_connections(),
            Self::Refuse => return Effect::Requests { _guard: fail(Fault::refuse()) },
            Self::Respond { code, retry_after } => {
                return Effect::Requests { _guard: fail(refusal(code, retry_after).into()) };
            }
            Self::CloseBodies(bytes) => {
                return Effect::Requests { _guard: fail(Fault::close_body_after(bytes)) };
            }
            Self::AbortBodies(bytes) => {
                return Effect::Requests { _guard: fail(Fault::abort_body_after(bytes)) };
            }
            Self::Stall => return Effect::Stalled { _guard: fail(Fault::stall(&gate)), gate },
            Self::StallBodies(bytes) => {
                return Effect::Stalled { _guard: fail(Fault::stall_body_after(bytes, &gate)), gate };
            }
            Self::ExpireTokens => {
                simulator.set_tokens_expired(true);
                return Effect::Tokens;
            }
            Self::LoseBookmarks => {
                simulator.lose_bookmarks(true);
                return Effect::Bookmarks;
            }
            Self::DelayBookmarks => {
                simulator.delay_bookmarks(true);
                return Effect::DelayedBookmarks;
            }
            Self::EmptyWatchCache => {
                simulator.set_watch_cache_ready(false);
                return Effect::WatchCache;
            }
            Self::ShutDown(answer) => {
                simulator.begin_shutdown(answer);
                return Effect::Shutdown;
            }
            Self::HoldReplicas => {
                simulator.hold_replicas(u64::MAX);
                return Effect::Replicas;
            }
            Self::UndoWrites => return Effect::Writes(simulator.backup()),
            Self::CloseWatches
            | Self::AbortWatches
            | Self::ExpireWatches
            | Self::FailWatches
            | Self::CutNextEvent
            | Self::GarbleNextEvent => {}
        }
        Effect::Nothing
    }
}

/// The number by which the server's resource version increases when [`ServerFault::UndoWrites`]
/// ends. The increase begins at the newest version at that time, so no version is used twice.
const RESTORED_VERSION_GAP: u64 = 1_000;

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
    let response = CannedResponse::failure(code, reason, "fault injected by a FaultPlan of the simulator");
    if retry_after > 0 { response.retry_after(retry_after) } else { response }
}

impl Drop for ActiveFault<'_> {
    fn drop(&mut self) {
        match &self.effect {
            Effect::Nothing | Effect::Requests { .. } => {}
            Effect::Stalled { gate, .. } => gate.release(),
            Effect::Tokens => self.simulator.set_tokens_expired(false),
            Effect::Bookmarks => self.simulator.lose_bookmarks(false),
            Effect::DelayedBookmarks => self.simulator.delay_bookmarks(false),
            Effect::Replicas => self.simulator.hold_replicas(0),
            Effect::WatchCache => self.simulator.set_watch_cache_ready(true),
            Effect::Shutdown => self.simulator.restart(),
            Effect::Writes(backup) => self.simulator.restore_ahead(backup, RESTORED_VERSION_GAP),
        }
    }
}

impl fmt::Display for ServerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::CloseWatches => "close watches",
            Self::AbortWatches => "abort watches",
            Self::ExpireWatches => "send 410 to watches",
            Self::FailWatches => "send 500 to watches",
            Self::CutNextEvent => "truncate the next event of each watch",
            Self::GarbleNextEvent => "replace the next event of each watch with invalid data",
            Self::Compact => "compact the history",
            Self::Restart => "restart the server",
            Self::RestartWithoutHistory => "restart the server without its history",
            Self::DrainConnections => "drain connections",
            Self::Refuse => "refuse requests",
            Self::Respond { code, retry_after: 0 } => return write!(f, "respond with {code}"),
            Self::Respond { code, retry_after } => {
                return write!(f, "respond with {code}, retry after {retry_after} s");
            }
            Self::Stall => "stall requests",
            Self::StallBodies(bytes) => return write!(f, "stall response bodies after {bytes} bytes"),
            Self::CloseBodies(bytes) => return write!(f, "end response bodies after {bytes} bytes"),
            Self::AbortBodies(bytes) => return write!(f, "abort response bodies after {bytes} bytes"),
            Self::ExpireTokens => "expire tokens",
            Self::LoseBookmarks => "drop bookmarks",
            Self::DelayBookmarks => "delay bookmarks",
            Self::EmptyWatchCache => "make the watch cache unready",
            Self::ShutDown(ShutdownAnswer::TooManyRequests) => "shut down and answer with 429",
            Self::ShutDown(ShutdownAnswer::ServiceUnavailable) => "shut down and answer with 503",
            Self::ShutDown(ShutdownAnswer::Usual) => "announce a shutdown in /readyz",
            Self::HoldReplicas => "stop the progress of lagging replicas",
            Self::UndoWrites => "lose all writes",
        };
        f.write_str(text)
    }
}
