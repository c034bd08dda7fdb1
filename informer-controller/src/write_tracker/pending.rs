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

/// The watermark of a store, or of a namespace that is watched separately: the resource version
/// reached so far. The channel is closed when the informer has stopped or no longer watches the
/// namespace.
pub(super) type Watermarks = watch::Receiver<ResourceVersion>;

/// A write that a cache possibly lacks, the condition that ends the wait for the write, and the
/// deadline of the wait. To change the condition or the deadline, the tracker replaces the whole
/// `Pending`.
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

    /// Returns whether the deadline is over. If it is, [`is_expired`](Self::is_expired) returns
    /// `true` from now on.
    pub(super) fn expire(&self, now: Instant) -> bool {
        let is_over = self.until <= now;
        if is_over {
            // Each `KeyWrites::ready` that waits for this write keeps it and reads this mark, even
            // if another call has removed the write from the tracker. The ordering `Relaxed` is
            // enough: the write is removed later, under the tracker's lock, and other calls read
            // the mark after they have found the write removed.
            self.is_expired.store(true, Ordering::Relaxed);
        }
        is_over
    }

    /// Returns whether [`expire`](Self::expire) has found that the deadline is over.
    pub(super) fn is_expired(&self) -> bool {
        self.is_expired.load(Ordering::Relaxed)
    }
}

/// The condition that ends a key's wait for a write. A condition on a cache is also met when the
/// informer has stopped or no longer watches the namespace.
#[derive(Clone)]
pub(super) enum Condition {
    Version {
        watermarks: Watermarks,
        version: ResourceVersion,
    },
    /// For an object that the cache has, but will remove. Met when the cache has removed the
    /// object, or has reached the resource version `version`. There are two cases:
    /// - The server has the object, but outside the informer's selector. Then `version` is the
    ///   object's version on the server.
    /// - A read did not find the object on the server. Then `version` is the version of the
    ///   response to this read.
    Leaving {
        watermarks: Watermarks,
        version: ResourceVersion,
        is_absent: StoreCheck,
    },
    /// For a request to delete an object. Met when one of these is true:
    /// - The cache has reached `version`, which the object had before the request, and
    ///   `shows_deletion` returns `true`: the cache lacks the object, or has it with a deletion
    ///   timestamp.
    /// - `is_over` is cancelled: the server has rejected the request, or another condition has
    ///   replaced this one.
    Deletion {
        watermarks: Watermarks,
        version: ResourceVersion,
        shows_deletion: StoreCheck,
        is_over: CancellationToken,
    },
    /// Met when the outcome of the request has been reported to the
    /// [`WriteInFlight`](super::WriteInFlight). The report cancels this token.
    InFlight(CancellationToken),
    /// Never met. The request has failed, and the server has possibly applied it. So
    /// [`KeyWrites::ready`](super::KeyWrites::ready) reads the object, and replaces this condition.
    Outcome(Settlement),
}

/// Returns whether a store lacks one object. In a [`Deletion`](Condition::Deletion), the function
/// also returns `true` if the object has a deletion timestamp.
pub(super) type StoreCheck = Arc<dyn Fn() -> bool + Send + Sync>;

impl Condition {
    /// Returns the condition that is met when the cache has received the write of this object.
    /// Returns `None` if the informer will never receive the object, or if the object's version is
    /// not comparable.
    pub(super) fn write<K: Send + Sync + 'static>(
        informer: &SharedIndexInformer<K>,
        written: &ObjectMeta,
    ) -> Option<Self> {
        let version = ResourceVersion::from(written.resource_version.as_deref());
        if !version.is_comparable() {
            return None;
        }
        let watermarks = writes::watermark_for(informer, written);
        match writes::visibility_of(informer, written) {
            Visibility::Nothing => None,
            Visibility::TheWrite => Some(Self::Version { watermarks, version }),
            Visibility::LeavesSelector => {
                let is_absent = Arc::new(writes::absence_check(informer, written));
                Some(Self::Leaving { watermarks, version, is_absent })
            }
        }
    }

    /// Returns the condition to wait for after a read did not find the object on the server.
    /// `version` is the resource version of the response to this read. The condition is met when
    /// the cache has removed the object, or has reached `version`. Returns `None` if the cache does
    /// not have the object.
    pub(super) fn for_missing_object<K: Resource + Send + Sync + 'static>(
        informer: &SharedIndexInformer<K>,
        object: &ObjectKey,
        version: ResourceVersion,
    ) -> Option<Self> {
        let cached = informer.get(object)?;
        let watermarks = writes::watermark_for(informer, cached.meta());
        let is_absent = Arc::new(writes::absence_check(informer, cached.meta()));
        Some(Self::Leaving { watermarks, version, is_absent })
    }

    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Version { .. } | Self::Leaving { .. } | Self::Deletion { .. } => {
                "a cache does not have a write of this key yet"
            }
            Self::InFlight(_) => "the outcome of a write is unknown; the key waits until the deadline",
            Self::Outcome(_) => "the outcome of a write is unknown; reading its object",
        }
    }

    /// Returns whether the condition is met. This reads stores, so call it while no lock is held.
    pub(super) fn is_met(&self) -> bool {
        // I9: a store at this watermark has all changes up to it.
        match self {
            Self::Version { watermarks, version } => {
                is_stopped(watermarks) || watermarks.borrow().is_at_least(version)
            }
            Self::Leaving { watermarks, version, is_absent } => {
                // The version alone is not enough: after the object has left the cache, only an
                // event of another object or a bookmark raises the watermark.
                is_stopped(watermarks) || watermarks.borrow().is_at_least(version) || is_absent()
            }
            Self::Deletion { watermarks, version, shows_deletion, is_over } => {
                is_over.is_cancelled()
                    || is_stopped(watermarks)
                    || has_reached(watermarks, version) && shows_deletion()
            }
            Self::InFlight(outcome_known) => outcome_known.is_cancelled(),
            Self::Outcome(_) => false,
        }
    }

    /// Waits until the condition is met. Never returns for an [`Outcome`](Self::Outcome).
    pub(super) async fn wait_until_met(&self) {
        match self {
            Self::Version { watermarks, .. } | Self::Leaving { watermarks, .. } => {
                self.wait_for_store(watermarks).await;
            }
            Self::Deletion { watermarks, is_over, .. } => {
                _ = is_over.run_until_cancelled(self.wait_for_store(watermarks)).await;
            }
            Self::InFlight(outcome_known) => outcome_known.cancelled().await,
            // `KeyWrites::wait_for` handles this variant: it settles the write, which replaces this
            // condition.
            Self::Outcome(_) => std::future::pending().await,
        }
    }

    /// Waits until the store meets the condition, or the informer has stopped.
    async fn wait_for_store(&self, watermarks: &Watermarks) {
        let mut watermarks = watermarks.clone();
        loop {
            // The current watermark is marked as seen before the check, so that no later change is
            // missed.
            watermarks.mark_unchanged();
            if self.is_met() || watermarks.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns the version that `store` must reach, if this is a [`Version`](Self::Version)
    /// condition on `store`.
    pub(super) fn version_in(&self, store: &Watermarks) -> Option<&ResourceVersion> {
        match self {
            Self::Version { watermarks, version } if watermarks.same_channel(store) => Some(version),
            _ => None,
        }
    }
}

fn is_stopped(watermarks: &Watermarks) -> bool {
    watermarks.has_changed().is_err()
}

/// Returns whether the store has reached the version; `true` if the version is not comparable.
fn has_reached(watermarks: &Watermarks, version: &ResourceVersion) -> bool {
    !version.is_comparable() || watermarks.borrow().is_at_least(version)
}
