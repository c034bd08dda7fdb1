//! How a reflector works: [`ReflectorConfig`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Changes an object before anything else sees it, or says why it can't be taken in.
pub(super) type Transform<K> = Arc<dyn Fn(&mut K) -> Result<(), String> + Send + Sync>;

/// How a reflector works. The defaults are client-go's.
#[must_use]
pub struct ReflectorConfig<K> {
    pub(super) page_size: Option<u32>,
    pub(super) watch_timeout: Duration,
    pub(super) transform: Option<Transform<K>>,
}

/// How many items a page of a list has where nothing else is asked for.
pub(super) const DEFAULT_PAGE_SIZE: u32 = 500;

/// How long a watch lasts at least, by default and whatever is set: shorter ones only cost requests.
const LEAST_WATCH_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What [`ReflectorConfig::watch_timeout`] can be set to at most. Few networks keep a connection that long, and no
/// clock overflows.
const MOST_WATCH_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

impl<K> ReflectorConfig<K> {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self { page_size: None, watch_timeout: LEAST_WATCH_TIMEOUT, transform: None }
    }

    /// Asks for lists in pages of so many items, always; a server that answers from memory may send all in one page
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
        self.watch_timeout = at_least.clamp(LEAST_WATCH_TIMEOUT, MOST_WATCH_TIMEOUT);
        self
    }

    /// Sets a function that changes each object before it is cached, for example to drop what is never read. It runs
    /// exactly once for each version that arrives, with no lock held.
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
            .field("transform", &self.transform.is_some())
            .finish()
    }
}
