//! [`Reflector`]: keeps a [`ReflectorStore`] in step with a [`ListerWatcher`].
//!
//! client-go: `Reflector` of tools/cache/reflector.go. It is one state machine: list, then watch from there; a watch
//! that ends is opened again where it ended, and only where that can't be (the version has expired) or doesn't help is
//! there another list. What is different from client-go: after an error it watches again before it lists again, its
//! waits start over only after a watch that was of use, no request is waited for endlessly, and what can't be decoded
//! is set aside instead of lost.

mod backoff;
mod config;
mod intake;
mod list;
mod relist;
mod status;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{ListWatchError, ListerWatcher, ReflectorStore};
use kube::Resource;
use tokio_util::sync::CancellationToken;

pub use config::ReflectorConfig;
pub use relist::Relist;
pub use status::{Health, ReflectorStatus};

use backoff::Backoff;
use intake::Intake;
use list::ListHistory;
use status::Reporter;
use watch::Setbacks;

/// How long the server may leave a request unanswered, or pause within a list. It gives up on a request itself after a
/// minute; a little more lets its own word be heard. Without it, a connection that went dead would hang us for ever.
const PATIENCE: Duration = Duration::from_secs(75);

/// Lists a resource, watches it, and hands on everything that it learns, in the server's order.
///
/// ```no_run
/// # async fn run(client: kube::Client) {
/// use std::sync::Arc;
/// use informer_core::DeltaFifo;
/// use informer_reflector::{KubeListWatch, Reflector, ReflectorConfig};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let queue = DeltaFifo::new();
/// let pods = KubeListWatch::<Pod>::all(client);
/// let reflector = Reflector::new(Arc::new(pods), Arc::new(queue.clone()), ReflectorConfig::new());
/// let shutdown = tokio_util::sync::CancellationToken::new();
/// tokio::spawn(reflector.run(shutdown.clone()));
/// while let Some(batch) = queue.pop_batch().await {
///     for pending in batch.items() {
///         println!("{}: {} changes", pending.key, pending.deltas.len());
///     }
/// }
/// # }
/// ```
pub struct Reflector<K> {
    lister_watcher: Arc<dyn ListerWatcher<K>>,
    store: Arc<dyn ReflectorStore<K>>,
    config: ReflectorConfig<K>,
    intake: Intake<K>,
    history: ListHistory,
    setbacks: Setbacks,
    backoff: Backoff,
    reporter: Reporter,
    relist: Relist,
}

/// What the reflector asks the server for.
#[derive(Debug, Clone, Copy)]
enum Request {
    List,
    Watch,
}

/// What the reflector does next.
#[derive(Debug)]
enum Step {
    Now(Request),
    /// After a wait, because of an error.
    Later(Request, ListWatchError),
}

impl<K: Resource + Send + Sync + 'static> Reflector<K> {
    /// Returns a reflector that does nothing until it is [run](Self::run).
    #[must_use]
    pub fn new(
        lister_watcher: Arc<dyn ListerWatcher<K>>,
        store: Arc<dyn ReflectorStore<K>>,
        config: ReflectorConfig<K>,
    ) -> Self {
        let reporter = Reporter::new(lister_watcher.description());
        let intake = Intake { transform: config.transform.clone() };
        Self {
            lister_watcher,
            store,
            config,
            intake,
            history: ListHistory::default(),
            setbacks: Setbacks::default(),
            backoff: Backoff::new(),
            reporter,
            relist: Relist::new(),
        }
    }

    /// Returns a view of how the reflector fares.
    #[must_use]
    pub fn status(&self) -> ReflectorStatus {
        self.reporter.status()
    }

    /// Returns a way to have the reflector list again.
    #[must_use]
    pub fn relist(&self) -> Relist {
        self.relist.clone()
    }

    /// Lists and watches until `shutdown`. Errors don't end it: they show in the [status](Self::status), are logged
    /// once, and it tries again.
    ///
    /// # Cancel safety
    /// Dropping the future stops the reflector; what has been handed on stays.
    pub async fn run(mut self, shutdown: CancellationToken) {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = self.list_and_watch() => {}
        }
    }

    async fn list_and_watch(&mut self) {
        let mut request = Request::List;
        loop {
            let step = match request {
                Request::List => {
                    self.relist.is_answered();
                    self.list().await
                }
                Request::Watch => {
                    let relist = self.relist.clone();
                    tokio::select! {
                        biased;
                        () = relist.requested() => Step::Now(Request::List),
                        step = self.watch() => step,
                    }
                }
            };
            request = match step {
                Step::Now(next) => next,
                Step::Later(next, error) => {
                    let wait = self.backoff.next(error.retry_after());
                    self.reporter.trouble(error, wait);
                    tokio::time::sleep(wait).await;
                    next
                }
            };
        }
    }

    /// A watch is of use. A list that succeeds doesn't say so: where only watches fail, lists would follow each other
    /// without a wait.
    fn succeeded(&mut self) {
        self.setbacks = Setbacks::default();
        self.backoff.reset();
        self.reporter.recovered();
    }
}

/// The error of a request that nobody answered.
fn unanswered() -> ListWatchError {
    ListWatchError::Unreachable(format!("no answer within {PATIENCE:?}").into())
}

impl<K: 'static> fmt::Debug for Reflector<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("resource", &self.lister_watcher.description())
            .field("last_seen", &self.history.last_seen)
            .finish_non_exhaustive()
    }
}
