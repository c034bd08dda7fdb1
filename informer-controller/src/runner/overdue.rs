//! [`Overdue`]: logs each namespace whose keys wait for too long, because a cache has not listed
//! the namespace or no longer watches it.
//!
//! The keys still wait after the log line, because a reconcile function would treat the objects
//! that the cache lacks as missing.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

pub(super) struct Overdue {
    controller: String,
    /// How long a key may wait for a cache before a warning names its namespace. Also the minimum
    /// time between two warnings about the same namespace.
    pub(super) max_wait: Duration,
    /// The time of the last warning about each namespace.
    logged: Mutex<HashMap<String, Instant>>,
}

impl Overdue {
    pub(super) fn new(controller: &str, max_wait: Duration) -> Self {
        // With a maximum wait of zero, there would be no pause between the log lines.
        let max_wait = max_wait.max(Duration::from_secs(1));
        Self { controller: controller.to_owned(), max_wait, logged: Mutex::default() }
    }

    /// Logs that keys of this namespace wait for a cache, if a warning is due. `cache` returns the
    /// description of the cache.
    pub(super) fn report(&self, namespace: &str, cache: impl FnOnce() -> String) {
        if self.should_log(namespace) {
            tracing::warn!(
                controller = self.controller,
                namespace,
                cache = cache(),
                parked_for = ?self.max_wait,
                "keys of a namespace stay parked: they wait and are not reconciled, because a cache has \
                 not listed the namespace or no longer watches it. Grant the verbs list and watch in the \
                 namespace, add the namespace to the informer again, or remove it from all informers \
                 of the controller"
            );
        }
    }

    /// Returns whether a warning about the namespace is due. If so, stores the current time as the
    /// time of the last warning.
    fn should_log(&self, namespace: &str) -> bool {
        let mut logged = self.logged.lock();
        logged.retain(|_, at| at.elapsed() < self.max_wait);
        let is_due = !logged.contains_key(namespace);
        if is_due {
            logged.insert(namespace.to_owned(), Instant::now());
        }
        is_due
    }
}
