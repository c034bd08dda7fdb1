//! [`Namespaces`]: the changing set of namespaces of an informer.
//!
//! Each namespace has its own reflector, and a feed: the reflector's input to the informer's queue.
//! The watermark of a namespace is the resource version that the store has reached for it.
//!
//! When a namespace is removed, its objects are queued as released: they leave the store, but can
//! still exist on the server. If the namespace is added again, its new reflector starts after the
//! old objects have been queued, so that newly listed objects are not queued as released.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use informer_core::{
    Completion, DeltaFifo, InNamespace, ListerWatcher, NamespaceFeed, NamespaceProgress, ReflectorStore,
    ResourceVersion, Watermarks,
};
use informer_reflector::{Ingest, Reflector, ReflectorConfig};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::status::{MemberStatus, Members, SourceStatus};
use super::{NamespaceError, Part};
use crate::namespaces::NamespaceWatch;
use released::ReleasedNames;
use task::MemberTask;

mod released;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use task::NamespacesTask;

pub(crate) struct Namespaces<K: 'static> {
    /// Names the informer's objects in log lines and errors, such as `scheduler/pods` or `Pod`.
    description: Arc<str>,
    /// The name of the resource, such as `pods`. Set when the first namespace is added, or earlier.
    resource: OnceLock<Arc<str>>,
    make: InNamespace<K>,
    config: ReflectorConfig,
    ingest: Ingest,
    queue: DeltaFifo<K>,
    state: Mutex<State<K>>,
    /// Wakes the informer's task when a namespace is added.
    joined: Notify,
    /// The watched namespaces and their status, for [`SourceStatus`].
    members: watch::Sender<Members>,
}

struct State<K: 'static> {
    watched: BTreeMap<Arc<str>, Member<K>>,
    /// Reflectors that the informer's task has not started yet.
    waiting: Vec<MemberTask<K>>,
    leaving: BTreeMap<Arc<str>, Leaving>,
    released: ReleasedNames,
    has_ended: bool,
}

/// One watched namespace, with handles to its reflector (`part`) and to its feed.
struct Member<K: 'static> {
    part: Part<K>,
    feed: Arc<NamespaceFeed<K>>,
    /// Sets the namespace's watermark, which wakes tasks that wait for it. `None` once the informer
    /// has processed its last batch.
    watermark: Option<watch::Sender<ResourceVersion>>,
    /// Reads the namespace's watermark, even after the informer has ended.
    reached: watch::Receiver<ResourceVersion>,
    /// Cancelled when the program removes the namespace.
    removed: CancellationToken,
    /// Cancelled when the objects of the removed namespace have been queued as released.
    released: CancellationToken,
}

/// A removed namespace whose objects may still be in the store.
struct Leaving {
    /// Set when the store no longer has the namespace's objects.
    gone: Completion,
    /// Cancelled when the namespace's objects have been queued as released. A new reflector of the
    /// namespace waits for this; `None` if it can start at once.
    released: Option<CancellationToken>,
}

/// The [`ListerWatcher`] and the current watermark of one watched namespace.
pub(crate) struct NamespaceAccess<K> {
    /// Lists and watches the objects of the namespace.
    pub(crate) lister_watcher: Arc<dyn ListerWatcher<K>>,
    /// The namespace's watermark. The channel is closed when the namespace is removed or the
    /// informer has stopped.
    pub(crate) watermark: watch::Receiver<ResourceVersion>,
    /// Cancelled when the program removes the namespace.
    pub(crate) removed: CancellationToken,
}

