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
/// A standalone [`Reflector`](super::Reflector), an informer, and a factory (for all informers, or
/// for those of one type) take it. Clones share the knowledge about the [server](Self::server).
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

/// The page size of lists, in items, unless another one is set.
pub(super) const DEFAULT_PAGE_SIZE: u32 = 500;

/// The default and minimum of [`ReflectorConfig::watch_timeout`]. Shorter watches only cost
/// requests.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The maximum of [`ReflectorConfig::watch_timeout`]. Few networks keep a connection that long, and
/// no clock overflows.
const MAX_WATCH_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The default of [`ReflectorConfig::list_stall_timeout`]. A server waits at most three seconds for
/// a recent state, and then sends from memory.
const STREAM_PAUSE: Duration = Duration::from_secs(10);

/// The default and minimum of [`ReflectorConfig::watch_idle_timeout`]. Bookmarks arrive about once
/// a minute.
const MIN_WATCH_SILENCE: Duration = Duration::from_secs(65);

impl ReflectorConfig {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self {
            page_size: None,
            watch_timeout: MIN_WATCH_TIMEOUT,
            streaming_lists: true,
            list_stall_timeout: STREAM_PAUSE,
            watch_idle_timeout: MIN_WATCH_SILENCE,
            backoff: Backoff::default(),
            server: SharedServer::new(),
            on_failure: None,
        }
    }

    /// Sets whether the reflector requests streaming lists (KEP-3157): one request that continues
    /// as the watch, and saves memory and database reads of the server. If the server does not
    /// support them, the reflector lists in pages. Default: yes.
    #[doc(alias = "WatchListClient")]
    pub fn streaming_lists(mut self, wanted: bool) -> Self {
        self.streaming_lists = wanted;
        self
    }

    /// Sets the time without data, before the start or the end of a streaming list, after which the
    /// reflector lists in pages instead. Each object adds 5 milliseconds to the allowance, up to
    /// three times this timeout, so a stream with 200 objects a second continues until half a
    /// minute after the [watch timeout](Self::watch_timeout). Each stream gets up to half as much
    /// more time, at random. Default: 10 seconds; minimum: 1 second; maximum: 24 hours.
    pub fn list_stall_timeout(mut self, at_most: Duration) -> Self {
        self.list_stall_timeout = at_most.clamp(Duration::from_secs(1), MAX_WATCH_TIMEOUT);
        self
    }

    /// Sets the time without data after which the connection of a watch counts as dead. The watch
    /// then resumes on another connection from the last resource version. Default, and minimum: 65
    /// seconds; maximum: 24 hours.
    ///
    /// API servers send a bookmark to each watch once a minute, but the first one only after two
    /// minutes. So after two silent connections in a row, the limit is 125 seconds until data
    /// arrives. A quiet watch costs at most two further requests, or one every 125 seconds if the
    /// server sends no bookmarks. A client of [`connect`](crate::connect) notices dead connections
    /// within 30 seconds and without requests.
    pub fn watch_idle_timeout(mut self, at_most: Duration) -> Self {
        self.watch_idle_timeout = at_most.clamp(MIN_WATCH_SILENCE, MAX_WATCH_TIMEOUT);
        self
    }

    /// Sets the waits after failures: `first`, doubled after each further failure, up to `longest`.
    /// Jitter adds up to the length of the wait. A longer wait that the server requests
    /// (`Retry-After`) takes precedence. After a watch of ten seconds, waits start again with
    /// `first`. While the server is unavailable, a wait is at most half as long as the outage so
    /// far, and the reflectors that [share](Self::server) the server send requests in turns.
    ///
    /// Some ends need no wait, such as a watch that the server closes after more than a second, or
    /// an expired version. Ten such requests can follow each other at once, and one more per
    /// second. So for every sequence of answers, a reflector with the default backoff sends at most
    /// 80 requests a minute, not counting the pages of lists.
    ///
    /// Default: 0.8 and 30 seconds. Minimum: 10 milliseconds; maximum: one hour. If `longest` is
    /// shorter than `first`, `first` applies.
    #[doc(alias = "ReflectorOptions")]
    #[doc(alias = "BackoffManager")]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = Backoff::new(first, longest);
        self
    }

    /// Shares knowledge about the server with the other reflectors of the same server: they send
    /// requests in turns during an outage, and remember together whether it supports streaming
    /// lists. Default: not shared.
    pub fn server(mut self, server: SharedServer) -> Self {
        self.server = server;
        self
    }

    /// Sets a function that is called after each failed list or watch, before the wait. It runs in
    /// the reflector's task without a lock and must not block; its panics are logged. Default:
    /// none.
    ///
    /// Failures also appear in the [health](super::Health) and in the log. A watch that the server
    /// closes at its timeout is no failure.
    #[doc(alias = "WatchErrorHandler")]
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_failure(mut self, hears: impl Fn(&ListWatchFailure<'_>) + Send + Sync + 'static) -> Self {
        self.on_failure = Some(Arc::new(hears));
        self
    }

    /// Sets the page size, in items, of lists that are not [streaming](Self::streaming_lists). A
    /// server that answers from memory can still send everything in one page, especially for the
    /// initial list. Default: 500 if the server reads its database anyway, otherwise one page,
    /// because servers answer that from memory.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, items: u32) -> Self {
        self.page_size = Some(items.max(1));
        self
    }

    /// Sets the minimum duration of a watch, after which the server closes it; the maximum is twice
    /// as long. Default, and minimum: 5 minutes; maximum: 24 hours. Values outside are clamped.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout(mut self, at_least: Duration) -> Self {
        self.watch_timeout = at_least.clamp(MIN_WATCH_TIMEOUT, MAX_WATCH_TIMEOUT);
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
