//! [`Pending`]: a write that a cache possibly lacks. The write's key waits until the write's
//! [`Condition`] is met, for example until the cache has the write, or until a deadline is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use informer_core::{ObjectKey, ResourceVersion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::settlement::Settlement;
use informer_factory::__private::{Visibility, writes};
use informer_factory::SharedIndexInformer;

/// Receives the resource version that a store, or one namespace of it, has reached. The channel is
/// closed when the informer stops or no longer watches the namespace.
pub(super) type Watermark = watch::Receiver<ResourceVersion>;

/// A write that a cache possibly lacks, the condition that ends the wait for it, and the deadline.
pub(super) struct Pending {
    pub(super) id: u64,
    pub(super) until: Instant,
    pub(super) condition: Condition,
    is_expired: AtomicBool,
}

impl Pending {
    pub(super) fn new(id: u64, until: Instant, condition: Condition) -> Self {
        Self { id, until, condition, is_expired: AtomicBool::new(false) }
    }

    /// Marks the write as [expired](Self::is_expired) if the deadline is over at `now`. Returns
    /// whether the deadline is over.
    pub(super) fn expire(&self, now: Instant) -> bool {
        let is_over = self.until <= now;
        if is_over {
            // Each `KeyWrites::ready` that waits for this write keeps it and reads this mark, even
            // if another call has removed the write from the tracker. The ordering `Relaxed` is
            // enough: the tracker's lock, under which the write is removed, is released after the
            // mark is set. Other calls take this lock before they read the mark.
            self.is_expired.store(true, Ordering::Relaxed);
        }
        is_over
    }

    /// Returns whether the deadline was over at an earlier call of [`expire`](Self::expire).
    pub(super) fn is_expired(&self) -> bool {
        self.is_expired.load(Ordering::Relaxed)
    }
}

/// The condition that ends a key's wait for a write. A condition on a cache is also met when the
/// informer has stopped or no longer watches the namespace.
#[derive(Clone)]
pub(super) enum Condition {
    /// Met when the cache has reached the resource version `version`.
    Version { watermark: Watermark, version: ResourceVersion },
    /// For an object that the informer does not select, or that no longer exists on the server. Met
    /// when the cache has reached `version`, or when the cache lacks the object and has reached the
    /// version for which the key already waited.
    Leaving { watermark: Watermark, version: ResourceVersion, is_absent: StoreCheck },
    /// For a request to delete an object. Met in two cases:
    ///
    /// - The cache has reached `version`, which is the object's version before the request. In
    ///   addition, the cache does not have the object, or has the object with a deletion timestamp:
    ///   `shows_deletion` returns `true`.
    /// - The token `is_over` is cancelled. For example, the request was not sent, or its outcome is
    ///   unknown and [`OutcomeUnknown`](Self::OutcomeUnknown) has replaced this condition. Dropping
    ///   the guard of a successful request does not cancel the token, so the first case ends the
    ///   wait.
    Deletion {
        watermark: Watermark,
        version: ResourceVersion,
        shows_deletion: StoreCheck,
        is_over: CancellationToken,
    },
    /// For a request without a reported outcome. Met when this token is cancelled, because the
    /// outcome was reported to the [`WriteInFlight`](super::WriteInFlight).
    InFlight(CancellationToken),
    /// The request has failed, and the server has possibly applied it. Never met:
    /// [`KeyWrites::ready`](super::KeyWrites::ready) replaces this condition after a read of the
    /// object.
    OutcomeUnknown(Settlement),
}

/// A closure that returns whether the cache lacks one object. For [`Condition::Deletion`], an
/// object with a deletion timestamp counts as absent. For [`Condition::Leaving`], the closure can
/// also check that the cache has reached an earlier write.
pub(super) type StoreCheck = Arc<dyn Fn() -> bool + Send + Sync>;

