//! [`FactoryHealth`]: whether all informers of a factory are synced and live.
//!
//! A program requests an informer from a factory with a method such as `pods()`. The factory then
//! contains the informer, started or not. `stop` and `stop_idle_after` remove informers. An
//! informer is synced once its initial list is in the store, and live while its watch is open or
//! being resumed without a wait.

use std::fmt;

use super::SharedInformerFactory;
use super::report::InformerReport;
use crate::status::{InformerState, StopCause};

/// The result of [`SharedInformerFactory::health`]: whether all informers of the factory are synced
/// and live, and the reason for each informer that is not. Its `Display` writes one line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FactoryHealth {
    /// The number of the factory's informers, started or not.
    pub informers: usize,
    /// The informers that are not synced or not live, ordered by description.
    /// [`InformerReport::problem`] returns the reason for each.
    pub unhealthy: Vec<InformerReport>,
}

impl FactoryHealth {
    /// Returns whether all informers of the factory are synced: their initial lists are in their
    /// stores. An informer stays synced while its server is unavailable, so a readiness probe can
    /// use this.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.unhealthy.iter().all(|report| report.has_synced)
    }

    /// Returns whether all informers of the factory are synced, and their watches are open or being
    /// resumed without a wait. If not, stores are incomplete, or can lack recent changes.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.unhealthy.is_empty()
    }

    /// Returns whether the task of an informer has panicked. A restart of the program can correct
    /// that, so a liveness probe can use this.
    #[must_use]
    pub fn has_panicked(&self) -> bool {
        let panicked = InformerState::Stopped(StopCause::Panicked);
        self.unhealthy.iter().any(|report| report.state == panicked)
    }
}

impl fmt::Display for FactoryHealth {
    /// Writes how many informers are synced and live, and the problem of each other informer:
    ///
    /// `1 of 2 informers are synced and live; pods (synced, backing off for 3.2s: …)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let healthy = self.informers - self.unhealthy.len();
        write!(f, "{healthy} of {} informers are synced and live", self.informers)?;
        for (number, report) in self.unhealthy.iter().enumerate() {
            let separator = if number == 0 { ';' } else { ',' };
            let synced = if report.has_synced { "synced, " } else { "" };
            let reason = report.problem().unwrap_or_default();
            write!(f, "{separator} {} ({synced}{reason})", report.description)?;
        }
        Ok(())
    }
}

impl SharedInformerFactory {
    /// Returns whether all informers of this factory are synced and live, and the reason for each
    /// informer that is not. An informer that was requested but not started is not synced. An
    /// informer that [`stop`](Self::stop) has removed from the factory does not count.
    ///
    /// ```no_run
    /// # fn check(factory: &informer_factory::SharedInformerFactory) {
    /// let health = factory.health();
    /// if !health.is_live() {
    ///     eprintln!("{health}"); // 1 of 2 informers are synced and live; pods (forbidden: …)
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn health(&self) -> FactoryHealth {
        let mut unhealthy = self.informers();
        let informers = unhealthy.len();
        unhealthy.retain(|report| report.problem().is_some());
        FactoryHealth { informers, unhealthy }
    }
}
