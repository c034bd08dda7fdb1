//! [`Feeds`]: the namespaces of a queue that are listed and watched separately. A feed is the
//! queue's input for one namespace. This code takes no lock and never waits.
//!
//! When a namespace is no longer watched, its feed is released: a removal of each object is queued.
//! If the namespace is added again, it gets a new feed.
//!
//! [`Progress`] is the report of a batch to the consumer: new resource versions of namespaces, and
//! namespaces whose objects have all been removed. The minimum is the lowest resource version of
//! all watched namespaces. Only a batch that empties the queue reports progress.
//!
//! The queue's initial list consists of the initial lists of the namespaces that were added before
//! [`Feeds::start`]. It can end before an optional namespace has been listed.

use std::sync::Arc;

use crate::{Completion, FeedId, NamespaceProgress, ObjectKey, ResourceVersion};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Neither a part of the initial list nor a change has arrived from this namespace yet. If the
    /// queue has no store, parts do not count.
    Awaited,
    /// A first part of the initial list, or a change, has arrived from this namespace. The initial
    /// list has not ended yet.
    Arriving,
    /// The whole initial list of the namespace has arrived.
    Complete,
    /// The namespace is no longer watched, but the consumer has not removed its objects yet.
    Released,
}

/// A namespace that is listed and watched separately.
struct Feed {
    id: FeedId,
    namespace: Arc<str>,
    stage: Stage,
    /// Whether the initial list of this namespace is a part of the queue's initial list. The queue
    /// is synced when the consumer has processed all parts.
    is_initial: bool,
    /// Whether the queue's initial list can end without this namespace's part.
    is_optional: bool,
    newest: ResourceVersion,
    /// Whether the next [`Progress`] must contain this namespace, because the namespace has a new
    /// resource version, has been released, or must be reported again.
    has_progress: bool,
    synced: Completion,
    /// The completions to set when the consumer has removed the objects of this feed.
    ///
    /// At first, the list contains only this feed's own [`FeedCompletions::released`]. If a later
    /// feed of the same namespace is released before it has received any input, the completion of
    /// the later feed is added.
    released: Vec<Completion>,
}

impl Feed {
    fn is_unlisted(&self) -> bool {
        matches!(self.stage, Stage::Awaited | Stage::Arriving)
    }
}

/// The events of one feed for which tasks can wait: the namespace's initial list has been
/// processed, and the objects of the released feed have been removed.
#[derive(Debug, Clone, Default)]
pub(super) struct FeedCompletions {
    /// Set when the consumer has processed the namespace's initial list.
    pub(super) synced: Completion,
    /// Set when this feed has been released, and the consumer has removed the objects of this feed
    /// and of earlier feeds of the namespace.
    pub(super) released: Completion,
}

impl FeedCompletions {
    pub(super) fn cancel(&self) {
        self.synced.cancel();
        self.released.cancel();
    }
}

/// The progress that one batch reports to the consumer.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The lowest resource version of all watched namespaces ([`Feeds::minimum`]). `None` if the
    /// consumer already has this value.
    pub(super) minimum: Option<ResourceVersion>,
    /// The namespaces with a resource version that is new or must be reported again, and the
    /// removed namespaces whose objects have all been removed.
    pub(super) namespaces: Vec<NamespaceProgress>,
}

/// The namespaces of a queue that are listed and watched separately.
#[derive(Default)]
pub(super) struct Feeds {
    feeds: Vec<Feed>,
    next: u64,
    has_started: bool,
    /// The minimum ([`Feeds::minimum`]) that was last reported to the consumer. Empty before the
    /// first report.
    announced: ResourceVersion,
    /// Whether the next [`Progress`] contains the minimum even if it equals `announced`. Set when
    /// the consumer requeues an item, because the consumer then ignores the last report.
    must_report_minimum: bool,
    has_progress: bool,
    is_finished: bool,
}

