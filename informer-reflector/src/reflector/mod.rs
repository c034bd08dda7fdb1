//! [`Reflector`]: keeps a [`ReflectorStore`] equal to a [`ListerWatcher`]'s objects.
//!
//! client-go: `Reflector` of tools/cache/reflector.go. Unlike client-go, the reflector resumes a
//! watch after most errors before it relists, it resets its backoff only after a watch has lasted
//! ten seconds, and every request has a timeout. Also unlike in client-go, the store keeps the last
//! valid versions of undecodable objects.

mod backoff;
mod config;
mod counts;
mod encode;
mod failure;
mod ingest;
mod list;
mod listing;
mod outage;
mod pace;
mod relist;
mod reporter;
mod server;
mod silence;
mod status;
mod step;
mod streaming;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{ListWatchError, ListerWatcher, ReflectorStore, Storage};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub use config::ReflectorConfig;
pub use counts::{EventCounts, ReflectorCounts};
pub use failure::{ListWatchFailure, NextRequest};
pub use ingest::Ingest;
pub use relist::RelistHandle;
pub use server::SharedServer;
pub use status::{Health, ListRecord, ReflectorStatus};

use backoff::{Backoff, clamped};
use list::ListHistory;
use outage::{OutageFailures, Outcome, Recovery};
use pace::Pace;
use reporter::Reporter;
use silence::SilenceDetector;
use step::{Form, Request, Step};
use watch::{OpenWatch, WatchFailures};

/// The longest wait for the response to a paged list to begin, and for more data of the list.
// API servers end a request after a minute. The 15 additional seconds let their error arrive.
const MAX_RESPONSE_WAIT: Duration = Duration::from_secs(75);

/// Lists a resource, watches it, and passes all changes to a [`ReflectorStore`] in the server's
/// order.
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
    config: ReflectorConfig,
    ingest: Ingest,
    history: ListHistory,
    watch_failures: WatchFailures,
    backoff: Backoff,
    pace: Pace,
    /// The open stream of a streaming list whose objects have all arrived. The next watch continues
    /// this stream. `None` at other times.
    open: Option<OpenWatch<K>>,
    silence: SilenceDetector,
    /// A summary of this reflector's failed requests since the server became unavailable. `None`
    /// while the server responds.
    outage_failures: Option<OutageFailures>,
    /// `Some` from this reflector's first response after an outage until its list is complete, its
    /// watch has lasted a second, or an error makes it wait.
    recovery: Option<Recovery>,
    /// The number of the server's responses to all reflectors, at the time of this reflector's last
    /// failure in an outage.
    responses_at_failure: u64,
    /// The number of events and objects that were processed since the reflector last yielded.
    since_yield: usize,
    reporter: Reporter,
    relist: RelistHandle,
}

/// The number of events or objects after which the reflector yields, even if more are available.
const YIELD_AFTER: usize = 1_000;

impl<K: Resource + Send + Sync + 'static> Reflector<K> {
    /// Creates a reflector. It sends no request before it is [run](Self::run).
    #[must_use]
    pub fn new(
        lister_watcher: Arc<dyn ListerWatcher<K>>,
        store: Arc<dyn ReflectorStore<K>>,
        config: ReflectorConfig,
    ) -> Self {
        Self::with_ingest(lister_watcher, store, config, Ingest::of::<K>())
    }
}

