//! How a reflector works: [`ReflectorConfig`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::backoff::Backoff;
use super::failure::{ListWatchFailure, OnFailure};
use super::server::SharedServer;
use super::storage::{self, Pack, Storage};

/// Changes an object before anything else sees it, or says why it can't be taken in.
pub(super) type Transform<K> = Arc<dyn Fn(&mut K) -> Result<(), String> + Send + Sync>;

/// How a reflector works. The defaults are client-go's, where it has the same.
#[must_use]
pub struct ReflectorConfig<K> {
    pub(super) page_size: Option<u32>,
    pub(super) watch_timeout: Duration,
    pub(super) streaming_lists: bool,
    pub(super) list_stall_timeout: Duration,
    pub(super) watch_idle_timeout: Duration,
    pub(super) backoff: Backoff,
    pub(super) server: SharedServer,
    pub(super) transform: Option<Transform<K>>,
    pub(super) pack: Option<Pack<K>>,
    pub(super) on_failure: Option<OnFailure>,
}

/// How many items a page of a list has where nothing else is asked for.
pub(super) const DEFAULT_PAGE_SIZE: u32 = 500;

/// How long a watch lasts at least, by default and whatever is set: shorter ones only cost requests.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What [`ReflectorConfig::watch_timeout`] can be set to at most. Few networks keep a connection that long, and no
/// clock overflows.
const MAX_WATCH_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a streaming list may pause by default. A server waits three seconds at most before it begins, until it is as
/// new as it has to be, and then sends what it has in memory.
const STREAM_PAUSE: Duration = Duration::from_secs(10);

/// How long a watch may be silent, by default and at least. Bookmarks come about once a minute.
const MIN_WATCH_SILENCE: Duration = Duration::from_secs(65);

