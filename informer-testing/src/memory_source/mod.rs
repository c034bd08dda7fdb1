//! [`MemorySource`]: a `ListerWatcher` whose objects are in memory, where a test changes them.
//!
//! client-go: `FakeControllerSource` of `tools/cache/testing/fake_controller_source.go`. As in that
//! type, the history includes changes that are hidden from open watches: a later watch from an
//! older version receives them.
//!
//! Objects are cloned and dropped while the lock is not held, because both can run code of the
//! test.

mod lister_watcher;
mod log;
mod refusal;
mod state;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use informer_core::{Cached, ListWatchError, ObjectKey, ResourceVersion};
use kube::Resource;
use kube::core::response::reason;
use parking_lot::Mutex;
use tokio::sync::watch;

use kube_simulator::Error;
use log::{ChangeKind, Content};
use refusal::Refusal;
use state::State;

/// A [`ListerWatcher`](informer_core::ListerWatcher) whose objects are in memory, where a test
/// changes them. It uses no HTTP, no JSON, no tasks and no clock.
///
/// Clones share all state: give one clone to the informer, and change objects through another. Each
/// change sets a new `metadata.resourceVersion`, and a `metadata.uid` if the object has none.
/// Versions are decimal numbers, which each change or bookmark increases by one. The resource
/// version of a written object is ignored: the last write wins.
///
/// The following behavior is unusual for API servers, but a client must expect it. A list has one
/// page, whatever its limit. Lists that request exactly an older resource version, and lists with a
/// continue token, are refused with 410. Watches have no time limit and end only when the test ends
/// them. History is kept until [`expire`](Self::expire).
///
/// ```
/// use futures::StreamExt;
/// use informer_core::{ListerWatcher, WatchEvent, WatchOptions};
/// use informer_testing::MemorySource;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let source = MemorySource::new("configmaps");
/// let mut limits = ConfigMap::default();
/// limits.metadata.namespace = Some("payments".into());
/// limits.metadata.name = Some("limits".into());
/// let created = source.create(limits)?;
///
/// // An informer does this by itself: `SharedIndexInformer::new(Arc::new(source.clone()), options)`.
/// let mut watch = source
///     .watch(WatchOptions {
///         resource_version: created.resource_version().clone(),
///         timeout: Duration::from_secs(300),
///         allow_bookmarks: true,
///         send_initial_events: false,
///     })
///     .await?;
/// source.modify(created.key(), |limits| limits.immutable = Some(true))?;
/// source.delete(created.key())?;
///
/// let events = watch.next().await.expect("an open watch")?;
/// assert!(matches!(&events[..], [WatchEvent::Modified(_), WatchEvent::Deleted(_)]));
/// # Ok(())
/// # }
/// ```
#[doc(alias = "FakeControllerSource")]
pub struct MemorySource<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    description: String,
    can_stream: AtomicBool,
    state: Mutex<State<K>>,
    /// Wakes watches that wait for events, and tests that wait for a number of open watches.
    changed: watch::Sender<()>,
}