impl<K: Send + Sync + 'static> Namespaces<K> {
    pub(crate) fn new(
        make: InNamespace<K>,
        names: &[String],
        queue: DeltaFifo<K>,
        reflector: (ReflectorConfig, Ingest),
    ) -> Result<Self, NamespaceError> {
        names.iter().try_for_each(|name| NamespaceError::check_name(name))?;
        // The description comes from the source of the first namespace. Without namespaces, it is
        // the name of the object type, without its path and its type parameters.
        let path = reflector.1.type_name().split('<').next().unwrap_or_default();
        let description = path.rsplit("::").next().unwrap_or_default();
        let mut namespaces = Self::of(description.into(), OnceLock::new(), make, queue, reflector);
        for name in names {
            namespaces.add(name)?;
        }
        if let Some(first) = namespaces.parts().first() {
            namespaces.description = first.description_without_namespace();
        }
        Ok(namespaces)
    }

    /// Returns an empty set of namespaces.
    pub(super) fn of(
        description: Arc<str>,
        resource: OnceLock<Arc<str>>,
        make: InNamespace<K>,
        queue: DeltaFifo<K>,
        (config, ingest): (ReflectorConfig, Ingest),
    ) -> Self {
        Self {
            description,
            resource,
            make,
            config,
            ingest,
            queue,
            state: Mutex::new(State {
                watched: BTreeMap::new(),
                waiting: Vec::new(),
                leaving: BTreeMap::new(),
                released: ReleasedNames::default(),
                has_ended: false,
            }),
            joined: Notify::new(),
            members: watch::Sender::new(Members::default()),
        }
    }

    /// Adds a namespace, unless it is already watched. Returns a [`Completion`] that is set when
    /// the namespace's initial list is in the store.
    pub(crate) fn add(&self, name: &str) -> Result<Completion, NamespaceError> {
        NamespaceError::check_name(name)?;
        if let Some(member) = self.state.lock().watched.get(name) {
            return Ok(member.feed.synced());
        }
        // I8: `make` is called without a lock, so two threads can add the same namespace at the same
        // time; one of the two sources is then dropped.
        let lister_watcher = (self.make)(name);
        _ = self.resource.set(lister_watcher.resource().into());
        let feed = Arc::new(self.queue.feed(name));
        let store = Arc::clone(&feed) as Arc<dyn ReflectorStore<K>>;
        let (config, ingest) = (self.config.clone(), self.ingest.clone());
        let reflector = Reflector::with_ingest(Arc::clone(&lister_watcher), store, config, ingest);
        let (synced, removed, released) = (feed.synced(), CancellationToken::new(), CancellationToken::new());
        let namespace: Arc<str> = name.into();
        let part = Part {
            namespace: Some((Arc::clone(&namespace), feed.id())),
            lister_watcher,
            status: reflector.status(),
            relist: reflector.relist(),
        };
        let (watermark, reached) = watch::channel(ResourceVersion::empty());
        let member = Member {
            part,
            feed: Arc::clone(&feed),
            watermark: Some(watermark),
            reached,
            removed: removed.clone(),
            released: released.clone(),
        };
        let work = MemberTask { reflector, feed, removed, released, starts_after: None };
        if let Some(earlier) = self.join(namespace, member, work) {
            return Ok(earlier);
        }
        self.publish();
        self.joined.notify_one();
        Ok(synced)
    }

    /// Adds a namespace and its reflector `work` to the set. If the set already has the namespace,
    /// returns the [`Completion`] of that namespace's initial list.
    fn join(
        &self,
        namespace: Arc<str>,
        mut member: Member<K>,
        mut work: MemberTask<K>,
    ) -> Option<Completion> {
        let mut state = self.state.lock();
        if let Some(earlier) = state.watched.get(&namespace) {
            let earlier = earlier.feed.synced();
            drop(state);
            drop(work);
            member.feed.release();
            return Some(earlier);
        }
        if state.has_ended {
            member.watermark = None;
        }
        work.starts_after = state.leaving.get(&namespace).and_then(|leaving| leaving.released.clone());
        let watched_again = state.released.remove(&namespace);
        state.watched.insert(namespace, member);
        let never_done = if state.has_ended {
            // The informer has ended, so the work never runs and is dropped below. This drop sets
            // the reflector's health to `Stopped`. The end of the queue cancels the feed's
            // completion.
            Some(work)
        } else {
            state.waiting.push(work);
            None
        };
        drop(state);
        // I8: waiters are woken without the lock.
        drop(never_done);
        if let Some(watched_again) = watched_again {
            watched_again.set();
        }
        None
    }
}

