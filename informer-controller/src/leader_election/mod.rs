//! [`LeaderElector`]: makes sure that only one of several processes does some work.
//!
//! client-go: tools/leaderelection, with `Lease`s only. The default timing is that of client-go,
//! and candidates of both libraries can contend for one lease. client-go guarantees one leader
//! while clocks run at nearly the same speed. Here, the guarantee includes the leader's work: the
//! work ends before another candidate can lead. Other crates for leader election are not used: some
//! compare the dates in leases with the local clock, and so do not guarantee one leader; others do
//! not support the version of kube that this crate uses.
//!
//! Limit: a process that is suspended until its lease has ended can still send the request that it
//! was about to send. Only fencing on the server could prevent this. While a machine is suspended,
//! its clock (`Instant` on Linux) stands still. So after the machine resumes, the work continues
//! until the next renewal detects that the lease was lost. This takes up to one retry period plus
//! the time of two requests, or longer if requests fail.

mod config;
mod election;
mod record;
mod status;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

pub use config::{LeaderElectionConfig, LeaderElectionError};
pub use status::{ElectionProblem, ElectionStatus};

use election::{Election, Next, Outcome, Request, Response};
use status::Reporter;

/// A candidate in a leader election. The candidate that holds the Kubernetes `Lease` is the leader.
///
/// ```no_run
/// # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use informer_controller::{
///     ControllerRunner, LeaderElectionConfig, LeaderElector, LeadershipEnd, ReconcileRequest, Reconciled, Workqueue,
///     own_key,
/// };
/// use informer_factory::SharedInformerFactory;
/// use tokio_util::sync::CancellationToken;
///
/// // A warm standby: its informers are synced before it leads, so that its work can begin at once.
/// let factory = SharedInformerFactory::new(client.clone());
/// let pods = factory.core().v1().pods();
/// let runner = ControllerRunner::new(Workqueue::builder().name("pods").build()).watches(&pods, own_key);
/// factory.start();
/// factory.wait_for_cache_sync().await?;
///
/// let mut elector = LeaderElector::new(client, LeaderElectionConfig::new("shop", "pod-controller"))?;
/// let reconcile = |request: ReconcileRequest| async move {
///     println!("{}", request.key());
///     Ok::<_, kube::Error>(Reconciled::Done)
/// };
/// let shutdown = CancellationToken::new();
/// match elector.run(shutdown, |stop| runner.run(reconcile, stop)).await {
///     LeadershipEnd::NeverLed => {}
///     LeadershipEnd::Finished(synced) => synced?,
///     LeadershipEnd::Lost(_) => std::process::exit(1), // Restart as a candidate.
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LeaderElector {
    leases: Api<Lease>,
    name: String,
    request_timeout: Duration,
    election: Election,
    reporter: Reporter,
}

/// The outcome of a [run](LeaderElector::run).
// Not `non_exhaustive`, because there are no other outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadershipEnd<T> {
    /// The `shutdown` token was cancelled before this candidate became the leader.
    NeverLed,
    /// The leader's work has ended, by itself or because `shutdown` was cancelled, before the
    /// elector noticed a loss of the lease. Contains the output of the work.
    Finished(T),
    /// The lease was lost, or was not renewed in time. Contains the output of the leader's work, or
    /// `None` if the work was dropped.
    Lost(Option<T>),
}

impl LeaderElector {
    /// Returns a candidate. It does nothing until it is [run](Self::run).
    ///
    /// Each request has a timeout of at most half the renew deadline. Retries of the kube client
    /// count towards that timeout, so set `default_retry` of the client's config to `false`.
    ///
    /// # Errors
    /// [`LeaderElectionError`] if the timing is invalid, or a field is empty; the message says how
    /// to correct the value.
    #[doc(alias = "NewLeaderElector")]
    pub fn new(client: Client, config: LeaderElectionConfig) -> Result<Self, LeaderElectionError> {
        config.check()?;
        Ok(Self {
            leases: Api::namespaced(client, &config.namespace),
            name: config.name.clone(),
            request_timeout: config.request_timeout(),
            reporter: Reporter::new(&format!("{}/{}", config.namespace, config.name)),
            election: Election::new(config),
        })
    }

