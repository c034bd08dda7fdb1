//! [`Feeds`]: the progress of the feeds of a queue. A feed is the input of the queue for one
//! namespace that has its own source. This code takes no lock and never waits.
//!
//! A queue with one source has no feeds. Each feed has its own initial list and its own resource
//! version. When its namespace is no longer watched, the feed is released: a removal of each object
//! of the namespace is queued. A feed has two [`Completion`]s, events for which tasks can wait. The
//! first is set when the initial list has been processed, and the second when the removals have
//! been processed.
//!
//! Only a batch that leaves no change in the queue reports new resource versions and released
//! feeds, because only then has the consumer taken all changes up to these versions. The
//! completions are set when this batch has been processed.
//!
//! A namespace that is added again while its removals are still queued gets a new feed. The changes
//! of the new feed are queued after these removals. When the removals have been processed, only the
//! old feed ends.

use std::sync::Arc;

use crate::{Completion, FeedId, NamespaceProgress, ObjectKey, ResourceVersion};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No part of the feed's initial list has been queued yet.
    Awaited,
    /// A part of the feed's initial list has arrived.
    Arriving,
    /// The feed's whole initial list has arrived.
    Complete,
    /// The feed is released: its namespace is no longer watched. The consumer has not yet removed
    /// the objects of the namespace.
    Released,
}

struct Feed {
    id: FeedId,
    namespace: Arc<str>,
    stage: Stage,
    /// Whether the queue's initial list includes the feed.
    is_initial: bool,
    /// Whether the queue's initial list can end without the feed, once another feed has been
    /// listed.
    is_optional: bool,
    newest: ResourceVersion,
    /// Whether a batch must still report to the consumer that the namespace has a new resource
    /// version, or that the namespace is no longer watched.
    has_progress: bool,
    synced: Completion,
    /// The [`Completion`]s to set when the namespace is no longer watched and the consumer has
    /// removed the namespace's objects. The first is the completion of this feed. If the namespace
    /// is added again, it gets another feed. If that feed ends before these objects are removed,
    /// its completion is added here.
    released: Vec<Completion>,
}

impl Feed {
    fn is_unlisted(&self) -> bool {
        matches!(self.stage, Stage::Awaited | Stage::Arriving)
    }
}

/// Two events of one namespace for which tasks can wait. The first: the consumer has processed the
/// initial list. The second: the namespace is no longer watched and the consumer has removed the
/// namespace's objects.
#[derive(Debug, Clone, Default)]
pub(super) struct FeedCompletions {
    /// Set when the feed's initial list has been processed.
    pub(super) synced: Completion,
    /// Set when the namespace is no longer watched and the consumer has removed the namespace's
    /// objects. If the namespace was added several times, this includes all earlier objects.
    pub(super) released: Completion,
}

impl FeedCompletions {
    pub(super) fn cancel(&self) {
        self.synced.cancel();
        self.released.cancel();
    }
}

/// The report of one batch about the namespaces that have their own source: new resource versions,
/// and namespaces that are no longer watched.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The minimum of the versions of all watched feeds; `None` if this minimum has been reported
    /// already. It is the empty version if a feed has no version, if two versions cannot be
    /// compared, or if no feed is watched.
    pub(super) minimum: Option<ResourceVersion>,
    pub(super) namespaces: Vec<NamespaceProgress>,
}

#[derive(Default)]
pub(super) struct Feeds {
    feeds: Vec<Feed>,
    next: u64,
    /// Whether [`start`](Self::start) has been called. Namespaces that are added afterwards do not
    /// belong to the queue's initial list.
    has_started: bool,
    /// The minimum that was reported last: the lowest resource version of all watched feeds. Empty
    /// before the first report.
    announced: ResourceVersion,
    /// Whether the next report must contain a resource version, even if it equals the version that
    /// was reported last (`announced`). This is the case after an item was requeued: the consumer's
    /// store has possibly not reached the version `announced`.
    is_revoked: bool,
    has_progress: bool,
    is_finished: bool,
}