impl<K: 'static> Namespaces<K> {
    /// Returns the name of the resource, such as `pods`. If this name is unknown until a namespace
    /// is added, returns `description` until then.
    pub(super) fn resource(&self) -> &str {
        self.resource.get().unwrap_or(&self.description)
    }

    pub(crate) fn status(&self) -> SourceStatus {
        SourceStatus::of_namespaces(Arc::clone(&self.description), self.members.subscribe())
    }

    pub(super) fn parts(&self) -> Vec<Part<K>> {
        self.state.lock().watched.values().map(|member| member.part.clone()).collect()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.state.lock().watched.keys().map(ToString::to_string).collect()
    }

    /// Returns the [`Completion`] of a namespace's initial list; `None` if the namespace is not
    /// watched.
    pub(crate) fn synced(&self, name: &str) -> Option<Completion> {
        self.state.lock().watched.get(name).map(|member| member.feed.synced())
    }

    pub(crate) fn namespace_watch(&self, name: &str) -> NamespaceWatch {
        let mut state = self.state.lock();
        if let Some(member) = state.watched.get(name) {
            return NamespaceWatch::Watched { removed: member.removed.clone() };
        }
        let has_ended = state.has_ended;
        let Some(watched_again) = state.released.watched_again(name) else {
            return NamespaceWatch::Unrecorded;
        };
        drop(state);
        if has_ended {
            watched_again.cancel();
        }
        NamespaceWatch::Released { watched_again }
    }

    /// Removes a namespace. Returns a [`Completion`] that is set when the store no longer has the
    /// namespace's objects.
    pub(crate) fn remove(&self, name: &str) -> Result<Completion, NamespaceError> {
        NamespaceError::check_name(name)?;
        Ok(match self.take_out(name) {
            Ok((member, work)) => self.end_member(&member, work),
            Err(gone) => gone,
        })
    }

    /// Removes a namespace from the set. Returns its [`Member`], and its reflector if the reflector
    /// still waits for its start.
    ///
    /// If the set does not contain the namespace, returns `Err` with a [`Completion`], which is set
    /// when the store has no objects of the namespace. If the informer has ended, the `Completion`
    /// is cancelled instead.
    fn take_out(&self, name: &str) -> Result<(Member<K>, Option<MemberTask<K>>), Completion> {
        let mut state = self.state.lock();
        state.leaving.retain(|_, leaving| !leaving.gone.has_synced());
        let Some((namespace, member)) = state.watched.remove_entry(name) else {
            if let Some(leaving) = state.leaving.get(name) {
                return Err(leaving.gone.clone());
            }
            let gone = Completion::new();
            if state.has_ended {
                gone.cancel();
            } else {
                gone.set();
            }
            return Err(gone);
        };
        state.released.insert(Arc::clone(&namespace));
        let id = member.feed.id();
        let work = state.waiting.extract_if(.., |work| work.feed.id() == id).next();
        // A reflector that was never started has added no objects. A new reflector of the namespace
        // then waits for the earlier removal for which this reflector waited, if there is one.
        let released =
            work.as_ref().map_or_else(|| Some(member.released.clone()), |work| work.starts_after.clone());
        if !state.has_ended {
            // After the informer's end, `gone` is never set, so the entry would never be removed.
            state.leaving.insert(namespace, Leaving { gone: member.feed.released(), released });
        }
        Ok((member, work))
    }

    /// Stops the reflector of a removed namespace: `work`, if it still waits for its start. Returns a
    /// [`Completion`] that is set when the store has no objects of the namespace.
    fn end_member(&self, member: &Member<K>, work: Option<MemberTask<K>>) -> Completion {
        member.removed.cancel();
        if work.is_some() {
            drop(work);
            member.feed.release();
        }
        self.publish();
        member.feed.released()
    }

    fn publish(&self) {
        // The set is read inside of `send_modify`, so that the last of several concurrent calls
        // publishes the newest set.
        self.members.send_modify(|members| {
            let state = self.state.lock();
            members.has_ended = state.has_ended;
            let statuses = state.watched.iter().map(|(namespace, member)| {
                let (status, synced) = (member.part.status.clone(), member.feed.synced());
                (Arc::clone(namespace), MemberStatus { feed: member.feed.id(), status, synced })
            });
            let statuses = statuses.collect();
            // `set` reads the statuses of reflectors, which have locks of their own.
            drop(state);
            members.set(statuses);
        });
    }

    /// Returns whether the watermark of each watched namespace is at least `resource_version`.
    /// `false` if no namespace is watched.
    pub(crate) fn have_reached(&self, watermarks: &Watermarks, resource_version: &ResourceVersion) -> bool {
        let state = self.state.lock();
        let has_reached = |(namespace, member): (&Arc<str>, &Member<K>)| {
            let reached = watermarks.of_feed(namespace, member.feed.id());
            reached.is_some_and(|reached| reached.is_at_least(resource_version))
        };
        !state.watched.is_empty() && state.watched.iter().all(has_reached)
    }

    pub(crate) fn access(&self, namespace: &str) -> Option<NamespaceAccess<K>> {
        self.state.lock().watched.get(namespace).map(|member| NamespaceAccess {
            lister_watcher: Arc::clone(&member.part.lister_watcher),
            watermark: member.reached.clone(),
            removed: member.removed.clone(),
        })
    }

    /// Sets the watermark of each namespace in `progress` that is still watched, and wakes the
    /// tasks that wait for it. Does nothing after [`end_watermarks`](Self::end_watermarks).
    pub(crate) fn set_watermarks(&self, progress: &[NamespaceProgress]) {
        let reached: Vec<_> = {
            let state = self.state.lock();
            let of_member = |progress: &NamespaceProgress| {
                let member =
                    state.watched.get(&progress.namespace).filter(|it| it.feed.id() == progress.feed)?;
                Some((member.watermark.clone()?, progress.reached.clone()?))
            };
            progress.iter().filter_map(of_member).collect()
        };
        // I8: waiters are woken without the lock.
        for (watermark, version) in reached {
            watermark.send_replace(version);
        }
    }

    /// Marks the informer as ended. Calls that wait until a namespace is added again then end
    /// (invariant I12 in ARCHITECTURE.md).
    fn end(&self) {
        let (never_run, completions) = {
            let mut state = self.state.lock();
            state.has_ended = true;
            (std::mem::take(&mut state.waiting), state.released.completions())
        };
        completions.iter().for_each(Completion::cancel);
        drop(never_run);
        self.publish();
    }

    /// Ends the calls that wait for the watermark of a namespace (I12). Call this after the last
    /// batch, because queued changes are still processed after the reflectors have ended.
    pub(crate) fn end_watermarks(&self) {
        let mut state = self.state.lock();
        let over: Vec<_> = state.watched.values_mut().map(|member| member.watermark.take()).collect();
        // I8: waiters are woken without the lock.
        drop(state);
        drop(over);
    }
}
