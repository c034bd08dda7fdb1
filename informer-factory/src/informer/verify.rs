//! [`SharedIndexInformer::verify`]: compares the store with the server, and corrects differences.
//!
//! It compares a snapshot of the store at its watermark with the server's metadata at exactly this
//! resource version. So concurrent changes are no differences, and each difference is a violation
//! of I9 by the server, the network or this library. client-go: `CheckDataConsistency` of
//! `util/consistencydetector`, which repeats a list, and panics.
//!
//! A relist corrects differences. It passes through queue, store and handlers as any list does, so
//! the invariants hold.

mod listing;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{AnyObject, Cached, ListWatchError, ObjectKey, ResourceVersion};
use informer_reflector::Ingest;
use informer_store::{Indexer, Objects, Snapshot};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::SharedIndexInformer;
use crate::source::{Part, Source};
use listing::{Listed, ask_for_newest, list};

/// How often a state is looked for that both sides have.
const TRIES: usize = 3;

/// The longest wait for a response, and for more data of a list. API servers time out after a
/// minute, and send bookmarks about once a minute.
const PATIENCE: Duration = Duration::from_secs(64);

/// The result of comparing a store with the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// The compared state: the store's watermark. With several namespaces, each is compared at its
    /// own watermark, and this is the lowest.
    pub resource_version: ResourceVersion,
    /// The number of objects that the server has in that state.
    pub objects: usize,
    /// The number of quarantined objects (I10), which were not compared.
    pub quarantined: usize,
    /// The differences, ordered by key. If the store has not corrected all of them meanwhile, the
    /// informer relists.
    pub differences: Vec<Difference>,
}

impl Verification {
    /// Returns whether the store had the server's state.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }

    /// Adds the result of another part.
    fn and(mut self, other: Self) -> Self {
        if !other.resource_version.is_at_least(&self.resource_version) {
            self.resource_version = other.resource_version;
        }
        self.objects += other.objects;
        self.quarantined += other.quarantined;
        self.differences.extend(other.differences);
        self.differences.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        self
    }
}

/// In what the store differed from the server, for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The server had it, and the store had not.
    Missing {
        /// The object.
        key: ObjectKey,
        /// The server's version.
        listed: ResourceVersion,
    },
    /// The store had it, and the server had not.
    Extra {
        /// The object.
        key: ObjectKey,
        /// The store's version.
        stored: ResourceVersion,
    },
    /// Both had it, in different versions.
    OtherVersion {
        /// The object.
        key: ObjectKey,
        /// The store's version.
        stored: ResourceVersion,
        /// The server's version.
        listed: ResourceVersion,
    },
}

impl Difference {
    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Missing { key, .. } | Self::Extra { key, .. } | Self::OtherVersion { key, .. } => key,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { key, listed } => write!(f, "{key} is missing, which has version {listed}"),
            Self::Extra { key, stored } => write!(f, "{key} with version {stored} should not be there"),
            Self::OtherVersion { key, stored, listed } => {
                write!(f, "{key} has version {stored} instead of {listed}")
            }
        }
    }
}

/// A store could not be compared with the server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The store has no state of the server yet, or the server gives its states no versions: wait
    /// for the sync.
    #[error("the store has no resource version to compare with the server")]
    NotSynced,
    /// The server does not have the store's state any more, and the store did not move on to one
    /// that the server has. Nothing is wrong with that; try again later.
    #[error("resource version {resource_version} has expired on the server")]
    Expired {
        /// The store's watermark.
        resource_version: ResourceVersion,
    },
    /// The request failed.
    #[error(transparent)]
    List(#[from] ListWatchError),
}

impl<K> SharedIndexInformer<K> {
    /// Compares the store with the server's state at its [watermark](Self::watermark), and returns
    /// the differences. If there are any, they are logged and a relist is requested, which corrects
    /// them after this function has returned.
    ///
    /// Quarantined objects (I10) are not compared. If the server has compacted the state, the call
    /// waits until the store reaches a later state and compares that one, up to three times. A
    /// resource without changes gets a bookmark about once a minute, so `verify` can take minutes
    /// if the server compacts often. The list contains only metadata if the informer's source
    /// supports that. Several namespaces are compared one after the other.
    /// [`InformerOptions::verify_every`](super::InformerOptions::verify_every) runs it
    /// periodically.
    ///
    /// # Errors
    /// If there is no comparable state, or the list fails or returns another state. Then nothing is
    /// known about the store.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future requests no relist.
    pub async fn verify(&self) -> Result<Verification, VerifyError> {
        self.shared.verifier.verify().await
    }

    /// Returns the result of the last [`verify`](Self::verify); `None` before the first.
    #[must_use]
    pub fn last_verification(&self) -> Option<Arc<Verification>> {
        self.shared.verifier.last.lock().clone()
    }
}

/// Compares a store with the server.
pub(super) struct Verifier {
    indexer: Indexer<AnyObject>,
    source: Arc<Source<AnyObject>>,
    ingest: Ingest,
    /// Changes when the store has moved on.
    watermark: watch::Receiver<ResourceVersion>,
    last: Mutex<Option<Arc<Verification>>>,
}

impl Verifier {
    pub(super) fn new(
        indexer: Indexer<AnyObject>,
        source: Arc<Source<AnyObject>>,
        ingest: Ingest,
        watermark: watch::Receiver<ResourceVersion>,
    ) -> Self {
        Self { indexer, source, ingest, watermark, last: Mutex::new(None) }
    }
}

