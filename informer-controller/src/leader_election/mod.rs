//! [`LeaderElector`]: lets one of several processes do some work.
//!
//! client-go: tools/leaderelection, with `Lease`s only. It uses client-go's timing of 15 s, 10 s and 2 s, and both can contend for one lease.
//! client-go guarantees one leader as long as clocks run at nearly the same speed; here, the guarantee includes the work, which ends in time.
//! Existing crates do not keep it: they compare the dates in leases with their own clocks, or do not support this version of kube.
//!
//! Only a fence could prevent this: a process that is suspended after its lease has ended can complete the request that it was about to send.
//! Writes with an outdated resource version fail then, and the work is not polled again after its time. On a suspended machine, the clock
//! stops, too (`Instant` of Linux); there, the work continues until the next renewal detects it, within a retry period and a request's time.

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
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

pub use config::{LeaderElectionConfig, LeaderElectionError};
pub use status::{ElectionProblem, ElectionStatus};

use election::{Answer, Election, Next, Request};
use status::Reporter;

/// A candidate for leadership. The leader is the holder of a `Lease`.
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
/// // A warm standby: its informers are synced before it leads, so that it can begin at once when it does.
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
///     LeadershipEnd::Lost(_) => std::process::exit(1), // And begin anew, as a candidate.
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

/// How a [run](LeaderElector::run) has ended.
// Complete: either it led to the end of its work, or not, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadershipEnd<T> {
    /// `shutdown` was cancelled before this candidate led.
    NeverLed,
    /// The work has ended, of itself or because `shutdown` was cancelled, and the lease was held all the time.
    Finished(T),
    /// The lease was lost. This is what the work returned, if it has ended in time; else it was dropped.
    Lost(Option<T>),
}

impl LeaderElector {
    /// Returns a candidate. It does nothing until it is [run](Self::run).
    ///
    /// Its requests have a limit of their own, half of the renewal's time. A client that tries again by itself may use that
    /// up with the first: set `default_retry` of its config to `false`.
    ///
    /// # Errors
    /// [`LeaderElectionError`] if the timing could let two lead, or something is empty; it says what to write.
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

    /// Returns who leads; it can be asked while the elector runs.
    #[must_use]
    pub fn status(&self) -> ElectionStatus {
        self.reporter.status()
    }