/// The constructor, a setting, and methods that change objects.
impl<K: Resource + Clone + Send + Sync + 'static> MemorySource<K> {
    /// Returns a source without objects. `description` names its objects in messages, for example
    /// `pods`.
    #[must_use]
    pub fn new(description: impl Into<String>) -> Self {
        let shared = Shared {
            description: description.into(),
            can_stream: AtomicBool::new(false),
            state: Mutex::new(State::new()),
            changed: watch::Sender::new(()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Enables streaming lists: reflectors that use this source or any of its clones can then
    /// request them. By default, reflectors send list requests. The source always answers both
    /// kinds of requests.
    #[must_use]
    pub fn streaming_lists(self) -> Self {
        self.shared.can_stream.store(true, Ordering::Relaxed);
        self
    }

    /// Adds an object, and returns the stored object.
    ///
    /// # Errors
    /// [`Error::Refused`] if the object exists already or has no name.
    #[doc(alias = "Add")]
    pub fn create(&self, object: K) -> Result<Cached<K>, Error> {
        self.put(object, ChangeKind::Added, true)
    }

    /// Adds an object without an event for open watches, and returns the stored object.
    ///
    /// # Errors
    /// [`Error::Refused`] if the object exists already or has no name.
    #[doc(alias = "AddDropWatch")]
    pub fn create_unseen(&self, object: K) -> Result<Cached<K>, Error> {
        self.put(object, ChangeKind::Added, false)
    }

    /// Replaces an object, and returns the stored object. An `object` without a UID gets the UID of
    /// the object that it replaces.
    ///
    /// # Errors
    /// [`Error::Refused`] if no object has this name, or if `object` has no name.
    #[doc(alias = "Modify")]
    pub fn update(&self, object: K) -> Result<Cached<K>, Error> {
        self.put(object, ChangeKind::Modified, true)
    }

    /// Replaces an object without an event for open watches, and returns the stored object. An
    /// `object` without a UID gets the UID of the object that it replaces.
    ///
    /// # Errors
    /// [`Error::Refused`] if no object has this name, or if `object` has no name.
    #[doc(alias = "ModifyDropWatch")]
    pub fn update_unseen(&self, object: K) -> Result<Cached<K>, Error> {
        self.put(object, ChangeKind::Modified, false)
    }

    /// Calls `change` with a copy of the object with this key, and replaces the object by the copy.
    /// `change` must keep the name and the namespace. Changes that other threads make to the object
    /// during the call can be lost.
    ///
    /// # Errors
    /// [`Error::Refused`] if the object does not exist, or if `change` removes the name, or sets a
    /// name and namespace that no object has.
    pub fn modify(&self, key: &ObjectKey, change: impl FnOnce(&mut K)) -> Result<Cached<K>, Error> {
        let stored = self.get(key).ok_or_else(|| self.not_found(key))?;
        let mut object = K::clone(&stored);
        change(&mut object);
        self.update(object)
    }

    /// Removes an object, and returns its last state with the resource version of the deletion.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such object.
    pub fn delete(&self, key: &ObjectKey) -> Result<Cached<K>, Error> {
        self.remove(key, true)
    }

    /// Removes an object without an event for open watches, and returns its last state with the
    /// resource version of the deletion.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such object.
    #[doc(alias = "DeleteDropWatch")]
    pub fn delete_unseen(&self, key: &ObjectKey) -> Result<Cached<K>, Error> {
        self.remove(key, false)
    }

    /// Stores an object. `kind` is `Added` or `Modified`, and decides whether the object must exist.
    fn put(&self, mut object: K, kind: ChangeKind, seen: bool) -> Result<Cached<K>, Error> {
        let key = key_of(&object)?;
        let (stored, _replaced) = {
            let mut state = self.shared.state.lock();
            let before = state.objects.get(&key).cloned();
            match (kind, &before) {
                (ChangeKind::Added, Some(_)) => return Err(self.already_exists(&key).into()),
                (ChangeKind::Modified, None) => return Err(self.not_found(&key).into()),
                _ => {}
            }
            let version = state.next_version();
            stamp(&mut object, version, before.as_deref());
            let uid = object.meta().uid.as_deref().into();
            let stored = Cached::from_parts(key.clone(), version.into(), uid, object);
            state.objects.insert(key, stored.clone());
            state.log.push(version, Content::Change { kind, object: stored.clone(), seen });
            (stored, before)
        };
        self.shared.changed.send_replace(());
        Ok(stored)
    }

    fn remove(&self, key: &ObjectKey, seen: bool) -> Result<Cached<K>, Error> {
        let deleted = loop {
            let seen_last = self.get(key).ok_or_else(|| self.not_found(key))?;
            let mut last = K::clone(&seen_last);
            let mut state = self.shared.state.lock();
            // The copy was made without the lock, so the object may have been changed or removed
            // meanwhile.
            if state.objects.get(key).is_none_or(|stored| !stored.ptr_eq(&seen_last)) {
                continue;
            }
            let version = state.next_version();
            last.meta_mut().resource_version = Some(version.to_string());
            let deleted = Cached::from_parts(key.clone(), version.into(), seen_last.uid().clone(), last);
            let change = Content::Change { kind: ChangeKind::Deleted, object: deleted.clone(), seen };
            state.objects.remove(key);
            state.log.push(version, change);
            break deleted;
        };
        self.shared.changed.send_replace(());
        Ok(deleted)
    }

    fn already_exists(&self, key: &ObjectKey) -> Refusal {
        let message = format!("{} \"{key}\" already exists", self.shared.description);
        refusal::failure(StatusCode::CONFLICT, reason::ALREADY_EXISTS, &message)
    }

    fn not_found(&self, key: &ObjectKey) -> Refusal {
        let message = format!("{} \"{key}\" not found", self.shared.description);
        refusal::failure(StatusCode::NOT_FOUND, reason::NOT_FOUND, &message)
    }
}

/// Methods that query the objects and the request counters.
impl<K> MemorySource<K> {
    /// Returns the object with this key; `None` if the source has no such object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.shared.state.lock().objects.get(key).cloned()
    }

    /// Returns all objects, sorted by key.
    #[must_use]
    pub fn objects(&self) -> Vec<Cached<K>> {
        self.shared.state.lock().objects.values().cloned().collect()
    }

    /// Returns the version of the last change or bookmark; `1` before the first.
    #[must_use]
    pub fn resource_version(&self) -> ResourceVersion {
        self.shared.state.lock().version().into()
    }

    /// Returns the number of list requests, including refused ones and excluding streaming lists.
    #[must_use]
    pub fn list_count(&self) -> usize {
        self.shared.state.lock().lists
    }

    /// Returns the number of watch requests, including streaming lists and refused ones.
    #[must_use]
    pub fn watch_count(&self) -> usize {
        self.shared.state.lock().watches
    }

    /// Returns the number of open watches.
    #[must_use]
    pub fn open_watches(&self) -> usize {
        self.shared.state.lock().log.readers()
    }

    /// Waits until exactly this many watches are open.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    pub async fn wait_for_watches(&self, count: usize) {
        let mut changed = self.shared.changed.subscribe();
        while self.open_watches() != count {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Methods that simulate failures and other events of a server.
impl<K> MemorySource<K> {
    /// Ends the open watches without an error, after each has sent all earlier events.
    #[doc(alias = "ResetWatch")]
    pub fn disconnect(&self) {
        self.send_to_open_watches(Content::Closed);
    }

    /// Ends the open watches with an error, after each has sent all earlier events.
    ///
    /// Each watch receives a copy of the error. In the copy of an
    /// [`Unreachable`](ListWatchError::Unreachable), [`Interrupted`](ListWatchError::Interrupted) or
    /// [`InvalidRequest`](ListWatchError::InvalidRequest) error, the cause has the same text, but not
    /// its original type.
    pub fn fail_watches(&self, error: ListWatchError) {
        self.send_to_open_watches(Content::Failed(Arc::new(error)));
    }

    /// Sends a bookmark with a new version to the open watches that allow bookmarks. So the call
    /// increases [`resource_version`](Self::resource_version), although no object changes.
    pub fn bookmark(&self) {
        {
            let mut state = self.shared.state.lock();
            let version = state.next_version();
            state.log.push(version, Content::Bookmark);
        }
        self.shared.changed.send_replace(());
    }

    /// Forgets the history, as an API server does every five minutes: after this call, a watch from
    /// an earlier version is refused with 410 `Expired`. Open watches continue.
    ///
    /// The sequence `delete_unseen`, `expire`, `disconnect` makes a reflector relist, and the
    /// relist infers the deletion.
    pub fn expire(&self) {
        let forgotten = self.shared.state.lock().expire();
        drop(forgotten);
    }

    /// Refuses the next list, streaming or not, with `error`. Each call refuses one more list, in
    /// the order of the calls.
    pub fn fail_next_list(&self, error: ListWatchError) {
        self.shared.state.lock().list_errors.push_back(error);
    }

    fn send_to_open_watches(&self, content: Content<K>) {
        {
            let mut state = self.shared.state.lock();
            let version = state.version();
            state.log.push(version, content);
        }
        self.shared.changed.send_replace(());
    }
}

fn key_of<K: Resource>(object: &K) -> Result<ObjectKey, Refusal> {
    let meta = object.meta();
    match meta.name.as_deref() {
        Some(name) if !name.is_empty() => Ok(ObjectKey::new(meta.namespace.as_deref(), name)),
        _ => {
            let message = "metadata.name: Required value: set a name; generateName is not supported here";
            Err(refusal::failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message))
        }
    }
}

/// Sets the version of an object. An object without a UID gets the UID of `before`, the object that
/// it replaces, or a new UID.
fn stamp<K: Resource>(object: &mut K, version: u64, before: Option<&K>) {
    let meta = object.meta_mut();
    meta.resource_version = Some(version.to_string());
    if meta.uid.as_deref().is_none_or(str::is_empty) {
        let kept = before.and_then(|before| before.meta().uid.clone());
        meta.uid = Some(kept.unwrap_or_else(|| format!("00000000-0000-4000-8000-{version:012x}")));
    }
}

impl<K> Clone for MemorySource<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> fmt::Debug for MemorySource<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("MemorySource")
            .field("description", &self.shared.description)
            .field("objects", &state.objects.len())
            .field("resource_version", &state.version())
            .finish_non_exhaustive()
    }
}
