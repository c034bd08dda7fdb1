//! How a test makes a simulator misbehave.

use std::time::Duration;

use super::Simulator;
use crate::fault::{Disturbance, Fault, ShutdownAnswer};
use crate::lagging_replica::LaggingReplica;
use crate::request::RequestFilter;
use crate::storage::Backup;
use crate::watch::{PlacedInjection, WatchInjection};

/// Trouble with requests.
impl Simulator {
    /// Lets a fault happen to the next requests that match, this many of them.
    ///
    /// Faults are used up in the order in which they were prepared. A watch can be met so too: a prepared response
    /// refuses it before its stream opens.
    pub fn fail_next(&self, times: usize, filter: RequestFilter, fault: impl Into<Fault>) {
        self.server.faults.push(Some(times), filter, fault.into());
    }

    /// Lets a fault happen to all requests that match, for as long as the returned guard lives. What was prepared
    /// before comes first.
    pub fn fail_while(&self, filter: RequestFilter, fault: impl Into<Fault>) -> Disturbance {
        Disturbance::begin(&self.server, filter, fault.into())
    }

    /// Drops all faults that have not been used up, those that a guard holds included.
    pub fn clear_faults(&self) {
        self.server.faults.clear();
    }

    /// Takes only requests with this bearer token from now on; all others are answered with 401 `Unauthorized`.
    pub fn require_token(&self, token: &str) {
        self.server.credentials.accept_token(token);
    }

    /// Answers all requests with 401 `Unauthorized` from now on, as if everybody's token had expired. Open watches go
    /// on, as they do on a real server.
    pub fn expire_tokens(&self) {
        self.server.credentials.accept_nobody();
    }

    /// Expires all tokens for the time of a trouble, or ends that, whatever [`require_token`](Self::require_token) asks for.
    pub(crate) fn expire_tokens_for_a_while(&self, expired: bool) {
        if expired { self.server.credentials.expire() } else { self.server.credentials.renew() }
    }

    /// Takes everybody's requests again.
    pub fn accept_everybody(&self) {
        self.server.credentials.accept_everybody();
    }
}

/// Trouble with watches.
impl Simulator {
    /// Puts bytes into the open watch streams whose requests match, behind all events that have happened so far
    /// and before all later ones, and gives the number of those streams.
    pub fn inject(&self, filter: &RequestFilter, injection: &WatchInjection) -> usize {
        let placed = PlacedInjection { injection: injection.clone(), after: self.resource_version() };
        self.server.watches.inject(filter, &placed)
    }

    /// Ends all open watch streams cleanly, behind all events that have happened so far.
    pub fn close_watches(&self) {
        self.inject(&RequestFilter::any(), &WatchInjection::close());
    }

    /// Drops bookmarks that become due, or sends them again. The one that ends a streaming list always comes; a server
    /// that doesn't send that one is [`StreamingLists::Ignored`](crate::StreamingLists::Ignored).
    pub fn lose_bookmarks(&self, lost: bool) {
        self.server.watches.change_bookmarks(|rule| rule.lost = lost);
    }

    /// Has bookmarks come a tenth as often, or as often as ever again. It takes effect for each watch after its next one.
    pub fn delay_bookmarks(&self, delayed: bool) {
        self.server.watches.change_bookmarks(|rule| rule.delayed = delayed);
    }

    /// Sets the time between two bookmarks of a watch, at least a millisecond; what is longer than a year counts as one.
    /// It takes effect for each watch after its next one.
    pub fn set_bookmark_interval(&self, interval: Duration) {
        self.server.watches.change_bookmarks(|rule| rule.interval = interval.max(Duration::from_millis(1)));
    }
}

/// Trouble with the history.
impl Simulator {
    /// Forgets the past, at once and also in the watch cache: watches and lists from before now are answered with 410
    /// `Expired`. Open watches go on. What happens by itself every five minutes is etcd's part of that
    /// ([`compaction_interval`](crate::SimulatorBuilder::compaction_interval)).
    pub fn compact(&self) {
        self.server.compact();
    }

    /// Restarts the server in no time: all watches end, and everything else is as before. It is what a client sees that
    /// is handed over to another API server.
    pub fn restart(&self) {
        self.server.restart();
    }

