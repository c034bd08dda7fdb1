//! [`watcher_events`]: converts an informer's events to events of `kube_runtime::watcher`.
//!
//! Readers of kube-runtime's events collect the objects that arrive between `Init` and `InitDone`,
//! and use the collection after `InitDone`. A `Delete` before `InitDone` would not remove its
//! object from the collection. So deletions before `InitDone` (early deletions) are sent after
//! `InitDone`.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use informer_core::{Cached, Event, EventStream, HandlerOptions, ObjectKey};

use ::kube_runtime::watcher;

use crate::SharedIndexInformer;

/// Returns an informer's events as events of `kube_runtime::watcher`: `Init`, an `InitApply` for
/// each existing object, `InitDone`, and then `Apply` and `Delete`. This function can be called at
/// any time; each stream begins with `Init`.
///
/// Objects are cloned, because kube-runtime's events own their objects. The stream has no errors,
/// because the informer itself relists and resumes. For a missed deletion, the stream has a
/// `Delete`; kube-runtime's own watcher sends none. A [resync](Event::Resynced) is an `Apply`, or
/// an `InitApply` before `InitDone`. If the informer stops watching a namespace, each object of
/// this namespace gets a `Delete`, although it can still exist ([`Event::Released`]). For cleanups,
/// use finalizers, not `Delete` events. If 1,024 events or more are pending for a reader, later
/// events are coalesced per object.
///
/// The stream ends when the informer stops. If the informer has stopped before, the stream has only
/// `Init`.
pub fn watcher_events<K: Clone + Send + Sync + 'static>(
    informer: &SharedIndexInformer<K>,
) -> WatcherEvents<K> {
    let options = HandlerOptions::new().name("kube-runtime");
    WatcherEvents {
        events: informer.events(&options),
        ready: VecDeque::from([watcher::Event::Init]),
        early_deletions: Some(BTreeMap::new()),
    }
}

/// The stream that [`watcher_events`] returns: an informer's events as events of
/// `kube_runtime::watcher`.
#[must_use = "a stream does nothing unless it is polled"]
pub struct WatcherEvents<K> {
    events: EventStream<K>,
    ready: VecDeque<watcher::Event<K>>,
    /// The last versions of the objects that left the store before `InitDone`; `None` after
    /// `InitDone`.
    early_deletions: Option<BTreeMap<ObjectKey, Cached<K>>>,
}

impl<K: Clone + Send + Sync + 'static> WatcherEvents<K> {
    /// Once all initial adds have arrived, appends `InitDone` and then the early deletions to
    /// `ready`. `InitDone` is appended only once.
    fn finish_initial_list(&mut self) {
        if self.events.registration().has_synced()
            && let Some(gone) = self.early_deletions.take()
        {
            self.ready.push_back(watcher::Event::InitDone);
            self.ready.extend(gone.into_values().map(|object| watcher::Event::Delete(K::clone(&object))));
        }
    }

    fn translate(&mut self, event: Event<K>) {
        match event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } | Event::Resynced(object) => {
                self.applied(&object);
            }
            // kube-runtime has no release, and readers must drop their copies.
            Event::Released(object) => self.deleted(&object),
            Event::Deleted(deleted) => {
                // Without a last known state, the object was never applied, so there is nothing to
                // delete.
                if let Some(object) = deleted.last_known() {
                    self.deleted(object);
                }
            }
        }
    }

    fn applied(&mut self, object: &Cached<K>) {
        self.ready.push_back(match &mut self.early_deletions {
            Some(gone) => {
                gone.remove(object.key());
                watcher::Event::InitApply(K::clone(object))
            }
            None => watcher::Event::Apply(K::clone(object)),
        });
    }

    fn deleted(&mut self, object: &Cached<K>) {
        match &mut self.early_deletions {
            Some(gone) => drop(gone.insert(object.key().clone(), object.clone())),
            None => self.ready.push_back(watcher::Event::Delete(K::clone(object))),
        }
    }
}

// No field is structurally pinned.
impl<K> Unpin for WatcherEvents<K> {}

impl<K: Clone + Send + Sync + 'static> Stream for WatcherEvents<K> {
    type Item = watcher::Result<watcher::Event<K>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            let next = Pin::new(&mut this.events).poll_next(cx);
            this.finish_initial_list();
            match next {
                Poll::Ready(Some(event)) => this.translate(event),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending if this.ready.is_empty() => return Poll::Pending,
                // `finish_initial_list` has added events.
                Poll::Pending => {}
            }
        }
    }
}

impl<K> fmt::Debug for WatcherEvents<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_initial = self.early_deletions.is_some();
        f.debug_struct("WatcherEvents").field("is_initial", &is_initial).finish_non_exhaustive()
    }
}
