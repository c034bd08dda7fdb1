//! [`LeaderElectionConfig`]: which lease is contended for, by whom and with which timing; and what is wrong with one.

use std::time::Duration;

use thiserror::Error;

/// How much longer than the retry period a candidate may wait, as a share of it. client-go: `JitterFactor`.
pub(super) const JITTER_FACTOR: f64 = 1.2;

/// Which lease is contended for, by whom and with which timing.
///
/// Everybody who contends for a lease should use the same timing. A candidate goes by the duration that the holder has
/// written into the lease, so that there is never more than one leader even if they don't.
///
/// client-go: `LeaderElectionConfig` of tools/leaderelection. There is no `ReleaseOnCancel`: the lease is always released
/// once the work is over, because here that is known. Coordinated leader election (KEP-4355) is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct LeaderElectionConfig {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) lease_duration: Duration,
    pub(super) renew_deadline: Duration,
    pub(super) retry_period: Duration,
}

impl LeaderElectionConfig {
    /// Returns the defaults for a lease: 15 s, 10 s and 2 s, and the host's name (`HOSTNAME`, which in a pod is its
    /// name) with random digits for an identity.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
        let host = host.unwrap_or_else(|| "candidate".to_owned());
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: format!("{host}_{:016x}", fastrand::u64(..)),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// Sets what the lease says of who holds it. Default: see [`new`](Self::new).
    ///
    /// It is for people to read. Two processes with the same identity never lead at once either; but then nobody can
    /// tell them apart.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Sets for how long others wait after the last sign of life of a leader before they take its lease: whole seconds,
    /// 15 by default. So long nobody may lead after a leader has died.
    #[doc(alias = "LeaseDuration")]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Sets how long after the start of its last successful request a leader tells its work to stop: 10 s by default.
    ///
    /// The work has half of what is then left of the lease (2.5 s by default) until it is dropped. The other half is for
    /// clocks that go at different speeds: by default, the fastest may go 1.2 times as fast as the slowest.
    #[doc(alias = "RenewDeadline")]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// Sets how long to wait between tries: 2 s by default. A leader renews its lease so often; others look at it after
    /// that, or up to 2.2 times that, at random, so that they don't all ask at once.
    #[doc(alias = "RetryPeriod")]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// How long one request may take: half of the renewal's time, so that one that stalls can be followed by another.
    pub(super) fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// How long after the start of its last successful request a leader's work is dropped.
    pub(super) fn work_limit(&self) -> Duration {
        (self.renew_deadline + self.lease_duration) / 2
    }

    pub(super) fn check(&self) -> Result<(), LeaderElectionError> {
        let empty = [("namespace", &self.namespace), ("name", &self.name), ("identity", &self.identity)];
        if let Some((field, _)) = empty.into_iter().find(|(_, value)| value.is_empty()) {
            return Err(LeaderElectionError::Empty { field });
        }
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        let too_long = i32::try_from(lease.as_secs()).is_err();
        if lease.is_zero() || lease.subsec_nanos() != 0 || too_long {
            return Err(LeaderElectionError::LeaseDuration { lease_duration: lease });
        }
        if lease <= renew {
            return Err(LeaderElectionError::RenewDeadline { renew_deadline: renew, lease_duration: lease });
        }
        if retry.is_zero() || renew <= retry.saturating_mul(12) / 10 {
            return Err(LeaderElectionError::RetryPeriod { retry_period: retry, renew_deadline: renew });
        }
        Ok(())
    }
}

/// What is wrong with a [`LeaderElectionConfig`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LeaderElectionError {
    /// Something that a lease can't do without is empty.
    #[error("{field} is empty: leader election needs one")]
    Empty {
        /// What is empty.
        field: &'static str,
    },
    /// A lease says its duration in seconds.
    #[error("a lease_duration of {lease_duration:?} can't be written: make it whole seconds, at least one")]
    LeaseDuration {
        /// What it was set to.
        lease_duration: Duration,
    },
    /// A leader would go on after others have taken its lease.
    #[error(
        "a renew_deadline of {renew_deadline:?} is too long: make it less than the lease_duration, \
         {lease_duration:?}, by as much as the work needs to stop, and again as much for clocks that differ"
    )]
    RenewDeadline {
        /// What it was set to.
        renew_deadline: Duration,
        /// What it has to be less than.
        lease_duration: Duration,
    },
    /// A leader would not try again before it has to stop.
    #[error(
        "a retry_period of {retry_period:?} does not fit: make it more than zero, and 1.2 times of it less than \
         the renew_deadline, {renew_deadline:?}"
    )]
    RetryPeriod {
        /// What it was set to.
        retry_period: Duration,
        /// What 1.2 times of it have to be less than.
        renew_deadline: Duration,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> LeaderElectionConfig {
        LeaderElectionConfig::new("shop", "till")
    }

    #[test]
    fn timing_that_allows_two_leaders_is_refused_with_remedy() {
        let seconds = Duration::from_secs;
        let cases = [
            (config().lease_duration(seconds(0)), "make it whole seconds, at least one"),
            (config().lease_duration(Duration::from_millis(15_500)), "make it whole seconds"),
            (config().lease_duration(seconds(1 << 40)), "make it whole seconds"),
            (config().lease_duration(seconds(10)), "make it less than the lease_duration, 10s"),
            (config().retry_period(seconds(9)), "1.2 times of it less than the renew_deadline, 10s"),
            (config().retry_period(Duration::ZERO), "make it more than zero"),
            (config().identity(""), "identity is empty"),
            (LeaderElectionConfig::new("", "till"), "namespace is empty"),
            (LeaderElectionConfig::new("shop", ""), "name is empty"),
        ];
        for (config, wanted) in cases {
            let error = config.check().expect_err(wanted).to_string();
            assert!(error.contains(wanted), "{error}");
        }
        assert_eq!(config().check(), Ok(()));
    }

    #[test]
    fn each_process_has_an_identity_of_its_own() {
        assert_ne!(config().identity, config().identity);
    }
}
