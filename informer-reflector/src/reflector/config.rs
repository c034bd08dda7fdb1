//! [`ReflectorConfig`]: the settings of a reflector.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::Backoff;
use super::failure::{ListWatchFailure, OnFailure};
use super::server::SharedServer;

/// The settings of a reflector, for objects of any type. Defaults are client-go's where client-go
/// has the setting.
///
/// Standalone [`Reflector`](super::Reflector)s, informers and factories (for all informers, or for
/// those of one type) accept these settings.
///
/// Clones share one [`SharedServer`](Self::server). It records whether the server is unavailable,
/// and for which resources the server's streaming lists do not work.
#[derive(Clone)]
#[must_use]
pub struct ReflectorConfig {
    pub(super) page_size: Option<u32>,
    pub(super) watch_timeout: Duration,
    pub(super) streaming_lists: bool,
    pub(super) list_stall_timeout: Duration,
    pub(super) watch_idle_timeout: Duration,
    pub(super) backoff: Backoff,
    pub(super) server: SharedServer,
    pub(super) on_failure: Option<OnFailure>,
}

/// The default page size of lists in pages, in items.
pub(super) const DEFAULT_PAGE_SIZE: u32 = 500;

/// The default and minimum of [`ReflectorConfig::watch_timeout`]. Shorter watches would only cost
/// more requests.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The maximum of each timeout of [`ReflectorConfig`]. Longer settings are shortened to it.
// Few networks keep a connection for longer. The limit also prevents overflow when a timeout is
// added to a time.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The default of [`ReflectorConfig::list_stall_timeout`]. It is longer than the pauses of servers
/// in a list: they wait at most three seconds until their cache is recent enough.
const DEFAULT_LIST_STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The default and minimum of [`ReflectorConfig::watch_idle_timeout`]. Bookmarks arrive about once
/// a minute.
const MIN_WATCH_IDLE_TIMEOUT: Duration = Duration::from_secs(65);