impl Condition {
    /// Returns the condition that the cache meets when it has the written object, or lacks it
    /// because the informer does not select it. Returns `None` if the version is not comparable.
    pub(super) fn write<K: Send + Sync + 'static>(
        informer: &SharedIndexInformer<K>,
        written: &ObjectMeta,
    ) -> Option<Self> {
        let version = ResourceVersion::from(written.resource_version.as_deref());
        if !version.is_comparable() {
            return None;
        }
        let watermark = writes::watermark_for(informer, written);
        match writes::visibility_of(informer, written) {
            Visibility::TheWrite => Some(Self::Version { watermark, version }),
            Visibility::Nothing | Visibility::LeavesSelector => {
                let is_absent = Arc::new(writes::absence_check(informer, written));
                Some(Self::Leaving { watermark, version, is_absent })
            }
        }
    }

    /// Returns the condition for an object that a read from the server has not found.
    ///
    /// Met when the cache does not have the object either, or has reached `version`, the resource
    /// version of the server's response.
    pub(super) fn for_missing_object<K: Resource + Send + Sync + 'static>(
        informer: &SharedIndexInformer<K>,
        object: &ObjectKey,
        version: ResourceVersion,
    ) -> Self {
        // The cache can have an older object with this name, or receive a newer one before it has
        // reached `version`. So the UID is left out.
        let meta = ObjectMeta {
            name: Some(object.name().to_owned()),
            namespace: object.namespace().map(str::to_owned),
            ..ObjectMeta::default()
        };
        let watermark = writes::watermark_for(informer, &meta);
        let is_absent = Arc::new(writes::absence_check(informer, &meta));
        Self::Leaving { watermark, version, is_absent }
    }

    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Version { .. } | Self::Leaving { .. } | Self::Deletion { .. } => {
                "a cache does not have a write of this key yet"
            }
            Self::InFlight(_) => "the outcome of a write is unknown; the key waits until the deadline",
            Self::OutcomeUnknown(_) => "the outcome of a write is unknown; reading its object",
        }
    }

    /// Returns whether the condition is met. This reads stores, so call it while no lock is held.
    pub(super) fn is_met(&self) -> bool {
        // I9: a store at this watermark has all changes up to it.
        match self {
            Self::Version { watermark, version } => {
                is_stopped(watermark) || watermark.borrow().is_at_least(version)
            }
            Self::Leaving { watermark, version, is_absent } => {
                // The version alone is not enough: after the object has left the cache, only an
                // event of another object or a bookmark raises the watermark.
                is_stopped(watermark) || watermark.borrow().is_at_least(version) || is_absent()
            }
            Self::Deletion { watermark, version, shows_deletion, is_over } => {
                // A cache without this version can lack the object because it has not received it
                // yet.
                is_over.is_cancelled()
                    || is_stopped(watermark)
                    || has_reached(watermark, version) && shows_deletion()
            }
            Self::InFlight(outcome_known) => outcome_known.is_cancelled(),
            Self::OutcomeUnknown(_) => false,
        }
    }

    /// Waits until the condition is met. Never returns for
    /// [`OutcomeUnknown`](Self::OutcomeUnknown), a condition that is never met.
    pub(super) async fn wait_until_met(&self) {
        match self {
            Self::Version { watermark, .. } | Self::Leaving { watermark, .. } => {
                self.wait_for_store(watermark).await;
            }
            Self::Deletion { watermark, is_over, .. } => {
                _ = is_over.run_until_cancelled(self.wait_for_store(watermark)).await;
            }
            Self::InFlight(outcome_known) => outcome_known.cancelled().await,
            // `KeyWrites::wait_for` handles this variant: it settles the write, which replaces this
            // condition.
            Self::OutcomeUnknown(_) => std::future::pending().await,
        }
    }

    /// Waits until the condition is met, or the informer has stopped. Checks the condition after
    /// each change of `watermark`.
    async fn wait_for_store(&self, watermark: &Watermark) {
        let mut watermark = watermark.clone();
        loop {
            // The current watermark is marked as seen before the check, so that no later change is
            // missed.
            watermark.mark_unchanged();
            if self.is_met() || watermark.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns the `version` of a [`Version`](Self::Version) condition, if its `watermark` and
    /// `receiver` are receivers of the same channel. Returns `None` for every other condition.
    pub(super) fn version_in(&self, receiver: &Watermark) -> Option<&ResourceVersion> {
        match self {
            Self::Version { watermark, version } if watermark.same_channel(receiver) => Some(version),
            _ => None,
        }
    }
}

fn is_stopped(watermark: &Watermark) -> bool {
    watermark.has_changed().is_err()
}

/// Returns whether the store has reached the version; `true` if the version is not comparable.
pub(super) fn has_reached(watermark: &Watermark, version: &ResourceVersion) -> bool {
    !version.is_comparable() || watermark.borrow().is_at_least(version)
}