impl Feeds {
    pub(super) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }

    /// Returns whether there is progress that no batch has reported yet, for example a new resource
    /// version of a namespace.
    #[inline]
    pub(super) fn has_progress(&self) -> bool {
        self.has_progress
    }

    /// Adds a feed for a namespace. Returns the feed's ID and the feed's completions, `synced` and
    /// `released`.
    ///
    /// After a call of [`end`](Self::end), adds no feed and returns cancelled completions.
    pub(super) fn add(&mut self, namespace: Arc<str>) -> (FeedId, FeedCompletions) {
        let (id, completions) = (FeedId(self.next), FeedCompletions::default());
        self.next += 1;
        if self.is_finished {
            completions.cancel();
            return (id, completions);
        }
        self.feeds.push(Feed {
            id,
            namespace,
            stage: Stage::Awaited,
            is_initial: !self.has_started,
            is_optional: false,
            newest: ResourceVersion::empty(),
            has_progress: false,
            synced: completions.synced.clone(),
            released: vec![completions.released.clone()],
        });
        // Until this feed is listed, there is no minimum version. The next batch reports this.
        self.has_progress |= self.must_report_minimum || !self.announced.is_empty();
        (id, completions)
    }

    fn get(&self, id: FeedId) -> Option<&Feed> {
        self.feeds.iter().find(|feed| feed.id == id && feed.stage != Stage::Released)
    }

    fn get_mut(&mut self, id: FeedId) -> Option<&mut Feed> {
        self.feeds.iter_mut().find(|feed| feed.id == id && feed.stage != Stage::Released)
    }

    pub(super) fn is_watched(&self, id: FeedId) -> bool {
        self.get(id).is_some()
    }

    /// Returns `true` until the whole initial list of this feed has arrived. Returns `false`
    /// afterwards, and if the namespace is no longer watched.
    pub(super) fn is_first_list(&self, id: FeedId) -> bool {
        self.get(id).is_some_and(Feed::is_unlisted)
    }

    /// Returns whether this namespace is watched and its initial list belongs to the queue's
    /// initial list.
    pub(super) fn is_initial(&self, id: FeedId) -> bool {
        self.get(id).is_some_and(|feed| feed.is_initial)
    }

    /// Records that all namespaces of the queue's initial list have been [added](Self::add). A
    /// queue with feeds is not synced before this call.
    pub(super) fn start(&mut self) {
        self.has_started = true;
    }

    /// Makes this namespace optional: the queue can be synced before this namespace is listed.
    ///
    /// Returns `true` if the queue's initial list could not end without this namespace until now.
    /// Changes nothing and returns `false` if the namespace is optional already, has been listed,
    /// is no longer watched, or does not belong to the queue's initial list.
    pub(super) fn make_optional(&mut self, id: FeedId) -> bool {
        let missing = self.get_mut(id).filter(|feed| feed.is_initial && feed.is_unlisted());
        missing.is_some_and(|feed| !std::mem::replace(&mut feed.is_optional, true))
    }

    /// Returns whether the queue's initial list can end. Before [`start`](Self::start), always
    /// `false`. After that call, `true` in two cases:
    ///
    /// - Each watched namespace of the queue's initial list has been listed.
    /// - At least one of these namespaces has been listed, and each unlisted one is
    ///   [optional](Self::make_optional).
    pub(super) fn has_initial_list(&self) -> bool {
        let mut missing = self.feeds.iter().filter(|feed| feed.is_initial && feed.is_unlisted()).peekable();
        let is_complete = missing.peek().is_none();
        let has_listed = |feed: &Feed| feed.is_initial && feed.stage == Stage::Complete;
        self.has_started
            && (is_complete || missing.all(|feed| feed.is_optional) && self.feeds.iter().any(has_listed))
    }

    /// Records that the queue's initial list has ended. If a namespace has not been listed
    /// completely, its later objects do not belong to the queue's initial list.
    pub(super) fn end_initial_list(&mut self) {
        for feed in self.feeds.iter_mut().filter(|feed| feed.is_unlisted()) {
            feed.is_initial = false;
        }
    }

    /// Records that the first input of this feed has arrived: a part of a list, or a change. Later
    /// calls change nothing.
    pub(super) fn record_input(&mut self, id: FeedId) {
        if let Some(feed) = self.get_mut(id).filter(|feed| feed.stage == Stage::Awaited) {
            feed.stage = Stage::Arriving;
        }
    }

    /// Returns whether something has arrived through the feed of the key's namespace, but no whole
    /// list.
    pub(super) fn is_arriving(&self, key: &ObjectKey) -> bool {
        let is_its = |feed: &Feed| feed.stage == Stage::Arriving && key.namespace() == Some(&*feed.namespace);
        self.feeds.iter().any(is_its)
    }

    /// Records that a whole list of this namespace has arrived, with this resource version.
    pub(super) fn end_list(&mut self, id: FeedId, resource_version: &ResourceVersion) {
        if let Some(feed) = self.get_mut(id) {
            feed.stage = Stage::Complete;
            feed.newest = resource_version.clone();
            feed.has_progress = true;
            self.has_progress = true;
        }
    }

    /// Sets the newest resource version of this namespace, which the next [`Progress`] reports.
    /// Does nothing before the first whole list, or if `resource_version` is empty.
    pub(super) fn advance(&mut self, id: FeedId, resource_version: &ResourceVersion) {
        let feed = self.get_mut(id).filter(|feed| feed.stage == Stage::Complete);
        if let Some(feed) = feed.filter(|_| !resource_version.is_empty()) {
            feed.newest = resource_version.clone();
            feed.has_progress = true;
            self.has_progress = true;
        }
    }

    /// Records that the namespace of this feed is no longer watched.
    ///
    /// - If the feed has received neither a list nor a change, deletes the feed. Returns the feed's
    ///   `released` completions, which the caller must set now. If there is an earlier feed of this
    ///   namespace, the completions move to the earlier feed, and the returned list is empty.
    /// - If the feed has received a list or a change, returns `None`. The caller must then queue a
    ///   removal of each object of the namespace.
    pub(super) fn release(&mut self, id: FeedId) -> Option<Vec<Completion>> {
        let position = self.feeds.iter().position(|feed| feed.id == id)?;
        // Without this feed, the minimum version can be different. The next batch reports it.
        self.has_progress = true;
        if self.feeds[position].stage != Stage::Awaited {
            // `processed` removes the feed when the consumer has removed the objects.
            let feed = &mut self.feeds[position];
            feed.stage = Stage::Released;
            feed.has_progress = true;
            return None;
        }
        let removed = self.feeds.remove(position);
        let before = self.feeds[..position].iter_mut().rfind(|feed| feed.namespace == removed.namespace);
        let Some(before) = before else { return Some(removed.released) };
        before.released.extend(removed.released);
        Some(Vec::new())
    }

    /// Returns the lowest resource version of all watched namespaces. Returns an empty version if
    /// the lowest one is unknown, or if no namespace is watched.
    fn minimum(&self) -> ResourceVersion {
        let mut watched = self.feeds.iter().filter(|feed| feed.stage != Stage::Released);
        let Some(first) = watched.next() else { return ResourceVersion::empty() };
        let minimum = watched.try_fold(&first.newest, |minimum, feed| {
            minimum.compare(&feed.newest).map(|order| if order.is_gt() { &feed.newest } else { minimum })
        });
        minimum.cloned().unwrap_or_default()
    }

    /// Returns the progress that no batch has reported to the consumer yet, and marks it as
    /// reported. Call this only for a batch that empties the queue.
    pub(super) fn take_progress(&mut self) -> Progress {
        if !std::mem::take(&mut self.has_progress) {
            return Progress::default();
        }
        let minimum = self.minimum();
        let is_new = std::mem::take(&mut self.must_report_minimum) || self.announced != minimum;
        self.announced.clone_from(&minimum);
        let namespaces = self.feeds.iter().filter(|feed| feed.has_progress).map(|feed| NamespaceProgress {
            feed: feed.id,
            namespace: Arc::clone(&feed.namespace),
            reached: (feed.stage != Stage::Released).then(|| feed.newest.clone()),
        });
        let namespaces = namespaces.collect();
        self.feeds.iter_mut().for_each(|feed| feed.has_progress = false);
        Progress { namespaces, minimum: is_new.then_some(minimum) }
    }

    /// Marks all progress as not reported. Call this when the consumer requeues an item: the report
    /// of its batch is then wrong.
    pub(super) fn revoke_progress(&mut self) {
        for feed in &mut self.feeds {
            feed.has_progress = matches!(feed.stage, Stage::Complete | Stage::Released);
            self.has_progress = true;
            self.must_report_minimum = true;
        }
    }

    /// Records that the consumer has processed a batch that reported `namespaces`. Returns the
    /// completions that the caller must set while the queue is not locked.
    pub(super) fn processed(&mut self, namespaces: &[NamespaceProgress]) -> Vec<Completion> {
        let mut completed = Vec::new();
        for progress in namespaces {
            let Some(position) = self.feeds.iter().position(|feed| feed.id == progress.feed) else {
                continue;
            };
            if progress.reached.is_none() {
                completed.extend(self.feeds.remove(position).released);
            } else if !self.feeds[position].synced.has_synced() {
                completed.push(self.feeds[position].synced.clone());
            }
        }
        completed
    }

    /// Records that the queue has ended: it is closed and has no batch to process, or was abandoned
    /// or dropped. Returns the completions that the caller must cancel while the queue is not
    /// locked.
    pub(super) fn end(&mut self) -> Vec<Completion> {
        self.is_finished = true;
        self.feeds.iter().flat_map(|feed| feed.released.iter().chain([&feed.synced])).cloned().collect()
    }
}