impl Feeds {
    /// Returns whether there are no feeds. A feed is the queue's input for one namespace that has
    /// its own source.
    pub(super) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }

    /// Returns whether there is a change that no batch has reported yet, for example a new resource
    /// version of a namespace, or a namespace that is no longer watched.
    #[inline]
    pub(super) fn has_progress(&self) -> bool {
        self.has_progress
    }

    /// Adds a feed: the queue's input for one namespace. Returns the feed's ID and two events for
    /// which tasks can wait. If [`end`](Self::end) has been called, every wait for them fails.
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
        // Until this feed has been listed, there is no minimum version. The next batch reports this.
        self.has_progress |= self.is_revoked || !self.announced.is_empty();
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

    /// Returns whether a list of this feed that arrives now is the feed's initial list.
    pub(super) fn is_first_list(&self, id: FeedId) -> bool {
        self.get(id).is_some_and(Feed::is_unlisted)
    }

    /// Returns whether the initial list of this feed's namespace is part of the queue's initial
    /// list.
    pub(super) fn is_initial(&self, id: FeedId) -> bool {
        self.get(id).is_some_and(|feed| feed.is_initial)
    }

    /// Records that all namespaces of the queue's initial list have been added. Namespaces that are
    /// added later do not belong to that list.
    pub(super) fn start(&mut self) {
        self.has_started = true;
    }

    /// Makes a feed optional for the queue's initial list. Returns `true` if the initial list
    /// includes the feed, the feed has not been listed, and the feed was not optional before.
    /// Otherwise the call has no effect.
    pub(super) fn make_optional(&mut self, id: FeedId) -> bool {
        let missing = self.get_mut(id).filter(|feed| feed.is_initial && feed.is_unlisted());
        missing.is_some_and(|feed| !std::mem::replace(&mut feed.is_optional, true))
    }

    /// Returns whether the queue's initial list has arrived. That list consists of the initial
    /// lists of the watched namespaces that were added before [`start`](Self::start). Once one of
    /// these lists has arrived, those of [optional](Self::make_optional) namespaces can be missing.
    pub(super) fn has_initial_list(&self) -> bool {
        let mut missing = self.feeds.iter().filter(|feed| feed.is_initial && feed.is_unlisted()).peekable();
        let is_complete = missing.peek().is_none();
        let has_listed = |feed: &Feed| feed.is_initial && feed.stage == Stage::Complete;
        self.has_started
            && (is_complete || missing.all(|feed| feed.is_optional) && self.feeds.iter().any(has_listed))
    }

    /// Ends the queue's initial list without the namespaces whose own initial list is not complete.
    pub(super) fn end_initial_list(&mut self) {
        for feed in self.feeds.iter_mut().filter(|feed| feed.is_unlisted()) {
            feed.is_initial = false;
        }
    }

    /// Records that a part of a feed's initial list has arrived.
    pub(super) fn begin_list(&mut self, id: FeedId) {
        if let Some(feed) = self.get_mut(id).filter(|feed| feed.stage == Stage::Awaited) {
            feed.stage = Stage::Arriving;
        }
    }

    /// Returns whether the initial list of the key's namespace has begun and not ended.
    pub(super) fn is_arriving(&self, key: &ObjectKey) -> bool {
        let is_its = |feed: &Feed| feed.stage == Stage::Arriving && key.namespace() == Some(&*feed.namespace);
        self.feeds.iter().any(is_its)
    }

    /// Records that a list of this feed has ended.
    pub(super) fn end_list(&mut self, id: FeedId, resource_version: &ResourceVersion) {
        if let Some(feed) = self.get_mut(id) {
            feed.stage = Stage::Complete;
            feed.newest = resource_version.clone();
            feed.has_progress = true;
            self.has_progress = true;
        }
    }

    /// Records `resource_version` as the version that the feed has after its last queued change. An
    /// empty version changes nothing.
    pub(super) fn advance(&mut self, id: FeedId, resource_version: &ResourceVersion) {
        if let Some(feed) = self.get_mut(id).filter(|_| !resource_version.is_empty()) {
            feed.newest = resource_version.clone();
            feed.has_progress = true;
            self.has_progress = true;
        }
    }

    /// Releases a feed, because its namespace is no longer watched. `has_objects` means that the
    /// queue or the consumer's store has objects of the namespace.
    ///
    /// Returns `None` if the consumer must process the release, or if there is no such feed.
    /// Otherwise removes the feed at once, and returns the completions of the release that the
    /// caller must set.
    pub(super) fn release(&mut self, id: FeedId, has_objects: bool) -> Option<Vec<Completion>> {
        let position = self.feeds.iter().position(|feed| feed.id == id)?;
        // Without this feed, the minimum version can be different. The next batch reports it.
        self.has_progress = true;
        if has_objects || self.feeds[position].stage != Stage::Awaited {
            // `processed` removes the feed when the consumer has removed the objects.
            let feed = &mut self.feeds[position];
            feed.stage = Stage::Released;
            feed.has_progress = true;
            return None;
        }
        // If the consumer must still remove the objects of an earlier feed of the namespace, that
        // feed gets the completion, and the returned list is empty.
        let removed = self.feeds.remove(position);
        let before = self.feeds[..position].iter_mut().rfind(|feed| feed.namespace == removed.namespace);
        let Some(before) = before else { return Some(removed.released) };
        before.released.extend(removed.released);
        Some(Vec::new())
    }

    /// Returns the lowest resource version of all watched feeds. Empty if no feed is watched, if a
    /// feed has no version, or if two versions cannot be compared.
    fn minimum(&self) -> ResourceVersion {
        let mut watched = self.feeds.iter().filter(|feed| feed.stage != Stage::Released);
        let Some(first) = watched.next() else { return ResourceVersion::empty() };
        let minimum = watched.try_fold(&first.newest, |minimum, feed| {
            minimum.compare(&feed.newest).map(|order| if order.is_gt() { &feed.newest } else { minimum })
        });
        minimum.cloned().unwrap_or_default()
    }

    /// Returns the changes that no batch has reported yet, and marks them as reported: new resource
    /// versions, and namespaces that are no longer watched. Call this for a batch that leaves no
    /// change in the queue.
    pub(super) fn take_progress(&mut self) -> Progress {
        if !std::mem::take(&mut self.has_progress) {
            return Progress::default();
        }
        let minimum = self.minimum();
        let is_new = std::mem::take(&mut self.is_revoked) || self.announced != minimum;
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

    /// Marks all resource versions, and all namespaces that are no longer watched, as not reported
    /// to the consumer, because an item was requeued. The next batch that leaves no change in the
    /// queue reports them again.
    pub(super) fn revoke_progress(&mut self) {
        for feed in &mut self.feeds {
            feed.has_progress = matches!(feed.stage, Stage::Complete | Stage::Released);
            self.has_progress = true;
            self.is_revoked = true;
        }
    }

    /// Records that the consumer has processed a batch. `namespaces` is what the batch has
    /// reported: new resource versions, and namespaces that are no longer watched. Removes the
    /// feeds of the latter. Returns the completions that the caller must set while the queue is not
    /// locked. Each means that the initial list of a namespace has been processed, or its objects
    /// removed.
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

    /// Ends all feeds. Returns the completions that the caller must cancel while the queue is not
    /// locked.
    pub(super) fn end(&mut self) -> Vec<Completion> {
        self.is_finished = true;
        self.feeds.iter().flat_map(|feed| feed.released.iter().chain([&feed.synced])).cloned().collect()
    }
}