    /// Restarts the server, which forgets the past: watches and lists from before now are answered with 410 `Expired`.
    pub fn restart_without_history(&self) {
        self.server.forget_history();
        self.server.restart();
    }

    /// Returns whether the watch cache is filled. If it is not, as after a start or when the server lost its connection to
    /// etcd, all watches end, and until this is called with `true` again
    ///
    /// - watches are refused with 429 `TooManyRequests`, as HTTP statuses, and with a `Retry-After` that grows with the time
    ///   from 1 second to 30;
    /// - lists with a limit and no selector, and lists that name one state (exactly a version, or the next page), come from
    ///   etcd, which honours the limit also for version `0`; all other lists are refused as watches are;
    /// - gets come from etcd, and so do events, which are not in the cache. Writes go on.
    ///
    /// The history stays, for a test to see where the client goes on; a server that begins with an empty one is
    /// [`restart_without_history`](Self::restart_without_history). [Lagging replicas](Self::lagging_replica) have a cache of
    /// their own, which is always ready.
    ///
    /// From `ResilientWatchCacheInitialization` (KEP-4568), which servers have from 1.34 on for good.
    #[doc(alias = "ResilientWatchCacheInitialization")]
    pub fn set_watch_cache_ready(&self, ready: bool) {
        self.server.revision.watch_cache().set_ready(ready);
        if !ready {
            self.server.end_watches();
        }
    }

    /// Begins to shut the server down: `/readyz` says no from now on, and new requests are taken as `answer` says. If they
    /// are refused, that is with `Retry-After`; requests under way are finished,
    /// and watches end as [`ShutdownAnswer`] says. It is over when the server [restarts](Self::restart), in whichever way.
    ///
    /// Health checks are always answered. The socket stays open: a client that comes again is refused. That nobody listens
    /// any more is [`Fault::refuse`].
    /// [Lagging replicas](Self::lagging_replica) lose their watches and connections as the server does, and serve on.
    #[doc(alias = "shutdown-send-retry-after")]
    pub fn begin_shutdown(&self, answer: ShutdownAnswer) {
        self.server.begin_shutdown(answer);
    }

    /// Has all clients move to new connections, as a load balancer does that lets a server go: over HTTP/2 they are sent a
    /// `GOAWAY`, and connections of HTTP/1.1 are closed when nothing is under way, as are those over which nothing has come
    /// yet. What is under way goes on, watches too. The connections of [lagging replicas](Self::lagging_replica) are among them.
    pub fn drain_connections(&self) {
        self.server.goaways.to_all();
    }

    /// Puts all objects aside, as a backup of etcd does, for [`restore`](Self::restore).
    #[must_use]
    pub fn backup(&self) -> Backup {
        self.server.backup()
    }

    /// Restarts the server with the objects of a backup, and with its resource version: what was written since is
    /// gone, and new writes get versions that have been given before.
    ///
    /// No client can make sense of that by itself. A watch from a version that has not been reached again is silent, as
    /// on a real server, and goes on with what is written after it has been; what was undone, and what was written
    /// with the versions between, it never hears of. That is why etcd has its restored versions
    /// [moved ahead](Self::restore_ahead).
    pub fn restore(&self, backup: &Backup) {
        self.server.restore(backup, backup.resource_version());
        self.server.restart();
    }

    /// Restarts the server with the objects of a backup, and with resource versions that go on this many after the
    /// latest, all from before being compacted: `etcdctl snapshot restore --bump-revision --mark-compacted`.
    ///
    /// Objects have the versions of the backup again, so for one object versions may go back; the version of lists
    /// does not, and watches from before are answered with 410 `Expired`.
    pub fn restore_ahead(&self, backup: &Backup, by: u64) {
        self.server.restore(backup, self.resource_version() + by.max(1));
        self.server.restart();
    }

    /// Adds another API server in front of the same storage, whose watch cache can be late.
    #[must_use]
    pub fn lagging_replica(&self) -> LaggingReplica {
        LaggingReplica::of(&self.server)
    }

    /// Sets how many revisions all [lagging replicas](Self::lagging_replica) are behind from now on; 0 lets them catch
    /// up.
    pub fn hold_replicas(&self, behind: u64) {
        self.server.hold_replicas(behind);
    }
}
