//! [`SharedIndexInformer::verify`]: compares the store with the server, and corrects differences.
//!
//! A snapshot of the store is compared with the server's objects at exactly the resource version of
//! the snapshot, so changes during the comparison are not differences. Except after incomplete
//! lists (I10), each difference violates invariant I9 in ARCHITECTURE.md. Each [`Part`] (one
//! reflector of the informer) is compared separately.
//!
//! client-go: `CheckDataConsistency` of `util/consistencydetector`, which is optional, lists again
//! after each streaming list, and panics if the two lists differ.

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

use super::{SharedIndexInformer, wait};
use crate::source::{Part, Source};
use listing::{Listed, list, refresh_watch_cache};

/// The maximum number of attempts. An attempt is repeated only if the server has compacted the
/// compared resource version.
const MAX_TRIES: usize = 3;

/// The timeout for a response, for each further chunk of it, and for a bookmark. API servers can
/// take a minute for each.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(64);

/// The result of comparing a store with the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// The resource version at which the store and the server were compared: the version that the
    /// store had reached. With several namespaces, each was compared at its own version, and this
    /// is the lowest of these versions, or any of them if they have no order.
    pub resource_version: ResourceVersion,
    /// The number of objects that the server has at the compared resource version. With several
    /// namespaces, this is the total of all namespaces.
    pub objects: usize,
    /// The number of objects that were not compared, because they cannot be decoded or transformed.
    pub quarantined: usize,
    /// The differences, ordered by key. A running informer relists to correct them, unless later
    /// events have already done so.
    pub differences: Vec<Difference>,
}

impl Verification {
    /// Returns whether there are no [differences](Self::differences).
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }

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

/// A difference between the store and the server, for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The server had the object, and the store did not.
    Missing {
        /// The key of the object.
        key: ObjectKey,
        /// The version of the object on the server.
        listed: ResourceVersion,
    },
    /// The store had the object, and the server did not.
    Extra {
        /// The key of the object.
        key: ObjectKey,
        /// The version of the object in the store.
        stored: ResourceVersion,
    },
    /// The store and the server had the object in different versions.
    OtherVersion {
        /// The key of the object.
        key: ObjectKey,
        /// The version of the object in the store.
        stored: ResourceVersion,
        /// The version of the object on the server.
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
            Self::Missing { key, listed } => write!(f, "{key} (version {listed}) is missing from the store"),
            Self::Extra { key, stored } => write!(f, "{key} (version {stored}) is not on the server"),
            Self::OtherVersion { key, stored, listed } => {
                write!(f, "{key} has version {stored} in the store and {listed} on the server")
            }
        }
    }
}

/// The error of [`SharedIndexInformer::verify`]: the store, or its part for one of several
/// namespaces, could not be compared with the server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The store has no resource version yet, because the informer or one of its namespaces is not
    /// synced, or because the server's lists have no resource version. Also returned if the set of
    /// namespaces is empty.
    #[error(
        "failed to verify {resource}: the store has no resource version to compare with the server; wait \
         until the initial list is in the store"
    )]
    NotSynced {
        /// The resource and its scope, such as `pods in namespace "shop"`.
        resource: String,
    },
    /// The server has compacted the resource version of the store, so it cannot list this version.
    /// The store can still be correct; verify again later.
    ///
    /// `verify` returns this error after three attempts at different versions, or if the store
    /// stays at the same version for about a minute. Once it has stopped, there is one attempt.
    #[error(
        "failed to verify {resource}: resource version {resource_version} has expired on the server; verify \
         again later"
    )]
    Expired {
        /// The resource and its scope, such as `pods in namespace "shop"`.
        resource: String,
        /// The watermark of the store. The server has compacted this version.
        resource_version: ResourceVersion,
    },
    /// A list request to the server failed.
    #[error(transparent)]
    List(#[from] ListWatchError),
}

impl<K> SharedIndexInformer<K> {
    /// Compares the store with the server's state at the store's [watermark](Self::watermark), and
    /// returns the differences. Logs their number and the first one. To correct the store, the
    /// informer then relists, except if it has stopped, or if the store has already received a
    /// change of each differing object.
    ///
    /// Objects that cannot be decoded or transformed are not compared. If the server has compacted
    /// the compared version, the method waits until the store reaches a later version, and tries
    /// again. It makes at most three attempts. This can take minutes, because a resource without
    /// changes gets a bookmark about once a minute. `verify` lists only the metadata of the
    /// server's objects if the informer's source supports that. Several namespaces are compared one
    /// after the other, even if some of them fail; a namespace that is removed meanwhile can be
    /// missing from the result.
    /// [`InformerOptions::verify_every`](super::InformerOptions::verify_every) verifies
    /// periodically.
    ///
    /// # Errors
    /// [`VerifyError`] if the store has no resource version, if the server has compacted the
    /// version of each attempt, or if a request fails. With several namespaces, this is the first
    /// error. An error does not show whether the store is correct.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future requests no relist.
    pub async fn verify(&self) -> Result<Verification, VerifyError> {
        self.shared.verifier.verify().await
    }

    /// Returns the last successful result of [`verify`](Self::verify); `None` if there is none.
    ///
    /// If `verify` failed only for some of several namespaces, it also counts as successful. The
    /// result then covers the namespaces that were compared.
    #[must_use]
    pub fn last_verification(&self) -> Option<Arc<Verification>> {
        self.shared.verifier.last.lock().clone()
    }
}

pub(super) struct Verifier {
    indexer: Indexer<AnyObject>,
    source: Arc<Source<AnyObject>>,
    ingest: Ingest,
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