    /// Contends for the lease, does the work while holding it, and releases it when the work is over, so that the next
    /// candidate has it within a retry period, or 2.2 of them at most.
    ///
    /// The token that `work` gets is cancelled when the work has to stop: because `shutdown` was, or because the lease
    /// could not be renewed in time. In the first case the lease is renewed until the work has ended, and there is no
    /// limit. In the second, the work is dropped halfway between the renew deadline and the lease's end, with the
    /// defaults 2.5 s later. If somebody else is seen to have the lease, or somebody has emptied it, the work is dropped
    /// at once.
    ///
    /// So that no two processes are at work, the work must be over when its future is. Tasks that it spawns have to end
    /// with it, as those of a `JoinSet` do, and it must not block the thread. It is polled in the task that renews the
    /// lease; what keeps the thread busy belongs into a task of its own.
    ///
    /// All of this holds as long as clocks go at [nearly the same speed](LeaderElectionConfig::renew_deadline). That of a
    /// machine which is suspended stands still, so that its work goes on for some seconds when it wakes up, until the next
    /// renewal shows that the lease is another's.
    ///
    /// After a loss, run it again, or end the process, as programs with client-go do.
    ///
    /// # Panics
    /// If the work does. The lease is not released then, and ends by itself.
    ///
    /// # Cancel safety
    /// If the future is dropped, so is the work. The lease is not released: others wait until it ends.
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
        // If a run was dropped, so was its work.
        self.election.step_down();
        let end = match shutdown.run_until_cancelled(self.acquire()).await {
            Some(()) => {
                // Dropped after the work.
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

    /// Tries until it leads.
    async fn acquire(&mut self) {
        while self.attempt().await != Outcome::Leading {
            sleep(self.election.pause(fastrand::f64())).await;
        }
    }

    /// Renews the lease while the work goes on. When this ends, the work is over.
    async fn lead<T>(&mut self, stop: &CancellationToken, work: impl Future<Output = T>) -> LeadershipEnd<T> {
        let mut work = pin!(work);
        loop {
            let (Some(renew_by), Some(until)) = (self.election.renew_by(), self.election.work_until()) else {
                return LeadershipEnd::Lost(None);
            };
            tokio::select! {
                biased;
                renewal = self.renew(renew_by) => match renewal {
                    Outcome::Leading => {}
                    Outcome::NotLeading => {
                        self.reporter.stopped_leading("the lease could not be renewed in time");
                        stop.cancel();
                        return LeadershipEnd::Lost(before(until, work).await);
                    }
                    Outcome::Lost => {
                        self.reporter.stopped_leading("the lease is not ours any more");
                        stop.cancel();
                        return LeadershipEnd::Lost(None);
                    }
                },
                output = before(until, work.as_mut()) => {
                    return output.map_or(LeadershipEnd::Lost(None), LeadershipEnd::Finished);
                }
            }
        }
    }

    /// Tries until the lease is renewed or lost, or the time is up.
    async fn renew(&mut self, by: Instant) -> Outcome {
        let tries = async {
            loop {
                sleep(self.election.pause(0.0)).await;
                match self.attempt().await {
                    Outcome::NotLeading => {}
                    outcome => return outcome,
                }
            }
        };
        timeout_at(by, tries).await.unwrap_or(Outcome::NotLeading)
    }

    /// Tries once to get the lease, or to keep it.
    async fn attempt(&mut self) -> Outcome {
        let mut request = self.election.begin(Timestamp::now());
        loop {
            let sent = Instant::now();
            let (answer, problem) = self.ask(&request).await;
            let next = self.election.answered(&request, answer, sent, Instant::now(), Timestamp::now());
            let outcome = match next {
                Next::Ask(more) => {
                    request = more;
                    continue;
                }
                Next::Leading => Outcome::Leading,
                Next::NotLeading => Outcome::NotLeading,
                Next::Lost => Outcome::Lost,
            };
            self.reporter.tried(self.election.leader(), problem);
            return outcome;
        }
    }

    /// Releases the lease if this candidate holds it, or may hold it for all it knows. If that fails, it ends by itself.
    async fn release(&mut self) {
        let deadline = Instant::now() + self.request_timeout;
        let mut next = self.election.begin_release(Timestamp::now());
        while let Some(request) = next {
            let Ok((answer, problem)) = timeout_at(deadline, self.ask(&request)).await else { return };
            next = self.election.answered_release(&request, answer, Instant::now(), Timestamp::now());
            self.reporter.tried(self.election.leader(), problem);
        }
    }

    /// Asks the server. Returns also what was wrong, if something was.
    async fn ask(&self, request: &Request) -> (Answer, Option<ElectionProblem>) {
        let params = PostParams::default();
        let response = async {
            match request {
                Request::Get => self.leases.get(&self.name).await,
                Request::Create(lease) => self.leases.create(&params, lease).await,
                Request::Replace(lease) => self.leases.replace(&self.name, &params, lease).await,
            }
        };
        let error = match timeout(self.request_timeout, response).await {
            Ok(Ok(lease)) => return (Answer::Lease(Box::new(lease)), None),
            Ok(Err(error)) => error,
            Err(_) => {
                let message = format!("no answer within {:?}", self.request_timeout);
                return (Answer::Failed, Some(ElectionProblem::Failing(message)));
            }
        };
        match (request, &error) {
            (Request::Get, Error::Api(status)) if status.code == 404 => (Answer::NotFound, None),
            (Request::Create(_) | Request::Replace(_), Error::Api(status)) if status.code == 409 => {
                (Answer::Conflict, None)
            }
            (_, Error::Api(status)) if status.code == 403 => {
                (Answer::Failed, Some(ElectionProblem::Forbidden(status.message.clone())))
            }
            _ => (Answer::Failed, Some(ElectionProblem::Failing(error.to_string()))),
        }
    }
}

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Leading,
    NotLeading,
    Lost,
}

/// Runs the work until a time; after it, the work is not polled once more, however late this task comes to its turn.
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
