//! [`FaultPlan`]: a sequence of faults that a seed determines.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::server_fault::{ActiveFault, ServerFault};
use super::shutdown::ShutdownAnswer;
use crate::http::RequestFilter;
use crate::simulator::Simulator;

/// Maximum duration of a plan. A longer time could overflow the clock.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The options of a [`FaultPlan`].
#[derive(Clone, Debug)]
pub struct FaultPlanOptions {
    /// The duration of the plan, limited to one year. Faults that [last for a
    /// while](ServerFault::has_duration) end within this time. Default: 10 minutes.
    pub duration: Duration,
    /// The number of faults. If `faults` is empty, the plan has none. Default: 20.
    pub count: usize,
    /// The requests and watches that are affected. Faults of the whole server ignore this filter.
    /// Default: all requests.
    pub requests: RequestFilter,
    /// The kinds of faults to draw from. A repeated entry is more likely. Default: all kinds except
    /// [`ServerFault::UndoWrites`], from which clients cannot be expected to recover.
    pub faults: Vec<ServerFault>,
}

impl Default for FaultPlanOptions {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(600),
            count: 20,
            requests: RequestFilter::any(),
            faults: vec![
                ServerFault::CloseWatches,
                ServerFault::AbortWatches,
                ServerFault::ExpireWatches,
                ServerFault::FailWatches,
                ServerFault::CutNextEvent,
                ServerFault::GarbleNextEvent,
                ServerFault::Compact,
                ServerFault::Restart,
                ServerFault::RestartWithoutHistory,
                ServerFault::Refuse,
                ServerFault::Respond { code: 410, retry_after: 0 },
                ServerFault::Respond { code: 429, retry_after: 0 },
                ServerFault::Respond { code: 429, retry_after: 1 },
                ServerFault::Respond { code: 500, retry_after: 0 },
                ServerFault::Respond { code: 500, retry_after: 1 },
                ServerFault::Respond { code: 503, retry_after: 0 },
                ServerFault::Respond { code: 503, retry_after: 5 },
                ServerFault::Respond { code: 504, retry_after: 0 },
                ServerFault::Stall,
                ServerFault::StallBodies(0),
                ServerFault::CloseBodies(0),
                ServerFault::AbortBodies(0),
                ServerFault::ExpireTokens,
                ServerFault::LoseBookmarks,
                ServerFault::DelayBookmarks,
                ServerFault::HoldReplicas,
                ServerFault::EmptyWatchCache,
                ServerFault::ShutDown(ShutdownAnswer::Usual),
                ServerFault::ShutDown(ShutdownAnswer::TooManyRequests),
                ServerFault::ShutDown(ShutdownAnswer::ServiceUnavailable),
                ServerFault::DrainConnections,
            ],
        }
    }
}

/// One fault of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedFault {
    /// The start of the fault, relative to the start of the plan.
    pub at: Duration,
    /// The duration of the fault; zero for a fault that does not
    /// [last for a while](ServerFault::has_duration).
    pub duration: Duration,
    /// The kind of fault.
    pub fault: ServerFault,
}

/// A random sequence of faults. The same seed and options always give the same plan.
///
/// `Display` prints the plan, one line per fault.
///
/// Two faults of the same kind can overlap. For these kinds, the end of one fault also ends the
/// other:
/// - [`ServerFault::LoseBookmarks`]
/// - [`ServerFault::DelayBookmarks`]
/// - [`ServerFault::EmptyWatchCache`]
/// - [`ServerFault::HoldReplicas`]
/// - [`ServerFault::ShutDown`], which also ends when another fault restarts the server
///
/// The end of such a fault also resets the test's own setting of the same kind. For example, the
/// end of [`ServerFault::HoldReplicas`] removes the lag that
/// [`LaggingReplica::lag`](crate::LaggingReplica::lag) has set, and the end of
/// [`ServerFault::LoseBookmarks`] undoes [`Simulator::lose_bookmarks`].
///
/// ```
/// use kube_simulator::{Error, FaultPlan, FaultPlanOptions, Simulator};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Error> {
/// let simulator = Simulator::builder().built_in_kinds().start_in_process();
/// let plan = FaultPlan::from_seed(7, &FaultPlanOptions::default());
/// println!("{plan}");
/// plan.run(&simulator, |line| println!("{line}")).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FaultPlan {
    faults: Vec<PlannedFault>,
    requests: RequestFilter,
    duration: Duration,
}

