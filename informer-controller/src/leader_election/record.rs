//! [`Claim`]: a term of leadership, and its conversion from and to leases.
//!
//! client-go: `LeaderElectionRecord` of tools/leaderelection/resourcelock. The dates in a lease are
//! only information for people, but the acquire time also distinguishes claims.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// One term of leadership: the holder and the start. The start identifies the writer of a lease,
/// even among processes with the same identity, unless two of them start in the same microsecond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) identity: String,
    pub(super) acquired: MicroTime,
    pub(super) transitions: i32,
}

impl Claim {
    pub(super) fn holds(&self, lease: &Lease) -> bool {
        lease.spec.as_ref().is_some_and(|spec| {
            spec.holder_identity.as_deref() == Some(&self.identity)
                && spec.acquire_time.as_ref() == Some(&self.acquired)
                && spec.lease_transitions.unwrap_or(0) == self.transitions
        })
    }

    pub(super) fn create(&self, namespace: &str, name: &str, duration: Duration, date: Timestamp) -> Lease {
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        self.write(Lease { metadata, spec: None }, duration, date)
    }

    /// Writes the claim, the lease duration and a new renew time into the lease. Other fields stay
    /// unchanged.
    pub(super) fn write(&self, mut lease: Lease, duration: Duration, date: Timestamp) -> Lease {
        let spec = lease.spec.get_or_insert_default();
        let renewed = distinct_date(spec.renew_time.as_ref(), date);
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX));
        spec.acquire_time = Some(self.acquired.clone());
        spec.renew_time = Some(renewed);
        spec.lease_transitions = Some(self.transitions);
        lease
    }
}

/// Removes the holder from the lease, and sets the duration to one second as in client-go.
pub(super) fn release(mut lease: Lease, date: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_default();
    let released = distinct_date(spec.renew_time.as_ref(), date);
    spec.holder_identity = Some(String::new());
    // A candidate that does not check for a missing holder waits only this long.
    spec.lease_duration_seconds = Some(1);
    spec.acquire_time = Some(released.clone());
    spec.renew_time = Some(released);
    lease
}

pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let spec: &LeaseSpec = lease.spec.as_ref()?;
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// Returns the duration of the lease; `None` if it is missing, zero or negative.
pub(super) fn duration(lease: &Lease) -> Option<Duration> {
    let seconds = u64::try_from(lease.spec.as_ref()?.lease_duration_seconds?).ok()?;
    Some(Duration::from_secs(seconds)).filter(|duration| !duration.is_zero())
}

/// Returns the UID and the resource version of the lease. The UID distinguishes a lease that was
/// deleted and created again.
pub(super) fn version(lease: &Lease) -> (Option<&str>, Option<&str>) {
    (lease.metadata.uid.as_deref(), lease.metadata.resource_version.as_deref())
}

/// Truncates a date to microseconds, the precision of dates in leases. So a date that the server
/// returns equals the date that was written.
pub(super) fn micro_time(date: Timestamp) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(date.as_microsecond()).unwrap_or(date))
}

/// Returns a renew time that differs from the last one, even if the clock stands still.
fn distinct_date(last: Option<&MicroTime>, date: Timestamp) -> MicroTime {
    let date = micro_time(date);
    if last != Some(&date) {
        return date;
    }
    // The server skips writes without a change, and other candidates would then see no renewal.
    MicroTime(date.0.checked_add(SignedDuration::from_micros(1)).unwrap_or(Timestamp::UNIX_EPOCH))
}
