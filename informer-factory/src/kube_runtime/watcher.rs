//! [`watcher_events`]: an informer's events as those of `kube_runtime::watcher`.
//!
//! kube-runtime's beginning (`Init`, `InitApply`, `InitDone`) has no word for an object that goes
//! before it is over: its readers collect what was applied, and put it in place at the end. So such
//! deletions wait until after `InitDone`.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use informer_core::{Cached, Event, EventStream, HandlerOptions, ObjectKey};

use ::kube_runtime::watcher;

use crate::SharedIndexInformer;

/// Returns an informer's events in the form of `kube_runtime::watcher`'s: `Init`, an `InitApply`
/// for each object that exists, `InitDone`, and from then on `Apply` and `Delete`. It can be called
/// at any time, and begins anew each time.
///
/// Objects are cloned for it, since kube-runtime's events own theirs. There are no errors in it: to
/// list and to watch again is the informer's business. What kube-runtime's own watcher doesn't
/// tell, the deletions that were missed, is told as `Delete`; a [resync](Event::Resynced) is told
/// as `Apply`, and a [release](Event::Released), for which kube-runtime has no equivalent, as
/// `Delete`: readers drop their copies, and finalizers protect against mistaken cleanups. A reader
/// that falls behind by more than 1,024 events gets one per object.
///
/// The stream ends when the informer stops.
pub fn watcher_events<K: Clone + Send + Sync + 'static>(
    informer: &SharedIndexInformer<K>,
) -> WatcherEvents<K> {
    let options = HandlerOptions::new().name("kube-runtime");
    WatcherEvents {
        events: informer.events(&options),
        ready: VecDeque::from([watcher::Event::Init]),
        beginning: Some(BTreeMap::new()),
    }
}

/// See [`watcher_events`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct WatcherEvents<K> {
    events: EventStream<K>,
    /// What comes next.
    ready: VecDeque<watcher::Event<K>>,
    /// What has gone since it was told as part of the beginning; `None` after that.
    beginning: Option<BTreeMap<ObjectKey, Cached<K>>>,
}

impl<K: Clone + Send + Sync + 'static> WatcherEvents<K> {
    /// Ends the beginning, if it is over: this was told all that existed, and has come back for
    /// more.
    fn end_beginning(&mut self) {
        if self.events.registration().has_synced()
            && let Some(gone) = self.beginning.take()
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
            // Readers keep copies, which must be dropped.
            Event::Released(object) => self.deleted(&object),
            Event::Deleted(deleted) => {
                // What was never known was never applied.
                if let Some(object) = deleted.last_known() {
                    self.deleted(object);
                }
            }
        }
    }

    fn applied(&mut self, object: &Cached<K>) {
        self.ready.push_back(match &mut self.beginning {
            Some(gone) => {
                gone.remove(object.key());
                watcher::Event::InitApply(K::clone(object))
            }
            None => watcher::Event::Apply(K::clone(object)),
        });
    }

    fn deleted(&mut self, object: &Cached<K>) {
        match &mut self.beginning {
            Some(gone) => drop(gone.insert(object.key().clone(), object.clone())),
            None => self.ready.push_back(watcher::Event::Delete(K::clone(object))),
        }
    }
}

// Nothing in it is pinned.
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
            this.end_beginning();
            match next {
                Poll::Ready(Some(event)) => this.translate(event),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending if this.ready.is_empty() => return Poll::Pending,
                // The rest waits until somebody asks for it.
                Poll::Pending => {}
            }
        }
    }
}

impl<K> fmt::Debug for WatcherEvents<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_beginning = self.beginning.is_some();
        f.debug_struct("WatcherEvents").field("is_beginning", &is_beginning).finish_non_exhaustive()
    }
}
