//! The part of [`Simulator`] that injects faults.

use std::time::Duration;

use super::Simulator;
use crate::fault::{Fault, FaultGuard, ShutdownAnswer};
use crate::fault::{PlacedInjection, WatchInjection};
use crate::http::RequestFilter;
use crate::simulator::lagging_replica::LaggingReplica;
use crate::storage::Backup;

/// Methods that inject faults into requests.
impl Simulator {
    /// Applies a fault to the next `times` requests that match.
    ///
    /// Faults are used in the order in which they were added. Requests that open watches count too;
    /// for example, a [canned response](crate::CannedResponse) refuses the watch. Watches that are
    /// already open do not change.
    pub fn fail_next(&self, times: usize, filter: RequestFilter, fault: impl Into<Fault>) {
        self.server.faults.push(Some(times), filter, fault.into());
    }

    /// Applies a fault to all matching requests until the returned guard is dropped. Faults that
    /// were added earlier take precedence.
    pub fn fail_while(&self, filter: RequestFilter, fault: impl Into<Fault>) -> FaultGuard {
        FaultGuard::begin(&self.server, filter, fault.into())
    }

    /// Removes all faults that [`fail_next`](Self::fail_next) and [`fail_while`](Self::fail_while)
    /// have added. The [`FaultGuard`] of a removed fault has no effect.
    pub fn clear_faults(&self) {
        self.server.faults.clear();
    }

    /// Accepts only requests with this bearer token; all others are answered with 401
    /// `Unauthorized`.
    pub fn require_token(&self, token: &str) {
        self.server.credentials.accept_token(token);
    }

    /// Answers all requests with 401 `Unauthorized`, as if every token had expired. Open watches
    /// continue, as on a real server.
    pub fn expire_tokens(&self) {
        self.server.credentials.reject_all();
    }

    /// Begins or ends a fault that answers all requests with 401 `Unauthorized`. Faults can
    /// overlap, and each needs its own call with `false`.
    pub(crate) fn set_tokens_expired(&self, expired: bool) {
        if expired { self.server.credentials.expire() } else { self.server.credentials.renew() }
    }

    /// Accepts all requests again, with any token or without a token. A
    /// [`ServerFault::ExpireTokens`](crate::ServerFault::ExpireTokens) in progress still applies.
    pub fn accept_any_token(&self) {
        self.server.credentials.accept_all();
    }
}

/// Methods that inject faults into watches.
impl Simulator {
    /// Sends bytes or an error into the open watch streams whose requests match, or ends these
    /// streams. Returns the number of these streams.
    ///
    /// Each stream sends the injection after the events of earlier writes, and before the events of
    /// later writes. Exception: if a [lagging replica](Self::lagging_replica) has not received
    /// some earlier events yet, it sends the injection before them.
    pub fn inject(&self, filter: &RequestFilter, injection: &WatchInjection) -> usize {
        let placed = PlacedInjection { injection: injection.clone(), after: self.resource_version() };
        self.server.watches.inject(filter, &placed)
    }

    /// Ends all open watch streams without an error. Each stream first sends the events of all
    /// earlier writes. Exception: a stream of a [lagging replica](Self::lagging_replica) ends
    /// without the events that the replica has not received yet.
    pub fn close_watches(&self) {
        self.inject(&RequestFilter::any(), &WatchInjection::close());
    }

    /// Sets whether periodic bookmarks are dropped. The bookmark that ends a streaming list is
    /// still sent; to drop that bookmark, too, see
    /// [`StreamingLists::Ignored`](crate::StreamingLists::Ignored).
    pub fn lose_bookmarks(&self, lost: bool) {
        self.server.watches.change_bookmarks(|rule| rule.lost = lost);
    }

    /// Sets whether the time between two bookmarks of a watch is ten times the [configured
    /// time](Self::set_bookmark_interval). An open watch applies the change only after its next
    /// bookmark.
    pub fn delay_bookmarks(&self, delayed: bool) {
        self.server.watches.change_bookmarks(|rule| rule.delayed = delayed);
    }

    /// Sets the time between two bookmarks of a watch, limited to between one millisecond and one
    /// year. An open watch applies the change only after its next bookmark.
    pub fn set_bookmark_interval(&self, interval: Duration) {
        self.server.watches.change_bookmarks(|rule| rule.interval = interval.max(Duration::from_millis(1)));
    }
}

/// Methods for faults of the whole server, such as a restart, a lost history or a restored backup.
impl Simulator {
    /// Removes the history, including that of the watch cache: watches from earlier versions, and
    /// lists at an exact earlier version, are answered with 410 `Expired`. Open watches continue. A
    /// [lagging replica](Self::lagging_replica) still accepts watches from the version that it has
    /// reached. As on a real server, a watch of Event objects (which have no watch cache) can still
    /// begin at the version before the newest one. By contrast, the automatic
    /// [compaction](crate::SimulatorBuilder::compaction_interval) affects only etcd.
    pub fn compact(&self) {
        self.server.api.compact();
    }

    /// Restarts the server without downtime. All watches end, and the counters in `/metrics` are
    /// reset. A server that was [shutting down](Self::begin_shutdown) serves requests again as
    /// usual. The objects and the history remain. For a client, the effect is the same as a move to
    /// another API server.
    pub fn restart(&self) {
        self.server.restart();
    }

