//! [`Overdue`]: says which namespaces have had keys parked for too long.
//!
//! The keys stay parked: a reconcile function that was called all the same would take what is not listed for missing.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Logs each namespace for which keys are parked, once per deadline.
pub(super) struct Overdue {
    controller: String,
    /// How long a key is parked for a namespace until that is logged, and until it is logged again.
    pub(super) deadline: Duration,
    /// When each namespace was logged last.
    logged: Mutex<HashMap<String, Instant>>,
}

impl Overdue {
    pub(super) fn new(controller: &str, deadline: Duration) -> Self {
        // Zero would log without a pause.
        let deadline = deadline.max(Duration::from_secs(1));
        Self { controller: controller.to_owned(), deadline, logged: Mutex::default() }
    }

    /// Logs that a key of this namespace has been parked for a whole deadline.
    pub(super) fn report(&self, namespace: &str, cache: impl FnOnce() -> String) {
        if self.note(namespace) {
            tracing::warn!(
                controller = self.controller,
                namespace,
                cache = cache(),
                parked_for = ?self.deadline,
                "keys of a namespace stay parked: a cache does not have the namespace. Grant the verbs list and watch in \
                 it, add it again, or remove it from all informers of the controller"
            );
        }
    }

    /// Notes that a namespace is being logged. Returns `false` if it has been logged within the deadline.
    fn note(&self, namespace: &str) -> bool {
        let mut logged = self.logged.lock();
        logged.retain(|_, at| at.elapsed() < self.deadline);
        let is_news = !logged.contains_key(namespace);
        if is_news {
            logged.insert(namespace.to_owned(), Instant::now());
        }
        is_news
    }
}