impl FaultPlan {
    /// Creates the random plan that this seed and these options determine.
    ///
    /// The plan adds a random number of bytes, at most 4,000, to the number in each
    /// [`ServerFault::StallBodies`], [`ServerFault::CloseBodies`] and [`ServerFault::AbortBodies`]
    /// from `options.faults`.
    ///
    /// A fault that [lasts for a while](ServerFault::has_duration) ends after a random duration:
    /// 50 ms to 100 s, or less if the plan ends sooner. Short durations are more frequent.
    #[must_use]
    pub fn from_seed(seed: u64, options: &FaultPlanOptions) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let duration = options.duration.min(MAX_DURATION);
        let drawn = (0..options.count).filter_map(|_| draw(&mut random, &options.faults, duration));
        let mut faults: Vec<_> = drawn.collect();
        faults.sort_by_key(|planned| planned.at);
        Self { faults, requests: options.requests.clone(), duration }
    }

    /// Returns the faults of the plan, in the order of their start.
    #[must_use]
    pub fn faults(&self) -> &[PlannedFault] {
        &self.faults
    }

    /// Applies the plan to a simulator, on tokio's clock, and returns after the plan's whole
    /// duration. Calls `report` with one line of text after each start and each end of a fault.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends all faults in effect that [last for a
    /// while](ServerFault::has_duration).
    pub async fn run(&self, simulator: &Simulator, mut report: impl FnMut(&str)) {
        let began = Instant::now();
        let mut ongoing: Vec<(Duration, ServerFault, ActiveFault<'_>)> = Vec::new();
        let mut upcoming = self.faults.iter().peekable();
        loop {
            let next_end = ongoing.iter().map(|(end, ..)| *end).min();
            let next_begin = upcoming.peek().map(|planned| planned.at);
            let Some(next) = next_end.into_iter().chain(next_begin).min() else {
                break;
            };
            sleep_until(began + next).await;
            if let Some(position) = ongoing.iter().position(|(end, ..)| *end <= next) {
                let (_, fault, effect) = ongoing.remove(position);
                drop(effect);
                report(&format!("{fault}: ended"));
            } else if let Some(planned) = upcoming.next() {
                let effect = planned.fault.begin(simulator, &self.requests);
                report(&planned.to_string());
                if planned.fault.has_duration() {
                    ongoing.push((planned.at + planned.duration, planned.fault, effect));
                }
            }
        }
        sleep_until(began + self.duration).await;
    }
}

fn draw(random: &mut fastrand::Rng, faults: &[ServerFault], whole: Duration) -> Option<PlannedFault> {
    let whole = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    let fault = match *random.choice(faults)? {
        ServerFault::StallBodies(least) => ServerFault::StallBodies(least.saturating_add(draw_bytes(random))),
        ServerFault::CloseBodies(least) => ServerFault::CloseBodies(least.saturating_add(draw_bytes(random))),
        ServerFault::AbortBodies(least) => ServerFault::AbortBodies(least.saturating_add(draw_bytes(random))),
        other => other,
    };
    let at = random.u64(..=whole);
    let scale = 10_u64.pow(random.u32(0..4));
    let duration = if fault.has_duration() { random.u64(50..=100 * scale.max(1)) } else { 0 };
    let duration = duration.min(whole - at);
    Some(PlannedFault { at: Duration::from_millis(at), duration: Duration::from_millis(duration), fault })
}

/// Draws a number of bytes. Small numbers are more likely, because clients are more likely to
/// mishandle a body that is cut near its beginning.
fn draw_bytes(random: &mut fastrand::Rng) -> u64 {
    let most = *random.choice(&[0, 40, 400, 4_000]).unwrap_or(&0);
    random.u64(0..=most)
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)?;
        if self.fault.has_duration() { write!(f, " for {:?}", self.duration) } else { Ok(()) }
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for planned in &self.faults {
            writeln!(f, "{:>8.3} s  {planned}", planned.at.as_secs_f64())?;
        }
        Ok(())
    }
}