    /// Restarts the server without its history: watches from earlier versions, and lists at an
    /// exact earlier version, are answered with 410 `Expired`.
    pub fn restart_without_history(&self) {
        self.server.api.clear_history();
        self.server.restart();
    }

    /// Sets whether the watch cache is ready. On a real server, the cache is not ready after a
    /// start or a lost connection to etcd. When the cache becomes unready, all watches end. Until
    /// the cache is ready again:
    ///
    /// - watches are refused with the HTTP status 429 `TooManyRequests`, and with a `Retry-After`
    ///   that grows with time from 1 to 30 seconds;
    /// - lists with a limit and no selector, lists at an exact version, and later pages of lists
    ///   are read from etcd. Etcd applies the limit even at version `0`, where the watch cache
    ///   would ignore the limit;
    /// - all other lists are refused like watches;
    /// - gets, and all reads of Event objects (which have no watch cache), are served from etcd.
    ///   Writes continue, but a `deletecollection` is refused if its list would be refused.
    ///
    /// The history remains, so that a test can observe from which version the client resumes;
    /// [`restart_without_history`](Self::restart_without_history) also removes the history. The
    /// caches of [lagging replicas](Self::lagging_replica) are always ready.
    ///
    /// This behavior is the feature `ResilientWatchCacheInitialization` (KEP-4568), which cannot be
    /// disabled since Kubernetes 1.34.
    #[doc(alias = "ResilientWatchCacheInitialization")]
    pub fn set_watch_cache_ready(&self, ready: bool) {
        self.server.api.revision.watch_cache().set_ready(ready);
        if !ready {
            self.server.end_watches();
        }
    }

    /// Starts a shutdown: `/readyz` fails from now on, and `answer` determines the response to new
    /// requests. Refusals have a `Retry-After` header. Requests in flight complete, and watches end
    /// as described at [`ShutdownAnswer`]. Any [restart](Self::restart) ends the shutdown.
    ///
    /// Health checks other than `/readyz` and `/readyz/shutdown` are answered as usual. The socket
    /// stays open: on a new connection, a client receives the same answers. For a closed socket,
    /// use [`Fault::refuse`]. [Lagging replicas](Self::lagging_replica) continue to answer requests
    /// as usual. But if the shutdown ends watches or [drains connections](Self::drain_connections),
    /// it also does so on the replicas.
    #[doc(alias = "shutdown-send-retry-after")]
    pub fn begin_shutdown(&self, answer: ShutdownAnswer) {
        self.server.begin_shutdown(answer);
    }

    /// Makes all clients leave their current connections, as a load balancer does before it removes
    /// a server. HTTP/2 connections receive a `GOAWAY`. HTTP/1.1 connections without a request in
    /// flight are closed at once, even before their first request; the others are closed after
    /// their request. Requests in flight, including watches, continue. The same happens to
    /// connections of [lagging replicas](Self::lagging_replica).
    pub fn drain_connections(&self) {
        self.server.goaways.to_all();
    }

    /// Copies all objects, like an etcd backup, for [`restore`](Self::restore).
    #[must_use]
    pub fn backup(&self) -> Backup {
        self.server.api.backup()
    }

    /// Restarts the server with the objects and the resource version of a backup. Writes since the
    /// backup are lost, and new writes reuse the resource versions of the lost writes.
    ///
    /// A client cannot detect the restore if it continues its watch from the version of a lost
    /// write. As on a real server, the watch sends nothing until new writes reach this version, and
    /// then sends later writes. It reports neither that writes were lost, nor the new writes up to
    /// this version. For this reason, etcd offers a restore that [skips resource
    /// versions](Self::restore_ahead).
    pub fn restore(&self, backup: &Backup) {
        self.server.api.restore(backup, |_| backup.resource_version());
        self.server.restart();
    }

    /// Restarts the server with the objects of a backup, and with a higher resource version. The
    /// new version is the server's newest version before the restart, plus `by`, which is limited
    /// to between 1 and 4,294,967,295. The method is like `etcdutl snapshot restore --bump-revision
    /// --mark-compacted`.
    ///
    /// The objects have the versions of the backup, so the version of one object can decrease. The
    /// versions of lists do not decrease. Watches from versions before the new one are answered
    /// with 410 `Expired`.
    pub fn restore_ahead(&self, backup: &Backup, by: u64) {
        // The limit leaves versions for later writes: after the highest version, the next write
        // would overflow the counter.
        let by = by.clamp(1, u64::from(u32::MAX));
        self.server.api.restore(backup, |newest| newest + by);
        self.server.restart();
    }

    /// Adds another API server on the same storage, whose watch cache can lag.
    #[must_use]
    pub fn lagging_replica(&self) -> LaggingReplica {
        LaggingReplica::of(&self.server)
    }

    /// Sets by how many revisions the watch caches of all [lagging replicas](Self::lagging_replica)
    /// lag behind the newest write; 0 removes the lag.
    pub fn hold_replicas(&self, behind: u64) {
        self.server.api.revision.set_all_lags(behind);
    }
}
