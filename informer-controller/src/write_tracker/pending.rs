//! [`Pending`]: a write that a cache may not have yet, and how to tell that it has.

use std::sync::Arc;

use informer_core::{ObjectKey, ResourceVersion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::settlement::Settlement;
use informer_factory::__private::{Visibility, writes};
use informer_factory::SharedIndexInformer;

/// How far a store has come; closed once its informer has stopped.
pub(super) type Watermarks = watch::Receiver<ResourceVersion>;

/// A write that a cache may not have yet. It doesn't change: another takes its place.
pub(super) struct Pending {
    pub(super) id: u64,
    /// When nobody waits for it any longer.
    pub(super) until: Instant,
    pub(super) awaited: Awaited,
}

/// What the cache has to show.
#[derive(Clone)]
pub(super) enum Awaited {
    /// That it has come to this version.
    Version { watermarks: Watermarks, version: ResourceVersion },
    /// That it has come to this version, or that an object has left it: nothing more is ever heard of one that an
    /// earlier write has taken out of the selector.
    Leaving { watermarks: Watermarks, version: ResourceVersion, has_gone: Look },
    /// That it has heard of an object's deletion, after it has come to the version in which the object was known.
    Deletion { watermarks: Watermarks, version: ResourceVersion, is_known: Look },
    /// Nothing yet: the request is under way, or nobody knows what came of it. Cancelled when somebody does.
    Answer(CancellationToken),
    /// The request has failed with an unknown outcome, which a read settles.
    Outcome(Settlement),
}

/// Whether a store has let go of an object, or knows that it is being deleted.
pub(super) type Look = Arc<dyn Fn() -> bool + Send + Sync>;

impl Awaited {
    /// Returns what the informer has to show of an object as the server has it; `None` if it will show nothing.
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
                let has_gone = Arc::new(writes::has_gone(informer, written));
                Some(Self::Leaving { watermarks, version, has_gone })
            }
        }
    }

    /// Returns what the informer has to show of an object that the server does not have at this version; `None` if the store
    /// does not have it either.
    pub(super) fn absence<K: Resource + Send + Sync + 'static>(
        informer: &SharedIndexInformer<K>,
        object: &ObjectKey,
        version: ResourceVersion,
    ) -> Option<Self> {
        let cached = informer.get(object)?;
        let watermarks = writes::watermark_for(informer, cached.meta());
        let has_gone = Arc::new(writes::has_gone(informer, cached.meta()));
        Some(Self::Leaving { watermarks, version, has_gone })
    }

    /// Returns what is awaited, for messages.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Version { .. } | Self::Leaving { .. } | Self::Deletion { .. } => "a cache lacks a write",
            Self::Answer(_) => "the outcome of a write is unknown; the key waits until the deadline",
            Self::Outcome(_) => "the outcome of a write is unknown; its object is read",
        }
    }

    /// Returns whether the cache has it. Reads stores, so no lock may be held.
    pub(super) fn is_seen(&self) -> bool {
        // I9: a store that has come so far has all that was written until then.
        match self {
            Self::Version { watermarks, version } => {
                is_stopped(watermarks) || watermarks.borrow().is_at_least(version)
            }
            Self::Leaving { watermarks, version, has_gone } => {
                is_stopped(watermarks) || watermarks.borrow().is_at_least(version) || has_gone()
            }
            Self::Deletion { watermarks, version, is_known } => {
                is_stopped(watermarks) || has_come_to(watermarks, version) && is_known()
            }
            Self::Answer(answered) => answered.is_cancelled(),
            Self::Outcome(_) => false,
        }
    }

    /// Waits until the cache has it. What a stopped informer lacks never comes, so that nobody waits for it (I12).
    pub(super) async fn seen(&self) {
        match self {
            Self::Version { watermarks, .. }
            | Self::Leaving { watermarks, .. }
            | Self::Deletion { watermarks, .. } => {
                let mut watermarks = watermarks.clone();
                loop {
                    // First this, so that what comes after the look is noticed.
                    watermarks.mark_unchanged();
                    if self.is_seen() || watermarks.changed().await.is_err() {
                        return;
                    }
                }
            }
            Self::Answer(answered) => answered.cancelled().await,
            // The waiter settles it, which puts another in its place.
            Self::Outcome(_) => std::future::pending().await,
        }
    }

    /// The version that a store is to come to, if that is all.
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

/// A version without order can't be waited for.
fn has_come_to(watermarks: &Watermarks, version: &ResourceVersion) -> bool {
    !version.is_comparable() || watermarks.borrow().is_at_least(version)
}