impl<K> ReflectorConfig<K> {
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
            transform: None,
            pack: None,
            on_failure: None,
        }
    }

    /// Sets whether what exists is asked for in a streaming list (KEP-3157) where possible: one request that goes on as
    /// the watch, and spares the server's memory and database. Where the server can't, lists come in pages. Default:
    /// yes.
    #[doc(alias = "WatchListClient")]
    pub fn streaming_lists(mut self, wanted: bool) -> Self {
        self.streaming_lists = wanted;
        self
    }

    /// Sets how long a streaming list may pause before its end, or take to begin, until it is given up for a list in
    /// pages. It may take longer as a whole, by 5 milliseconds for each object: as long as 200 a second come, until half a
    /// minute after its [time](Self::watch_timeout) is up. The allowance is capped at three such pauses. Each stream may
    /// pause up to half as long again, at random. Default: 10 seconds; minimum: one; maximum: 24 hours.
    pub fn list_stall_timeout(mut self, at_most: Duration) -> Self {
        self.list_stall_timeout = at_most.clamp(Duration::from_secs(1), MAX_WATCH_TIMEOUT);
        self
    }

    /// Sets how long a watch may be silent. Then its connection counts as dead, and the watch resumes on another one from
    /// the last resource version. Default, and minimum: 65 seconds; maximum: 24 hours.
    ///
    /// API servers send a bookmark to each watch once a minute, so that a quiet watch is not silent, but the first one only
    /// after two minutes. So after two silent connections in a row the limit is 125 seconds, until something comes. A quiet
    /// watch costs at most two requests more this way, or one every 125 seconds where a server sends no bookmarks. A client
    /// made by [`connect`](crate::connect) notices dead connections within 30 seconds, and without requests.
    pub fn watch_idle_timeout(mut self, at_most: Duration) -> Self {
        self.watch_idle_timeout = at_most.clamp(MIN_WATCH_SILENCE, MAX_WATCH_TIMEOUT);
        self
    }

    /// Sets how long the reflector waits after a failure: `first`, then twice as long after each further one, up to
    /// `longest`. Each wait is stretched at random by up to its own length, and one that the server asks for
    /// (`Retry-After`) counts where it is longer. Once a watch has lived for ten seconds, waits start over with `first`.
    /// While the server is unavailable, waits are at most half as long as it has been, and the reflectors that
    /// [share](Self::server) it send requests in turns.
    ///
    /// Some endings need no wait, such as a watch that the server closes after more than a second, or an expired version.
    /// Ten such requests may follow each other at once, and one more for each second. So whatever a server answers, a
    /// reflector with the default backoff sends at most 80 requests a minute, besides the pages of lists.
    ///
    /// Default: 0.8 and 30 seconds. Least: 10 milliseconds; most: an hour. A `longest` that is shorter than `first` counts
    /// as `first`.
    #[doc(alias = "ReflectorOptions")]
    #[doc(alias = "BackoffManager")]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = Backoff::new(first, longest);
        self
    }

    /// Shares what is known about the server with other reflectors that talk to it: in an outage they take turns, and
    /// what one finds out about streaming lists the others needn't. Default: this reflector alone.
    pub fn server(mut self, server: SharedServer) -> Self {
        self.server = server;
        self
    }

    /// Sets what is called after each list or watch that has failed, before the wait for the next. It runs in the
    /// reflector's task, with no lock held, and must not take long; its panics are logged. Default: nothing.
    ///
    /// Failures also show in the [health](super::Health), and are logged, without this. A watch that the server closes
    /// when its time is up is no failure.
    #[doc(alias = "WatchErrorHandler")]
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_failure(mut self, hears: impl Fn(&ListWatchFailure<'_>) + Send + Sync + 'static) -> Self {
        self.on_failure = Some(Arc::new(hears));
        self
    }

    /// Asks for lists that are not [streaming](Self::streaming_lists) in pages of so many items, always; a server that answers from memory may send all in one page
    /// nevertheless, above all for the first list. Default: pages of 500 where the server has to read its
    /// database anyway, else one page, because servers answer that from memory.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, items: u32) -> Self {
        self.page_size = Some(items.max(1));
        self
    }

    /// Sets how long a watch lasts at least before the server ends it and a new one is opened; it lasts at most twice
    /// as long. Default, and least: 5 minutes; most: 24 hours. What is beyond counts as the limit.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout(mut self, at_least: Duration) -> Self {
        self.watch_timeout = at_least.clamp(MIN_WATCH_TIMEOUT, MAX_WATCH_TIMEOUT);
        self
    }

    /// Sets a function that changes each object before it is cached, for example to drop what is never read. It runs
    /// exactly once for each object that arrives, with no lock held, and never on one that it has changed before. A version
    /// that is listed again arrives again, as another object.
    ///
    /// If it fails or panics, or changes name, namespace, UID or resource version, the object is set aside: the version
    /// that is held, if any, stays, and [`ReflectorStatus::set_aside`](super::ReflectorStatus::set_aside) lists it.
    #[doc(alias = "SetTransform")]
    pub fn transform<E: fmt::Display>(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(move |object| transform(object).map_err(|error| error.to_string())));
        self
    }

    /// Sets a function that decides of each object how it is held, after the transform and with no lock held. Default:
    /// [`Storage::Open`].
    ///
    /// It is for caches of which little is ever looked at. Fields that nobody needs are better not decoded at all
    /// ([`KubeListWatch::prune`](crate::KubeListWatch::prune)), or left out by the type.
    ///
    /// If it panics, or what it wants packed can't be read back, the object is held as itself.
    pub fn storage(mut self, decide: impl Fn(&K) -> Storage + Send + Sync + 'static) -> Self
    where
        K: Serialize + DeserializeOwned + 'static,
    {
        self.pack = Some(storage::pack(decide));
        self
    }
}

impl<K> Clone for ReflectorConfig<K> {
    fn clone(&self) -> Self {
        Self {
            page_size: self.page_size,
            watch_timeout: self.watch_timeout,
            streaming_lists: self.streaming_lists,
            list_stall_timeout: self.list_stall_timeout,
            watch_idle_timeout: self.watch_idle_timeout,
            backoff: self.backoff.clone(),
            server: self.server.clone(),
            transform: self.transform.clone(),
            pack: self.pack.clone(),
            on_failure: self.on_failure.clone(),
        }
    }
}

impl<K> Default for ReflectorConfig<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for ReflectorConfig<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorConfig")
            .field("page_size", &self.page_size)
            .field("watch_timeout", &self.watch_timeout)
            .field("streaming_lists", &self.streaming_lists)
            .field("list_stall_timeout", &self.list_stall_timeout)
            .field("watch_idle_timeout", &self.watch_idle_timeout)
            .field("backoff", &self.backoff)
            .field("server", &self.server)
            .field("transform", &self.transform.is_some())
            .field("storage", &self.pack.is_some())
            .field("on_failure", &self.on_failure.is_some())
            .finish()
    }
}
