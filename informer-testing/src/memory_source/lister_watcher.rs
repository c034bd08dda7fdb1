//! Implements [`ListerWatcher`] for [`MemorySource`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use informer_core::{
    Bookmark, ListEnd, ListOptions, ListPart, ListStream, ListWatchError, ListerWatcher, ObjectKey,
    WatchEvent, WatchOptions, WatchStream,
};
use kube::Resource;
use kube::core::PartialObjectMeta;
use kube::core::metadata::PartialObjectMetaExt;
use tokio::sync::watch;

use super::log::{ChangeKind, LogEvent, ReaderId, Reading};
use super::state::Listed;
use super::{MemorySource, Shared};

#[async_trait]
impl<K: Resource + Clone + Send + Sync + 'static> ListerWatcher<K> for MemorySource<K> {
    fn description(&self) -> &str {
        &self.shared.description
    }

    fn can_stream_lists(&self) -> bool {
        self.shared.can_stream.load(Ordering::Relaxed)
    }

    fn object_metadata(&self, object: &ObjectKey) -> Option<Arc<dyn ListerWatcher<PartialObjectMeta>>> {
        Some(Arc::new(OneObject { source: self.clone(), key: object.clone() }))
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<K>, ListWatchError> {
        let Listed { objects, version } = self.shared.state.lock().list(&options)?;
        let items = objects.iter().map(|object| Ok(K::clone(object).into())).collect();
        let end = ListEnd { resource_version: version.into(), ..ListEnd::default() };
        Ok(stream::iter([Ok(ListPart::Items(items)), Ok(ListPart::End(end))]).boxed())
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<K>, ListWatchError> {
        let opened = self.shared.state.lock().watch(&options)?;
        let changed = self.shared.changed.subscribe();
        let watch = Watch { shared: Arc::clone(&self.shared), reader: opened.reader, changed };
        // Wake the callers that wait for a number of watches.
        self.shared.changed.send_replace(());
        let ends_with_bookmark = options.send_initial_events && options.allow_bookmarks;
        let initial = opened.initial.map(|listed| initial_events(&listed, ends_with_bookmark));
        let initial = initial.filter(|events| !events.is_empty()).map(Ok);
        Ok(stream::iter(initial).chain(stream::unfold(Some(watch), next)).boxed())
    }
}

/// A [`ListerWatcher`] that lists one object, `key`, as a [`PartialObjectMeta`]. Its `watch` always
/// returns an error.
struct OneObject<K> {
    source: MemorySource<K>,
    key: ObjectKey,
}

#[async_trait]
impl<K: Resource + Clone + Send + Sync + 'static> ListerWatcher<PartialObjectMeta> for OneObject<K> {
    fn description(&self) -> &str {
        &self.source.shared.description
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<PartialObjectMeta>, ListWatchError> {
        let Listed { objects, version } = self.source.shared.state.lock().list(&options)?;
        let (namespace, name) = (self.key.namespace(), self.key.name());
        let is_own =
            |key: &ObjectKey| key.name() == name && (namespace.is_none() || key.namespace() == namespace);
        let own = objects.iter().filter(|object| is_own(object.key()));
        let items = own.map(|object| Ok(object.meta().clone().into_response_partial().into())).collect();
        let end = ListEnd { resource_version: version.into(), ..ListEnd::default() };
        Ok(stream::iter([Ok(ListPart::Items(items)), Ok(ListPart::End(end))]).boxed())
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<PartialObjectMeta>, ListWatchError> {
        Err(ListWatchError::Protocol("a watch of a single object is not supported".to_owned()))
    }
}

/// Returns the objects of a list as `ADDED` events, and then the bookmark that ends a streaming
/// list, if `ends_with_bookmark`.
fn initial_events<K: Clone + Send + Sync + 'static>(
    listed: &Listed<K>,
    ends_with_bookmark: bool,
) -> Vec<WatchEvent<K>> {
    let mut events: Vec<_> =
        listed.objects.iter().map(|object| WatchEvent::Added(K::clone(object).into())).collect();
    if ends_with_bookmark {
        let bookmark = Bookmark { resource_version: listed.version.into(), initial_events_end: true };
        events.push(WatchEvent::Bookmark(bookmark));
    }
    events
}

/// An open watch, which is closed on drop.
struct Watch<K> {
    shared: Arc<Shared<K>>,
    reader: ReaderId,
    changed: watch::Receiver<()>,
}

type Piece<K> = Result<Vec<WatchEvent<K>>, ListWatchError>;

/// Waits for the next item of a watch's stream: all available events, or an error, which ends the
/// stream.
async fn next<K: Clone + Send + Sync + 'static>(
    watch: Option<Watch<K>>,
) -> Option<(Piece<K>, Option<Watch<K>>)> {
    let mut watch = watch?;
    loop {
        // The state is marked as unchanged before the read, so that a later change wakes this watch.
        watch.changed.mark_unchanged();
        let reading = watch.shared.state.lock().log.read(watch.reader);
        match reading {
            Reading::Events(events) if events.is_empty() => watch.changed.changed().await.ok()?,
            Reading::Events(events) => {
                return Some((Ok(events.into_iter().map(event).collect()), Some(watch)));
            }
            Reading::Failed(error) => return Some((Err(copy_of(&error)), None)),
            Reading::Closed => return None,
        }
    }
}

fn event<K: Clone + Send + Sync + 'static>(log_event: LogEvent<K>) -> WatchEvent<K> {
    match log_event {
        LogEvent::Change(ChangeKind::Added, object) => WatchEvent::Added(K::clone(&object).into()),
        LogEvent::Change(ChangeKind::Modified, object) => WatchEvent::Modified(K::clone(&object).into()),
        LogEvent::Change(ChangeKind::Deleted, object) => WatchEvent::Deleted(K::clone(&object).into()),
        LogEvent::Bookmark(version) => {
            WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end: false })
        }
    }
}

/// Copies an error. If the error has a cause, the copy contains only the text of the cause, because
/// causes are not `Clone`.
fn copy_of(error: &ListWatchError) -> ListWatchError {
    match error {
        ListWatchError::Status { status, retry_after } => {
            ListWatchError::Status { status: status.clone(), retry_after: *retry_after }
        }
        ListWatchError::Unreachable(source) => ListWatchError::Unreachable(source.to_string().into()),
        ListWatchError::Interrupted(source) => ListWatchError::Interrupted(source.to_string().into()),
        ListWatchError::Protocol(message) => ListWatchError::Protocol(message.clone()),
        ListWatchError::InvalidRequest(source) => ListWatchError::InvalidRequest(source.to_string().into()),
        other => ListWatchError::Protocol(other.to_string()),
    }
}

impl<K> Drop for Watch<K> {
    fn drop(&mut self) {
        self.shared.state.lock().log.close(self.reader);
        self.shared.changed.send_replace(());
    }
}