impl<K: Send + Sync + 'static> Reflector<K> {
    /// Creates a reflector with an [`Ingest`], the functions that process each arriving object.
    #[doc(hidden)]
    #[must_use]
    pub fn with_ingest(
        lister_watcher: Arc<dyn ListerWatcher<K>>,
        store: Arc<dyn ReflectorStore<K>>,
        config: ReflectorConfig,
        ingest: Ingest,
    ) -> Self {
        let reporter = Reporter::new(lister_watcher.description(), lister_watcher.received_bytes());
        Self {
            lister_watcher,
            store,
            backoff: config.backoff.clone(),
            config,
            pace: Pace::new(),
            ingest,
            history: ListHistory::default(),
            watch_failures: WatchFailures::default(),
            open: None,
            silence: SilenceDetector::default(),
            outage_failures: None,
            recovery: None,
            responses_at_failure: 0,
            since_yield: 0,
            reporter,
            relist: RelistHandle::new(),
        }
    }

    /// Sets a function that changes each object before it is cached, for example to drop unused
    /// fields. It runs at most once for each arriving object, without a lock. If a later list
    /// returns the same version of an object, the function runs again. Default: none.
    ///
    /// If the function fails or panics, or changes name, namespace, UID or resource version, the
    /// object is quarantined: the cached version, if any, stays, and
    /// [`ReflectorStatus::quarantined`] lists the object. A deleted object is removed nevertheless.
    #[doc(alias = "SetTransform")]
    #[must_use]
    pub fn transform<E: fmt::Display>(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.ingest.set_transform(transform);
        self
    }

    /// Sets the form in which objects are stored. Default: [`Storage::Decoded`].
    ///
    /// [`Storage::Encoded`] saves memory in caches whose objects are rarely read. To save the
    /// memory of unused fields, prefer [`KubeListWatch::prune`](crate::KubeListWatch::prune) or a
    /// type without them.
    #[must_use]
    pub fn storage(mut self, storage: Storage) -> Self
    where
        K: Serialize + DeserializeOwned,
    {
        self.ingest.set_storage::<K>(storage);
        self
    }

    /// Returns the status of the reflector.
    #[must_use]
    pub fn status(&self) -> ReflectorStatus {
        self.reporter.status()
    }

    /// Returns a handle that requests relists.
    #[must_use]
    pub fn relist(&self) -> RelistHandle {
        self.relist.clone()
    }

    /// Lists and watches until `shutdown` is cancelled. After an error, the reflector retries. If
    /// it waits before the retry, it logs the error, and its [status](Self::status) contains the
    /// error during the wait.
    ///
    /// # Cancel safety
    /// Dropping the future stops the reflector. Objects that were passed to the store stay there.
    pub async fn run(mut self, shutdown: CancellationToken) {
        self.lister_watcher = self.ingest.source(self.lister_watcher);
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = self.list_and_watch() => {}
        }
    }

    async fn list_and_watch(&mut self) {
        let mut request = Request::List;
        loop {
            if !matches!(request, Request::Watch) {
                // Drop the stream of an earlier list, because a new list begins.
                self.open = None;
                self.relist.clear_requests();
            }
            let form = match request {
                Request::List if self.may_stream() => Form::StreamingList,
                Request::List | Request::Pages => Form::PagedList,
                Request::Watch => Form::Watch,
            };
            let request_span = self.span_of(form);
            let step = self.send(form).instrument(request_span.span.clone()).await;
            self.record_end(request_span, &step);
            let cause = step.relist_cause(form, self.repeats_incomplete_list());
            let relist = cause.map(|cause| (cause, step.error().map(ToString::to_string)));
            request = match step {
                Step::Now(next) => next,
                Step::Requested => Request::List,
                Step::AtOnce(next, error) if self.pace.take() => {
                    let resource = self.lister_watcher.description();
                    tracing::debug!(resource, %error, "retrying immediately after a list or watch error");
                    self.report_failure(&error, next, Duration::ZERO);
                    next
                }
                Step::AtOnce(next, error) | Step::Later(next, error) => {
                    self.wait_after(error, next).await;
                    next
                }
            };
            if let Some((cause, error)) = relist {
                self.reporter.relisting(cause, error);
            }
        }
    }

    /// Makes a list or opens a watch, depending on `form`. Returns the next step when the list is
    /// complete or the watch has ended.
    async fn send(&mut self, form: Form) -> Step {
        match form {
            Form::StreamingList => self.stream_list().await,
            Form::PagedList => self.list().await,
            Form::Watch => {
                let relist = self.relist.clone();
                tokio::select! {
                    biased;
                    () = relist.requested() => Step::Requested,
                    step = self.watch() => step,
                }
            }
        }
    }

    async fn wait_after(&mut self, error: ListWatchError, next: Request) {
        if !error.is_unavailable() {
            self.finish_recovery(Outcome::Failed);
        }
        let mut wait = self.backoff.next(error.retry_after());
        let failures = error.is_unavailable().then(|| self.take_outage_failures(&error));
        // Only after the failures are counted: otherwise, no reflector would be part of the outage
        // in between, and the outage would be logged again.
        self.recovery = None;
        let Some(mut failures) = failures else {
            self.report_failure(&error, next, wait);
            self.reporter.request_failed(error, wait, false);
            return sleep(wait).await;
        };
        let half = failures.since.elapsed() / 2;
        wait = wait.min(half.max(self.backoff.max_first_wait())).max(failures.retry_after_server);
        failures.wait = wait;
        self.report_failure(&error, next, wait);
        self.reporter.request_failed(error, wait, !failures.only_own_resource);
        let failures = self.outage_failures.insert(failures);
        let reporter = &self.reporter;
        self.config.server.outage.wait_for_turn(failures, |turn| reporter.awaits_turn(turn)).await;
    }

    /// Takes this outage's failures out of `self.outage_failures`, adds `error`, and returns them.
    /// The caller must set `wait` of the returned value, and store it in `self.outage_failures`.
    fn take_outage_failures(&mut self, error: &ListWatchError) -> OutageFailures {
        let outage = &self.config.server.outage;
        let responses = outage.responses();
        let others_are_served = std::mem::replace(&mut self.responses_at_failure, responses) != responses;
        let earlier = self.outage_failures.take();
        let mut failures =
            earlier.unwrap_or_else(|| outage.begin_failures(self.lister_watcher.description()));
        failures.only_own_resource |= failures.count > 0 && others_are_served;
        failures.count += 1;
        failures.error = error.to_string();
        failures.retry_after_server = clamped(error.retry_after());
        failures
    }

    fn finish_recovery(&mut self, outcome: Outcome) {
        if let Some(recovery) = &mut self.recovery {
            recovery.outcome = Some(outcome);
        }
        self.recovery = None;
    }

    fn report_failure(&self, error: &ListWatchError, next: Request, wait: Duration) {
        let description = self.lister_watcher.description();
        let failure = ListWatchFailure { description, error, next: next.into(), wait };
        self.reporter.count(|counts| counts.count_failure(error));
        failure::report(self.config.on_failure.as_ref(), &failure);
    }

    /// Returns the result of `request`, or an error if no response begins within `max_wait`. If the
    /// result shows that the server is available again after an outage, sets `self.recovery`.
    async fn await_response<T>(
        &mut self,
        max_wait: Duration,
        request: impl Future<Output = Result<T, ListWatchError>>,
    ) -> Result<T, ListWatchError> {
        let answer = timeout(max_wait, request).await.unwrap_or_else(|_| {
            Err(ListWatchError::Unreachable(format!("no answer within {max_wait:?}").into()))
        });
        let is_response = match &answer {
            Ok(_) => true,
            // A request that can't be built is not sent.
            Err(ListWatchError::InvalidRequest(_)) => false,
            Err(error) => !error.is_unavailable(),
        };
        if is_response {
            self.config.server.outage.count_response();
            if self.outage_failures.is_some() {
                self.recovery = Some(self.config.server.outage.begin_recovery());
                self.outage_failures = None;
            }
        }
        answer
    }

    async fn wait_for_room(&mut self) {
        if let Some(room) = self.store.wait_for_room() {
            room.await;
        }
    }

    async fn pause_in_bursts(&mut self, count: usize) {
        self.since_yield += count;
        if self.since_yield >= YIELD_AFTER {
            self.since_yield = 0;
            // On one thread, the queue's consumer now runs while the new objects are in CPU caches.
            tokio::task::yield_now().await;
        }
    }

    /// Resets the backoff to its first wait, after a watch has lasted ten seconds.
    fn reset_backoff(&mut self) {
        // A list does not reset it: watches can fail again and again although lists succeed.
        self.watch_failures = WatchFailures::default();
        self.backoff.reset();
        self.reporter.recovered();
    }
}

impl<K: 'static> fmt::Debug for Reflector<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("resource", &self.lister_watcher.description())
            .field("last_seen", &self.history.last_seen)
            .finish_non_exhaustive()
    }
}