    /// Returns a view of the election that is updated while the elector runs.
    #[must_use]
    pub fn status(&self) -> ElectionStatus {
        self.reporter.status()
    }

    /// Contends for the lease, runs `work` while this candidate holds the lease, and releases the
    /// lease when the work has ended. Another candidate then acquires the lease, usually within one
    /// retry period, and within 2.2 retry periods if no request is slow or fails.
    ///
    /// The token that `work` receives is cancelled when `shutdown` is cancelled, or when the lease
    /// was not renewed in time. After `shutdown`, the elector renews the lease until the work has
    /// ended, without a limit. If the lease was not renewed in time, the work has a limited time to
    /// end: by default, the work is dropped 2.5 s after the token was cancelled, halfway between
    /// the renew deadline and the end of the lease. The work is dropped at once if a renewal shows
    /// that another candidate has the lease, or that the holder was removed from the lease.
    ///
    /// No part of the work may continue after the future that `work` returns has ended or was
    /// dropped. Otherwise two processes can work at the same time. So tasks that the work spawns
    /// must end with this future, as tasks of a `JoinSet` do. The work must not block the thread.
    /// The task that renews the lease also polls the work, so move long computations to another
    /// task.
    ///
    /// Only one process works at a time if all clocks have
    /// [nearly the same speed](LeaderElectionConfig::renew_deadline), unless a user deletes or edits
    /// the lease. The clock of a suspended machine stands still. After the machine resumes, its
    /// work continues for some seconds, until the next renewal shows that another candidate has the
    /// lease.
    ///
    /// After a loss, run the elector again, or end the process, as programs with client-go do.
    ///
    /// # Panics
    /// If the work panics. The lease is then not released, and expires.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work. The lease is not released: other candidates wait until
    /// the lease expires.
    #[doc(alias = "RunOrDie")]
    #[doc(alias = "OnStartedLeading")]
    #[doc(alias = "OnStoppedLeading")]
    #[doc(alias = "ReleaseOnCancel")]
    pub async fn run<T, F>(
        &mut self,
        shutdown: CancellationToken,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> LeadershipEnd<T>
    where
        F: Future<Output = T>,
    {
        // If an earlier run was dropped, its work was dropped too, so this candidate no longer
        // leads.
        self.election.step_down();
        let end = match shutdown.run_until_cancelled(self.acquire()).await {
            Some(()) => {
                // Declared before the work, so that it is dropped after the work.
                let _leading = self.reporter.started_leading();
                let stop = shutdown.child_token();
                self.lead(&stop, work(stop.clone())).await
            }
            None => LeadershipEnd::NeverLed,
        };
        self.election.step_down();
        self.release().await;
        end
    }

    async fn acquire(&mut self) {
        while self.attempt().await != Outcome::Leading {
            sleep(self.election.pause(fastrand::f64())).await;
        }
    }

    /// Renews the lease while the work runs. On return, the work has ended or was dropped.
    async fn lead<T>(&mut self, stop: &CancellationToken, work: impl Future<Output = T>) -> LeadershipEnd<T> {
        let mut work = pin!(work);
        loop {
            let (Some(renew_by), Some(until)) = (self.election.renew_by(), self.election.work_until()) else {
                return LeadershipEnd::Lost(None);
            };
            let renewal = tokio::select! {
                biased;
                renewal = self.renew(renew_by) => renewal,
                output = before(until, work.as_mut()) => match output {
                    Some(output) => return LeadershipEnd::Finished(output),
                    // This task was polled so late that the time is over, but the timers of the
                    // renewal have not fired yet.
                    None => Outcome::Failed,
                },
            };
            match renewal {
                Outcome::Leading => {}
                Outcome::Failed => {
                    self.reporter.stopped_leading("the lease could not be renewed in time");
                    stop.cancel();
                    return LeadershipEnd::Lost(before(until, work).await);
                }
                Outcome::Lost => {
                    self.reporter.stopped_leading(
                        "another candidate holds the lease, or the holder was removed from the lease",
                    );
                    stop.cancel();
                    return LeadershipEnd::Lost(None);
                }
            }
        }
    }

    /// Repeats attempts to renew the lease until it is renewed or lost, or the time `by` has
    /// passed.
    async fn renew(&mut self, by: Instant) -> Outcome {
        let tries = async {
            loop {
                sleep(self.election.pause(0.0)).await;
                match self.attempt().await {
                    Outcome::Failed => {}
                    outcome => return outcome,
                }
            }
        };
        timeout_at(by, tries).await.unwrap_or(Outcome::Failed)
    }

    async fn attempt(&mut self) -> Outcome {
        let mut request = self.election.begin(Timestamp::now());
        loop {
            let sent = Instant::now();
            let (response, problem) = self.send(&request, sent + self.request_timeout).await;
            let next =
                self.election.process_response(&request, response, sent, Instant::now(), Timestamp::now());
            match next {
                Next::Send(more) => {
                    // `renew` can drop this attempt before it ends, so record the failure now.
                    if problem.is_some() {
                        self.reporter.record(self.election.leader(), problem);
                    }
                    request = more;
                }
                Next::End(outcome) => {
                    self.reporter.record(self.election.leader(), problem);
                    return outcome;
                }
            }
        }
    }

    /// Releases the lease if this candidate holds it or possibly holds it. If the request fails,
    /// other candidates wait until the lease expires.
    async fn release(&mut self) {
        let deadline = Instant::now() + self.request_timeout;
        let mut next = self.election.begin_release(Timestamp::now());
        while let Some(request) = next {
            let (response, problem) = self.send(&request, deadline).await;
            next =
                self.election.process_release_response(&request, response, Instant::now(), Timestamp::now());
            self.reporter.record(self.election.leader(), problem);
            if Instant::now() >= deadline {
                return;
            }
        }
    }

    /// Sends a request, which fails if there is no response until `deadline`. If the response is
    /// [`Response::Failed`], also returns the problem.
    async fn send(&self, request: &Request, deadline: Instant) -> (Response, Option<ElectionProblem>) {
        let params = PostParams::default();
        let response = async {
            match request {
                Request::Get => self.leases.get(&self.name).await,
                Request::Create(lease) => self.leases.create(&params, lease).await,
                Request::Replace(lease) => self.leases.replace(&self.name, &params, lease).await,
            }
        };
        let error = match timeout_at(deadline, response).await {
            Ok(Ok(lease)) => return (Response::Lease(Box::new(lease)), None),
            Ok(Err(error)) => error,
            Err(_) => {
                let message = format!("no response within {:?}", self.request_timeout);
                return (Response::Failed, Some(ElectionProblem::Failing(message)));
            }
        };
        match (request, &error) {
            (Request::Get, Error::Api(status)) if status.code == 404 => (Response::NotFound, None),
            (Request::Create(_) | Request::Replace(_), Error::Api(status)) if status.code == 409 => {
                (Response::Conflict, None)
            }
            (_, Error::Api(status)) if status.code == 403 => {
                (Response::Failed, Some(ElectionProblem::Forbidden(status.message.clone())))
            }
            _ => (Response::Failed, Some(ElectionProblem::Failing(error.to_string()))),
        }
    }
}

/// Polls the work until `end`; returns `None` if it has not completed by then. After `end` the work
/// is never polled again, even if this task is scheduled late.
async fn before<T>(end: Instant, mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut time_is_up = pin!(sleep_until(end));
    poll_fn(|cx| {
        if Instant::now() >= end || time_is_up.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(cx).map(Some)
    })
    .await
}