impl Verifier {
    /// Verifies from time to time; ends never.
    pub(super) async fn verify_every(&self, period: Duration) {
        let mut failure = None;
        loop {
            let least = period / 10 * 9;
            // The period can be the longest duration, which means never.
            sleep(least.saturating_add((period / 5).mul_f64(fastrand::f64()))).await;
            let outcome = self.verify().await;
            let status = self.source.status();
            let resource = status.description();
            let error = outcome.err().map(|error| error.to_string());
            match &error {
                Some(error) if failure.as_ref() != Some(error) => {
                    tracing::info!(%resource, error, "the store could not be verified");
                }
                Some(error) => tracing::debug!(%resource, error, "the store could not be verified"),
                None => {}
            }
            failure = error;
        }
    }

    /// Compares each part and adds up the results.
    async fn verify(&self) -> Result<Verification, VerifyError> {
        let mut whole: Option<Verification> = None;
        for part in self.source.parts() {
            let verified = self.verify_part(&part).await?;
            whole = Some(match whole {
                Some(whole) => whole.and(verified),
                None => verified,
            });
        }
        let verification = whole.ok_or(VerifyError::NotSynced)?;
        *self.last.lock() = Some(Arc::new(verification.clone()));
        Ok(verification)
    }

    async fn verify_part(&self, part: &Part<AnyObject>) -> Result<Verification, VerifyError> {
        let mut tries = 1;
        loop {
            let resource_version = match self.verify_once(part).await {
                Err(VerifyError::Expired { resource_version }) if tries < TRIES => resource_version,
                outcome => return outcome,
            };
            if !self.moves_on(part, &resource_version).await? {
                return Err(VerifyError::Expired { resource_version });
            }
            tries += 1;
        }
    }

    async fn verify_once(&self, part: &Part<AnyObject>) -> Result<Verification, VerifyError> {
        // Read before and after the list, because the quarantine of an object can begin or end
        // meanwhile.
        let mut quarantined = quarantined(part);
        let snapshot = self.indexer.snapshot();
        let resource_version = watermark(&snapshot, part);
        if resource_version.is_empty() {
            return Err(VerifyError::NotSynced);
        }
        match list(part, &self.ingest, &resource_version).await {
            Ok(listed) => {
                quarantined.extend(self::quarantined(part));
                Ok(self.conclude(part, &snapshot, listed, &quarantined))
            }
            Err(error) if error.is_expired() => Err(VerifyError::Expired { resource_version }),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the store has another state than that of this version; returns whether it has.
    async fn moves_on(
        &self,
        part: &Part<AnyObject>,
        resource_version: &ResourceVersion,
    ) -> Result<bool, ListWatchError> {
        let has_moved_on =
            |_: &ResourceVersion| watermark(&self.indexer.snapshot(), part) != *resource_version;
        if has_moved_on(resource_version) {
            return Ok(true);
        }
        ask_for_newest(part, &self.ingest).await?;
        let mut moving = self.watermark.clone();
        let moved_on = timeout(PATIENCE, moving.wait_for(has_moved_on)).await;
        Ok(matches!(moved_on, Ok(Ok(_))))
    }

    /// Compares, logs differences, and requests a relist if needed.
    fn conclude(
        &self,
        part: &Part<AnyObject>,
        snapshot: &Snapshot<AnyObject>,
        mut listed: Listed,
        quarantined: &HashSet<ObjectKey>,
    ) -> Verification {
        let objects = listed.len();
        listed.retain(|key, _| !quarantined.contains(key));
        let stored = match &part.namespace {
            Some(namespace) => snapshot.in_namespace(namespace),
            None => snapshot.list(),
        };
        let differences = differences(&stored, listed, quarantined);
        let resource_version = watermark(snapshot, part);
        let verification =
            Verification { resource_version, objects, quarantined: quarantined.len(), differences };
        if let Some(first) = verification.differences.first() {
            tracing::warn!(
                resource = part.status.description(),
                resource_version = %verification.resource_version,
                differences = verification.differences.len(),
                %first,
                "the store differs from the server"
            );
        }
        let is_as_before = |difference: &Difference| {
            let (before, now) = (snapshot.get(difference.key()), self.indexer.get(difference.key()));
            match (before, now) {
                (None, None) => true,
                (Some(before), Some(now)) => before.ptr_eq(&now),
                _ => false,
            }
        };
        if verification.differences.iter().any(is_as_before) {
            // I1, I3, I4: no object is changed here; a list takes the way of all lists.
            part.relist.request();
        }
        verification
    }
}

/// The version whose state a snapshot has of this part; empty if it has none.
fn watermark(snapshot: &Snapshot<AnyObject>, part: &Part<AnyObject>) -> ResourceVersion {
    match &part.namespace {
        Some(namespace) => snapshot.watermarks().get(namespace).cloned().unwrap_or_default(),
        None => snapshot.watermark().clone(),
    }
}

fn quarantined(part: &Part<AnyObject>) -> HashSet<ObjectKey> {
    part.status.quarantined().into_iter().filter_map(|malformed| malformed.key).collect()
}

/// Compares object by object, in the order of their keys.
fn differences(
    stored: &Objects<AnyObject>,
    mut listed: Listed,
    quarantined: &HashSet<ObjectKey>,
) -> Vec<Difference> {
    let of_stored = |object: &Cached<AnyObject>| {
        let (key, stored) = (object.key().clone(), object.resource_version().clone());
        match listed.remove(&key) {
            Some(listed) if listed == stored => None,
            Some(listed) => Some(Difference::OtherVersion { key, stored, listed }),
            None if quarantined.contains(&key) => None,
            None => Some(Difference::Extra { key, stored }),
        }
    };
    let mut differences: Vec<_> = stored.iter().filter_map(of_stored).collect();
    differences.extend(listed.into_iter().map(|(key, listed)| Difference::Missing { key, listed }));
    differences.sort_unstable_by(|a, b| a.key().cmp(b.key()));
    differences
}