    /// Verifies the store about once per `period`. Never returns.
    pub(super) async fn verify_every(&self, period: Duration) {
        let mut failure = None;
        loop {
            let least = period / 10 * 9;
            // `saturating_add`, because `period` can be `Duration::MAX`, which means never.
            sleep(least.saturating_add((period / 5).mul_f64(fastrand::f64()))).await;
            let outcome = self.verify().await;
            let status = self.source.status();
            let resource = status.description();
            let error = outcome.err().map(|error| error.to_string());
            match &error {
                Some(error) if failure.as_ref() != Some(error) => {
                    tracing::info!(
                        %resource, error,
                        "store could not be compared completely with the server; retrying at the next periodic verification \
                         (repeats of this error are logged at debug level)"
                    );
                }
                Some(error) => {
                    tracing::debug!(
                        %resource, error,
                        "store could not be compared completely with the server; retrying at the next periodic verification"
                    );
                }
                None => {}
            }
            failure = error;
        }
    }

    async fn verify(&self) -> Result<Verification, VerifyError> {
        let (mut verified, mut failure) = (Vec::new(), None);
        for part in self.source.parts() {
            match self.verify_part(&part).await {
                Ok(verification) => verified.push(verification),
                // The program has removed the namespace during the verification.
                Err(_) if !self.source.has(&part) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let whole = verified.into_iter().reduce(Verification::and);
        if let Some(whole) = &whole {
            *self.last.lock() = Some(Arc::new(whole.clone()));
        }
        let not_synced =
            || VerifyError::NotSynced { resource: self.source.status().description().to_owned() };
        failure.map_or_else(|| whole.ok_or_else(not_synced), Err)
    }

    async fn verify_part(&self, part: &Part<AnyObject>) -> Result<Verification, VerifyError> {
        let mut tries = 1;
        loop {
            let resource_version = match self.verify_once(part).await {
                Err(VerifyError::Expired { resource_version, .. }) if tries < MAX_TRIES => resource_version,
                outcome => return outcome,
            };
            if !self.wait_for_other_version(part, &resource_version).await? {
                return Err(expired(part, resource_version));
            }
            tries += 1;
        }
    }

    async fn verify_once(&self, part: &Part<AnyObject>) -> Result<Verification, VerifyError> {
        // The quarantined keys are read before and after the list, because the quarantine of an
        // object can begin or end during the list.
        let mut quarantined = quarantined(part);
        let snapshot = self.indexer.snapshot();
        let resource_version = watermark(&snapshot, part);
        if resource_version.is_empty() {
            return Err(VerifyError::NotSynced { resource: part.status.description().to_owned() });
        }
        match list(part, &self.ingest, &resource_version).await {
            Ok(listed) => {
                quarantined.extend(self::quarantined(part));
                Ok(self.conclude(part, &snapshot, listed, &quarantined))
            }
            Err(error) if error.is_expired() => Err(expired(part, resource_version)),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the store's version for `part` is no longer `resource_version`. Returns `false`
    /// if that does not happen within [`RESPONSE_TIMEOUT`].
    async fn wait_for_other_version(
        &self,
        part: &Part<AnyObject>,
        resource_version: &ResourceVersion,
    ) -> Result<bool, ListWatchError> {
        let is_other_version =
            |_: &ResourceVersion| watermark(&self.indexer.snapshot(), part) != *resource_version;
        if is_other_version(resource_version) {
            return Ok(true);
        }
        refresh_watch_cache(part, &self.ingest).await?;
        let outcome = timeout(RESPONSE_TIMEOUT, wait::until(self.watermark.clone(), is_other_version)).await;
        Ok(matches!(outcome, Ok(Ok(()))))
    }

    /// Compares a snapshot with a list and logs the differences. Requests a relist if at least one
    /// differing object has not changed in the store since the snapshot.
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
            Some((namespace, _)) => snapshot.in_namespace(namespace),
            None => snapshot.list(),
        };
        let differences = differences(&stored, listed, quarantined);
        let resource_version = watermark(snapshot, part);
        let verification =
            Verification { resource_version, objects, quarantined: quarantined.len(), differences };
        let is_as_before = |difference: &Difference| {
            let (before, now) = (snapshot.get(difference.key()), self.indexer.get(difference.key()));
            match (before, now) {
                (None, None) => true,
                (Some(before), Some(now)) => before.ptr_eq(&now),
                _ => false,
            }
        };
        let relists = verification.differences.iter().any(is_as_before);
        if let Some(first) = verification.differences.first() {
            tracing::warn!(
                resource = part.status.description(),
                resource_version = %verification.resource_version,
                differences = verification.differences.len(),
                %first, relists,
                "store differs from the server; `relists` is true if the informer relists to correct the store, and false if \
                 all differing objects have changed in the store during the comparison, so that no relist is needed"
            );
        }
        if relists {
            // I1, I3, I4: the store is not changed here; the relist passes through the queue like
            // any list.
            part.relist.request();
        }
        verification
    }
}

/// Returns the resource version that a snapshot has reached for one reflector. Empty before its
/// initial list, and after its namespace was removed.
fn watermark(snapshot: &Snapshot<AnyObject>, part: &Part<AnyObject>) -> ResourceVersion {
    match &part.namespace {
        Some((name, feed)) => snapshot.watermarks().of_feed(name, *feed).cloned().unwrap_or_default(),
        None => snapshot.watermark().clone(),
    }
}

fn expired(part: &Part<AnyObject>, resource_version: ResourceVersion) -> VerifyError {
    VerifyError::Expired { resource: part.status.description().to_owned(), resource_version }
}

fn quarantined(part: &Part<AnyObject>) -> HashSet<ObjectKey> {
    part.status.quarantined().into_iter().filter_map(|malformed| malformed.key).collect()
}

/// Returns the differences, sorted by key.
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
