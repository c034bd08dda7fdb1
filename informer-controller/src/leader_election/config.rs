//! [`LeaderElectionConfig`]: the lease, the candidate's identity and the timing.

use std::time::Duration;

use thiserror::Error;

/// The maximum random time that is added to the wait between two attempts to acquire the lease, in
/// retry periods. client-go: `JitterFactor`.
pub(super) const JITTER_FACTOR: f64 = 1.2;

/// The lease of an election, the candidate's identity and the timing.
///
/// All candidates for a lease should use the same timing. But a different timing does not lead to
/// two leaders: a candidate waits for the duration that the holder has written into the lease, and
/// not for the lease duration of its own configuration.
///
/// client-go: `LeaderElectionConfig` of tools/leaderelection. There is no `ReleaseOnCancel`: the
/// lease is released when the work has ended, unless the work has panicked. Coordinated leader
/// election (KEP-4355) is not supported.
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
    /// Returns the default configuration for a lease: a lease duration of 15 s, a renew deadline of
    /// 10 s and a retry period of 2 s. The identity is the host name and random digits. The host
    /// name is `HOSTNAME` (in a pod, usually the pod's name), or `candidate` if `HOSTNAME` is not
    /// set, is empty or is not Unicode.
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

    /// Sets the holder identity that is written into the lease. Default: see [`new`](Self::new).
    ///
    /// The identity only shows users which process leads. Even two electors with the same identity
    /// do not lead at the same time, unless their clocks show the same microsecond when they try to
    /// acquire the lease.
    ///
    /// Exception: if a program with client-go is a candidate for the same lease, give this elector
    /// and that program different identities. client-go treats each lease that names its identity
    /// as its own lease.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Sets how long other candidates wait, after they have seen the leader's last renewal, before
    /// they take the lease: whole seconds, 15 by default. If the leader crashes, there is no leader
    /// for about this long.
    #[doc(alias = "LeaseDuration")]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Sets how long a leader works without a renewal of its lease before it cancels the work.
    /// Default: 10 s. The time counts from the start of the last request that renewed the lease.
    ///
    /// The deadline must be shorter than the [lease duration](Self::lease_duration), which remains
    /// 15 s unless it is set, too.
    ///
    /// If the cancelled work does not end, the leader drops the future of the work halfway between
    /// the renew deadline and the end of the lease. By default, this is 12.5 s after the start of
    /// the last request that renewed the lease.
    ///
    /// Other candidates wait for the whole lease duration: by default, 15 s. So different clock
    /// speeds lead to two leaders only if the clock of one machine runs at least 1.2 times
    /// (15 s / 12.5 s) as fast as the clock of the other.
    #[doc(alias = "RenewDeadline")]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// Sets the wait between two attempts to acquire or renew the lease. Default: 2 s. The leader
    /// waits exactly this long. Each other candidate waits for a random time from 1 to 2.2 times as
    /// long, so that the candidates do not all send requests at the same time.
    #[doc(alias = "RetryPeriod")]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// Returns the timeout of one request: half of the renew deadline. If the retry period is
    /// shorter than this, a later request can still renew the lease if the first one stalls.
    pub(super) fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// Returns the time from the last renewal until cancelled work is dropped. Default: 12.5 s.
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

/// An invalid [`LeaderElectionConfig`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LeaderElectionError {
    /// A required field is empty.
    #[error("{field} is empty: leader election requires a value")]
    Empty {
        /// The name of the empty field: `namespace`, `name` or `identity`.
        field: &'static str,
    },
    /// The lease duration is not a positive number of whole seconds, or it is too long for a lease.
    #[error(
        "invalid lease_duration {lease_duration:?}: it must be a whole number of seconds, at least one and at most \
         2147483647"
    )]
    LeaseDuration {
        /// The configured lease duration.
        lease_duration: Duration,
    },
    /// The renew deadline is too long. It must be shorter than the lease duration.
    #[error(
        "invalid renew_deadline {renew_deadline:?}: it must be less than the lease_duration, {lease_duration:?}; the \
         leader needs the time between the two to stop its work"
    )]
    RenewDeadline {
        /// The configured renew deadline.
        renew_deadline: Duration,
        /// The configured lease duration, which must be longer than the renew deadline.
        lease_duration: Duration,
    },
    /// The retry period is zero or too long. 1.2 times its value must be less than the renew
    /// deadline.
    #[error(
        "invalid retry_period {retry_period:?}: it must be more than zero, and 1.2 times its value must be less than \
         the renew_deadline, {renew_deadline:?}"
    )]
    RetryPeriod {
        /// The configured retry period.
        retry_period: Duration,
        /// The configured renew deadline, which limits the retry period.
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
            (config().lease_duration(seconds(0)), "it must be a whole number of seconds, at least one"),
            (config().lease_duration(Duration::from_millis(15_500)), "it must be a whole number of seconds"),
            (config().lease_duration(seconds(1 << 40)), "it must be a whole number of seconds"),
            (config().lease_duration(seconds(10)), "it must be less than the lease_duration, 10s"),
            (
                config().retry_period(seconds(9)),
                "1.2 times its value must be less than the renew_deadline, 10s",
            ),
            (config().retry_period(Duration::ZERO), "it must be more than zero"),
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
    fn each_process_has_its_own_identity() {
        assert_ne!(config().identity, config().identity);
    }
}
