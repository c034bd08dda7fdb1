//! [`WorkqueueBuilder`]: sets the name, metrics, rate limiter and fairness groups of a queue.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use crate::shared::{Grouping, Shared};
use crate::slots::Hashing;
use crate::{Metrics, RateLimiter, Workqueue, default_controller_rate_limiter};

/// Builds a [`Workqueue`]; see [`Workqueue::builder`].
///
/// ```
/// use std::time::Duration;
/// use informer_workqueue::{ItemExponential, Workqueue};
///
/// // Keys are namespace and name. Namespaces take turns.
/// let queue = Workqueue::<(String, String)>::builder()
///     .name("deployments")
///     .rate_limiter(ItemExponential::new(Duration::from_millis(10), Duration::from_secs(60)))
///     .fair_by(|(namespace, _)| namespace)
///     .build();
/// assert_eq!(queue.name(), "deployments");
/// ```
#[must_use = "a builder does nothing until `build` is called"]
#[doc(alias = "TypedRateLimitingQueueConfig")]
pub struct WorkqueueBuilder<T> {
    name: String,
    limiter: Option<Box<dyn RateLimiter<T>>>,
    grouping: Option<Grouping<T>>,
    metrics: Option<Box<dyn Metrics>>,
}

impl<T: Hash + Eq + Clone + Send + 'static> WorkqueueBuilder<T> {
    pub(crate) fn new() -> Self {
        Self { name: String::new(), limiter: None, grouping: None, metrics: None }
    }

    /// Sets the name of the queue, which identifies the queue in metrics. Default: empty.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the rate limiter, which delays the retries of failed keys. Default:
    /// [`default_controller_rate_limiter`].
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiter = Some(Box::new(limiter));
        self
    }

    /// Makes groups of keys take turns, within each priority. `group` returns the part of a key
    /// that identifies its group, such as the namespace. Default: keys have no groups, and keys of
    /// the same priority are taken in the order in which they were queued.
    ///
    /// The methods of [`Workqueue`] that add a key call `group` and hash its result, while no lock
    /// is held. A group is stored only while it has queued keys.
    pub fn fair_by<G: Hash + ?Sized>(mut self, group: impl Fn(&T) -> &G + Send + Sync + 'static) -> Self {
        let hashing = Hashing::default();
        self.grouping = Some(Box::new(move |key| hashing.hash_one(group(key))));
        self
    }

    /// Sets the receiver of metrics. Default: none. Without metrics, the queue records no times.
    pub fn metrics(mut self, metrics: impl Metrics + 'static) -> Self {
        self.metrics = Some(Box::new(metrics));
        self
    }

    /// Returns a queue with these settings.
    #[must_use]
    pub fn build(self) -> Workqueue<T> {
        let limiter = self.limiter.unwrap_or_else(|| Box::new(default_controller_rate_limiter()));
        Workqueue::from_shared(Shared::new(self.name, self.grouping, limiter, self.metrics))
    }
}

impl<T> fmt::Debug for WorkqueueBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkqueueBuilder")
            .field("name", &self.name)
            .field("is_fair", &self.grouping.is_some())
            .finish_non_exhaustive()
    }
}