impl ReflectorConfig {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self {
            page_size: None,
            watch_timeout: MIN_WATCH_TIMEOUT,
            streaming_lists: true,
            list_stall_timeout: DEFAULT_LIST_STALL_TIMEOUT,
            watch_idle_timeout: MIN_WATCH_IDLE_TIMEOUT,
            backoff: Backoff::default(),
            server: SharedServer::new(),
            on_failure: None,
        }
    }

    /// Sets whether the reflector requests streaming lists (KEP-3157). A streaming list is one
    /// request that continues as the watch. The server needs less memory and fewer database reads
    /// for it. If the server does not support streaming lists, the reflector lists in pages.
    /// Default: yes.
    #[doc(alias = "WatchListClient")]
    pub fn streaming_lists(mut self, wanted: bool) -> Self {
        self.streaming_lists = wanted;
        self
    }

    /// Sets the time without data after which the reflector cancels a streaming list and lists in
    /// pages instead. The time begins with the response, and again whenever data arrives. For each
    /// list, `timeout` is multiplied by a random number between 1 and 1.5. Default: 10 seconds;
    /// minimum: 1 second; maximum: 24 hours.
    ///
    /// The wait for the response to begin is also limited, to this timeout or 20 seconds, whichever
    /// is longer, multiplied by the same random number. An overloaded API server can queue the
    /// request for 15 seconds before it responds with status 429, after which the reflector
    /// requests a streaming list again.
    ///
    /// The reflector also cancels a streaming list whose objects arrive too slowly. For example,
    /// with the default, a list with 100 objects a second is cancelled after 20 to 30 seconds, and
    /// a list with more than 200 objects a second is not. The rules are:
    /// - Each list has a remaining time, which is this timeout at the start of the list.
    /// - While the reflector waits for data, the remaining time decreases. When no time remains,
    ///   the reflector cancels the list.
    /// - Each received object increases the remaining time by 5 milliseconds, but never above three
    ///   times this timeout.
    /// - Some servers send a modified or deleted object before the end of the list. From then on,
    ///   the remaining time is at most this timeout, and received objects no longer increase it.
    ///
    /// The list must also end within the [duration of a watch](Self::watch_timeout), because its
    /// request is a watch.
    pub fn list_stall_timeout(mut self, timeout: Duration) -> Self {
        self.list_stall_timeout = timeout.clamp(Duration::from_secs(1), MAX_TIMEOUT);
        self
    }

    /// Sets the time without data after which the reflector replaces the connection of a watch. The
    /// watch then resumes on a new connection from the last resource version. Default and minimum:
    /// 65 seconds; maximum: 24 hours.
    ///
    /// An API server sends the first bookmark of a watch only after two minutes. So with the
    /// default timeout, the reflector also replaces live connections of a resource that does not
    /// change. After two such replacements in a row, the reflector therefore waits at least 125
    /// seconds for data. Once data arrives, the configured timeout applies again.
    ///
    /// A client of [`connect`](crate::connect) also uses TCP keepalive, which detects a dead
    /// connection within 30 seconds.
    pub fn watch_idle_timeout(mut self, timeout: Duration) -> Self {
        self.watch_idle_timeout = timeout.clamp(MIN_WATCH_IDLE_TIMEOUT, MAX_TIMEOUT);
        self
    }

    /// Sets the waits after failures: `first` after the first failure, doubled after each
    /// consecutive failure, up to `longest`. Random jitter lengthens each wait by up to 100%. A
    /// longer wait that the server requests (`Retry-After`) takes precedence. After a watch has
    /// lasted ten seconds, waits start again with `first`.
    ///
    /// While the server is unavailable, the reflector limits each wait to half of the time since
    /// its first failure, so that it soon notices the end of a short outage. For example, 20
    /// seconds after the first failure, it waits at most 10 seconds. Two kinds of waits are not
    /// shortened: waits of up to twice `first`, and waits that the server requests. After the wait,
    /// the reflectors that [share](Self::server) the server send their requests one after another.
    ///
    /// Some requests are usually sent without a wait, for example the next request after a watch
    /// that lasted more than a second, or after an expired version. A reflector sends at most ten
    /// such requests in quick succession, and then at most one in each second. Further such
    /// requests wait as after a failure. With the default backoff, a reflector sends at most about
    /// 80 requests a minute, not counting the pages of lists, the watch after each list, and
    /// relists through a [handle](super::RelistHandle).
    ///
    /// Default: 0.8 and 30 seconds. Minimum: 10 milliseconds; maximum: one hour. If `longest` is
    /// shorter than `first`, `first` applies.
    #[doc(alias = "ReflectorOptions")]
    #[doc(alias = "BackoffManager")]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = Backoff::new(first, longest);
        self
    }

    /// Sets the [`SharedServer`], which reflectors of the same server should share. During an
    /// outage, these reflectors send requests in turns. If one of them finds that streaming lists
    /// of a resource do not work, all of them list the resource in pages for some time. Default: a
    /// new `SharedServer`.
    pub fn server(mut self, server: SharedServer) -> Self {
        self.server = server;
        self
    }

    /// Sets a function that is called after each failed list or watch, before the wait. It runs in
    /// the reflector's task without a lock and must not block; its panics are logged. Default:
    /// none.
    ///
    /// Failures after which the reflector waits also appear in the [health](super::Health) and in
    /// the log. The end of a watch at its timeout is not a failure.
    #[doc(alias = "WatchErrorHandler")]
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_failure(mut self, handler: impl Fn(&ListWatchFailure<'_>) + Send + Sync + 'static) -> Self {
        self.on_failure = Some(Arc::new(handler));
        self
    }

    /// Sets the page size, in items, of all lists that are not [streaming](Self::streaming_lists).
    /// Exception: if a continue token expires, the list is repeated without a page size. A server
    /// that responds from its cache can ignore the page size and send all items in one page,
    /// especially for the initial list.
    ///
    /// If this method is not called:
    /// - The initial list has the page size 500.
    /// - A relist usually has no page size, because the server can return all items from its cache
    ///   at once. But once a list that is not streaming has been interrupted, for example because
    ///   no more data arrived, all further relists of the reflector have the page size 500.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, items: u32) -> Self {
        self.page_size = Some(items.max(1));
        self
    }

    /// Sets the minimum duration of a watch. Default and minimum: 5 minutes; maximum: 24 hours.
    /// Shorter and longer settings are changed to these limits.
    ///
    /// The reflector requests a random duration for each watch, between this setting and twice this
    /// setting. The server closes the watch after the requested duration.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout(mut self, at_least: Duration) -> Self {
        self.watch_timeout = at_least.clamp(MIN_WATCH_TIMEOUT, MAX_TIMEOUT);
        self
    }
}

impl Default for ReflectorConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ReflectorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorConfig")
            .field("page_size", &self.page_size)
            .field("watch_timeout", &self.watch_timeout)
            .field("streaming_lists", &self.streaming_lists)
            .field("list_stall_timeout", &self.list_stall_timeout)
            .field("watch_idle_timeout", &self.watch_idle_timeout)
            .field("backoff", &self.backoff)
            .field("server", &self.server)
            .field("on_failure", &self.on_failure.is_some())
            .finish()
    }
}
