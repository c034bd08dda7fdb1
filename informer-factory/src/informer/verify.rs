//! [`SharedIndexInformer::verify`]: compares the store with the server, and has put right what differs.
//!
//! What is compared is one state: that of the store at its watermark, held as a snapshot, and that of the server at
//! exactly this resource version, of which only metadata is listed. So nothing that happens meanwhile can look like a
//! difference, and each difference is a broken promise (I9) of the server, the network or this library. client-go:
//! `CheckDataConsistency` of `util/consistencydetector`, which repeats a list, and panics.
//!
//! It is put right by a list: that goes through queue, store and handlers as any list does, so that their promises
//! hold.

mod listing;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{Cached, ListWatchError, ObjectKey, ResourceVersion};
use informer_store::{Indexer, Objects, Snapshot};
use kube::Resource;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::SharedIndexInformer;
use crate::source::{Part, Source};
use listing::{Listed, ask_for_newest, list};

/// How often a state is looked for that both sides have.
const TRIES: usize = 3;

/// How long the server may leave a request unanswered, or pause within a list; it gives up itself after a minute. Bookmarks
/// come about once a minute, too.
const PATIENCE: Duration = Duration::from_secs(64);

/// What came of comparing a store with the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// The state that was compared: the store's watermark. Where namespaces are followed one by one, each was compared at
    /// its own, and this is the least.
    pub resource_version: ResourceVersion,
    /// How many objects the server had in it.
    pub objects: usize,
    /// How many objects were left out because they are quarantined (I10), so that the store can't have them as they are.
    pub quarantined: usize,
    /// What the store had otherwise, in the order of the keys. If there is anything that the store has not put right
    /// itself meanwhile, the informer lists again; handlers hear of what comes of it.
    pub differences: Vec<Difference>,
}

impl Verification {
    /// Returns whether the store had what the server had.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }

    /// Adds what was found elsewhere.
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
    /// The store has no state of the server yet, or the server gives its states no versions: wait for the sync.
    #[error("the store has no resource version to compare with the server")]
    NotSynced,
    /// The server does not have the store's state any more, and the store did not move on to one that the server has. Nothing
    /// is wrong with that; try again later.
    #[error("resource version {resource_version} has expired on the server")]
    Expired {
        /// The store's watermark.
        resource_version: ResourceVersion,
    },
    /// The server could not be asked, or said no.
    #[error(transparent)]
    List(#[from] ListWatchError),
}

impl<K: Resource + Send + Sync + 'static> SharedIndexInformer<K> {
    /// Compares the store with the server's state at its [watermark](Self::watermark), and returns what is different.
    /// If anything is, it is logged, and the informer lists again at once, which puts it right; when this returns, that
    /// has been asked for, and not yet done.
    ///
    /// Objects that are quarantined (I10) are left out. Where the server has compacted the state, this waits for the store to
    /// move on, and compares that state, up to three times: a quiet resource gets a bookmark about once a minute, so that
    /// `verify` may take minutes where the server compacts often. This is a list of metadata only, if the informer's source
    /// offers that. Namespaces that are followed one by one are compared one after the other.
    /// [`InformerOptions::verify_every`](super::InformerOptions::verify_every) has it
    /// done from time to time.
    ///
    /// # Errors
    /// If there is no state that could be compared, or the server can't be asked for it, or answers with another. Nothing
    /// is said of the store then.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped, and nothing comes of it.
    pub async fn verify(&self) -> Result<Verification, VerifyError> {
        self.shared.verifier.verify().await
    }

    /// Returns what the last [`verify`](Self::verify) has found, whoever asked for it; `None` before the first.
    #[must_use]
    pub fn last_verification(&self) -> Option<Arc<Verification>> {
        self.shared.verifier.last.lock().clone()
    }
}

/// Compares a store with the server.
pub(super) struct Verifier<K: 'static> {
    indexer: Indexer<K>,
    source: Arc<Source<K>>,
    /// Changes when the store has moved on.
    watermark: watch::Receiver<ResourceVersion>,
    last: Mutex<Option<Arc<Verification>>>,
}

impl<K> Verifier<K> {
    pub(super) fn new(
        indexer: Indexer<K>,
        source: Arc<Source<K>>,
        watermark: watch::Receiver<ResourceVersion>,
    ) -> Self {
        Self { indexer, source, watermark, last: Mutex::new(None) }
    }
}

impl<K: Resource + Send + Sync + 'static> Verifier<K> {
    /// Verifies from time to time; ends never.
    pub(super) async fn verify_every(&self, period: Duration) {
        let mut failure = None;
        loop {
            let least = period / 10 * 9;
            // Somebody may want it never, and say so with the longest period there is.
            sleep(least.saturating_add((period / 5).mul_f64(fastrand::f64()))).await;
            let outcome = self.verify().await;
            let status = self.source.status();
            let resource = status.description();
            let error = outcome.err().map(|error| error.to_string());
            match &error {
                Some(error) if failure.as_ref() != Some(error) => {
                    tracing::info!("{resource}: the store could not be verified: {error}");
                }
                Some(error) => tracing::debug!("{resource}: the store could not be verified: {error}"),
                None => {}
            }
            failure = error;
        }
    }

    /// Compares each part, and adds up what that says.
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

    async fn verify_part(&self, part: &Part<K>) -> Result<Verification, VerifyError> {
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

    async fn verify_once(&self, part: &Part<K>) -> Result<Verification, VerifyError> {
        // Before and after: an object may come to be quarantined, or cease to be, at any time.
        let mut quarantined = quarantined(part);
        let snapshot = self.indexer.snapshot();
        let resource_version = watermark(&snapshot, part);
        if resource_version.is_empty() {
            return Err(VerifyError::NotSynced);
        }
        match list(part, &resource_version).await {
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
        part: &Part<K>,
        resource_version: &ResourceVersion,
    ) -> Result<bool, ListWatchError> {
        let has_moved_on =
            |_: &ResourceVersion| watermark(&self.indexer.snapshot(), part) != *resource_version;
        if has_moved_on(resource_version) {
            return Ok(true);
        }
        ask_for_newest(part).await?;
        let mut moving = self.watermark.clone();
        let moved_on = timeout(PATIENCE, moving.wait_for(has_moved_on)).await;
        Ok(matches!(moved_on, Ok(Ok(_))))
    }

    /// Compares, and sees to what has to be done about it.
    fn conclude(
        &self,
        part: &Part<K>,
        snapshot: &Snapshot<K>,
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
            let (count, version) = (verification.differences.len(), &verification.resource_version);
            tracing::warn!(
                "{}: the store is not the server's state at resource version {version}: {first}, \
                 and {} more differences",
                part.status.description(),
                count - 1
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
fn watermark<K>(snapshot: &Snapshot<K>, part: &Part<K>) -> ResourceVersion {
    match &part.namespace {
        Some(namespace) => snapshot.watermarks().get(namespace).cloned().unwrap_or_default(),
        None => snapshot.watermark().clone(),
    }
}

fn quarantined<K>(part: &Part<K>) -> HashSet<ObjectKey> {
    part.status.quarantined().into_iter().filter_map(|malformed| malformed.key).collect()
}

/// Compares object by object, in the order of their keys.
fn differences<K>(
    stored: &Objects<K>,
    mut listed: Listed,
    quarantined: &HashSet<ObjectKey>,
) -> Vec<Difference> {
    let of_stored = |object: &Cached<K>| {
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
