//! [`View`]: an informer whose objects the inspector's web page shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{AnyObject, Cached, HandlerOptions, HandlerRegistration};
use informer_factory::__private::resource_of;
use informer_factory::informer_store::NAMESPACE_INDEX;
use informer_factory::status::InformerReport;
use informer_factory::{Indexer, SharedIndexInformer};
use kube::Resource;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::changes::Changes;
use super::mask::Mask;
use super::query::Query;

/// Maximum number of objects that are read to estimate the size of all objects of an informer.
const SAMPLE: usize = 24;
/// The time for which an estimate of the mean size of an informer's objects is reused.
const SIZE_VALID: Duration = Duration::from_secs(15);

pub(super) struct View {
    /// Keeps the informer alive.
    pub(super) informer: Box<dyn AnyInformer>,
    pub(super) indexer: Indexer<AnyObject>,
    pub(super) changes: Arc<Changes>,
    /// The time of the last estimate, and the estimated mean size of an object as JSON, in bytes.
    size: Mutex<Option<(Instant, usize)>>,
    _recorder: HandlerRegistration,
}

/// The metadata that the page shows for each object in a list of objects.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) created: Option<String>,
}

/// An informer, and its objects, for callers that do not know the type of the objects.
pub(super) trait AnyInformer: Send + Sync {
    /// Returns whether a report is about this informer.
    fn is_of(&self, report: &InformerReport) -> bool;

    /// Returns whether the informer's objects are Secrets, or custom resources that are also named
    /// `secrets`. The name of the resource decides, because the JSON of some types has no `kind`.
    /// The resource can be unknown when the informer is created.
    fn is_secret(&self) -> bool;

    /// Returns the object as JSON without masks. The caller must mask the values.
    fn unmasked(&self, object: &Cached<AnyObject>) -> Result<Value, serde_json::Error>;

    fn facts(&self, object: &Cached<AnyObject>) -> Facts;

    fn matches_labels(&self, object: &Cached<AnyObject>, query: &Query, mask: &Mask) -> bool;
}

impl<K: Resource + Serialize + Send + Sync + 'static> AnyInformer for SharedIndexInformer<K> {
    fn is_of(&self, report: &InformerReport) -> bool {
        report.is_for(self)
    }

    fn is_secret(&self) -> bool {
        resource_of(self).split([' ', '.']).next() == Some("secrets")
    }

    fn unmasked(&self, object: &Cached<AnyObject>) -> Result<Value, serde_json::Error> {
        // The handle is dropped after the call, so that nothing keeps the decoded object.
        object.clone().cast::<K>().read(|object| serde_json::to_value(object))
    }

    fn facts(&self, object: &Cached<AnyObject>) -> Facts {
        let object = object.clone().cast::<K>();
        let metadata = object.metadata();
        Facts {
            labels: metadata.labels.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()),
        }
    }

    fn matches_labels(&self, object: &Cached<AnyObject>, query: &Query, mask: &Mask) -> bool {
        let object = object.clone().cast::<K>();
        let metadata = object.metadata();
        query.matches_labels(metadata.labels.as_ref().unwrap_or(&BTreeMap::new()), mask)
    }
}

impl View {
    pub(super) fn new<K>(informer: &SharedIndexInformer<K>) -> Self
    where
        K: Resource + Serialize + Send + Sync + 'static,
    {
        let changes = Arc::new(Changes::default());
        let options = HandlerOptions::new().name("inspector");
        let recorder = informer.add_event_handler_with(Arc::clone(&changes), &options);
        Self {
            informer: Box::new(informer.clone()),
            indexer: informer.indexer().cast_ref().clone(),
            changes,
            size: Mutex::new(None),
            _recorder: recorder,
        }
    }

    pub(super) fn masked(&self, object: &Cached<AnyObject>, mask: &Mask) -> Result<Value, serde_json::Error> {
        let mut value = self.informer.unmasked(object)?;
        let paths = mask.of(&[&value], self.informer.is_secret());
        paths.apply(&mut value);
        Ok(value)
    }

    /// Returns whether the labels and fields of an object match the label and field terms of
    /// `query`. These terms cannot find the content of masked values.
    pub(super) fn matches(&self, object: &Cached<AnyObject>, query: &Query, mask: &Mask) -> bool {
        (!query.has_labels() || self.informer.matches_labels(object, query, mask))
            && (!query.has_fields()
                || self.masked(object, mask).is_ok_and(|object| query.matches_fields(&object)))
    }

    /// Returns the names of the indexes that a search may use: those that `mask` does not hide. For
    /// Secrets, only the index by namespace.
    pub(super) fn searchable_indexes(&self, mask: &Mask) -> Vec<String> {
        let is_secret = self.informer.is_secret();
        let mut names = self.indexer.index_names();
        names.retain(|name| !mask.hides_index(name) && (!is_secret || name == NAMESPACE_INDEX));
        names
    }

    /// Returns the size of all objects as JSON in bytes, estimated from a sample; `None` if a new
    /// sample is necessary and has no object.
    pub(super) fn size(&self) -> Option<u64> {
        let count = self.indexer.len();
        let known = *self.size.lock();
        let mean = match known {
            Some((at, mean)) if at.elapsed() < SIZE_VALID => mean,
            _ => {
                let mean = self.sample()?;
                *self.size.lock() = Some((Instant::now(), mean));
                mean
            }
        };
        Some(mean as u64 * count as u64)
    }

    fn sample(&self) -> Option<usize> {
        let objects = self.indexer.list();
        let step = (objects.len() / SAMPLE).max(1);
        let sample = objects.into_iter().step_by(step).take(SAMPLE);
        let sizes: Vec<_> = sample
            .filter_map(|object| Some(self.informer.unmasked(&object).ok()?.to_string().len()))
            .collect();
        (!sizes.is_empty()).then(|| sizes.iter().sum::<usize>() / sizes.len())
    }
}
