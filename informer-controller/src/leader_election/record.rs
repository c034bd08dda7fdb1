//! [`Claim`]: a term of leadership as the lease has it, and how leases are read and written.
//!
//! client-go: `LeaderElectionRecord` of tools/leaderelection/resourcelock. The dates in it are for people: nobody's clock
//! is ever compared with another's.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// One term of leadership: who has it, and since when. A lease that says so was written by whoever made the claim, for
/// the date tells even processes of one identity apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) identity: String,
    pub(super) acquired: MicroTime,
    pub(super) transitions: i32,
}

impl Claim {
    /// Returns whether the lease is held by this claim.
    pub(super) fn holds(&self, lease: &Lease) -> bool {
        lease.spec.as_ref().is_some_and(|spec| {
            spec.holder_identity.as_deref() == Some(&self.identity)
                && spec.acquire_time.as_ref() == Some(&self.acquired)
                && spec.lease_transitions.unwrap_or(0) == self.transitions
        })
    }

    /// Makes a new lease that is held by this claim.
    pub(super) fn create(&self, namespace: &str, name: &str, duration: Duration, date: Timestamp) -> Lease {
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        self.write(Lease { metadata, spec: None }, duration, date)
    }

    /// Writes the claim into the lease, and that its holder is alive. What the lease has else is kept.
    pub(super) fn write(&self, mut lease: Lease, duration: Duration, date: Timestamp) -> Lease {
        let spec = lease.spec.get_or_insert_default();
        let renewed = another_date_than(spec.renew_time.as_ref(), date);
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX));
        spec.acquire_time = Some(self.acquired.clone());
        spec.renew_time = Some(renewed);
        spec.lease_transitions = Some(self.transitions);
        lease
    }
}

/// Writes that nobody holds the lease. As in client-go, it lasts a second, for readers that don't look at the holder.
pub(super) fn release(mut lease: Lease, date: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_default();
    let released = another_date_than(spec.renew_time.as_ref(), date);
    spec.holder_identity = Some(String::new());
    spec.lease_duration_seconds = Some(1);
    spec.acquire_time = Some(released.clone());
    spec.renew_time = Some(released);
    lease
}

/// Returns who holds the lease.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let spec: &LeaseSpec = lease.spec.as_ref()?;
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// Returns how long the lease lasts, if it says so.
pub(super) fn duration(lease: &Lease) -> Option<Duration> {
    let seconds = u64::try_from(lease.spec.as_ref()?.lease_duration_seconds?).ok()?;
    Some(Duration::from_secs(seconds)).filter(|duration| !duration.is_zero())
}

/// Returns what tells one state of the lease from all others, of one that was deleted and made again, too.
pub(super) fn version(lease: &Lease) -> (Option<&str>, Option<&str>) {
    (lease.metadata.uid.as_deref(), lease.metadata.resource_version.as_deref())
}

/// Cuts a date to what a lease can say, so that what comes back is what was sent.
pub(super) fn micro_time(date: Timestamp) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(date.as_microsecond()).unwrap_or(date))
}

/// The server writes nothing where nothing changes, and others would see no sign of life. So the date always changes,
/// also where the clock stands still.
fn another_date_than(last: Option<&MicroTime>, date: Timestamp) -> MicroTime {
    let date = micro_time(date);
    if last != Some(&date) {
        return date;
    }
    MicroTime(date.0.checked_add(SignedDuration::from_micros(1)).unwrap_or(Timestamp::UNIX_EPOCH))
}
