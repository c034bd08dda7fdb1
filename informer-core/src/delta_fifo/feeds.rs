//! [`Feeds`]: the namespaces that a queue is fed from one by one, and how far each has come. No lock, no waiting.
//!
//! A queue that is fed as a whole has none. Each feed has its own first list, its own version, and two promises: that
//! what it has listed is processed, and, once it is released, that nothing is left of it. Both are kept with the batch
//! that brings the news of it, because that batch comes behind all of its changes.
//!
//! A namespace that is added again while it is being released is another feed: the old one's tombstones come first, and
//! what it may still have to say concerns it alone.

use std::sync::Arc;

use crate::{Completion, FeedId, FeedNews, ObjectKey, ResourceVersion};

/// How far a feed has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing has come yet.
    Awaited,
    /// Part of its first list has come.
    Arriving,
    /// Its first list has come.
    Complete,
    /// It is released, and somebody has to be told.
    Released,
}

/// A namespace on its way.
struct Feed {
    id: FeedId,
    namespace: Arc<str>,
    stage: Stage,
    /// Whether the queue's first list is not complete without it.
    is_of_start: bool,
    /// Whether that is only so as long as no other has listed.
    is_optional: bool,
    newest: ResourceVersion,
    /// Whether there is something that the consumer has not been told of it.
    is_news: bool,
    synced: Completion,
    /// To be kept when nothing is left of it: its own, and those of later feeds of its namespace that brought nothing.
    released: Vec<Completion>,
}

impl Feed {
    fn is_unlisted(&self) -> bool {
        matches!(self.stage, Stage::Awaited | Stage::Arriving)
    }
}

/// What can be awaited of a feed.
#[derive(Debug, Clone, Default)]
pub(super) struct Promises {
    /// Its first list has been processed.
    pub(super) synced: Completion,
    /// It has been released, that has been processed, and so have those of earlier feeds of its namespace.
    pub(super) released: Completion,
}

impl Promises {
    pub(super) fn give_up(&self) {
        self.synced.give_up();
        self.released.give_up();
    }
}

/// What the consumer is told together with the changes after which it is true.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The least of all versions, if that has changed; empty if there is none.
    pub(super) least: Option<ResourceVersion>,
    pub(super) of_feeds: Vec<FeedNews>,
}

#[derive(Default)]
pub(super) struct Feeds {
    feeds: Vec<Feed>,
    next: u64,
    /// Those that are added from here on are not part of the first list.
    has_started: bool,
    /// The least version that the consumer was told of last,
    announced: ResourceVersion,
    /// and whether that was taken back.
    is_taken_back: bool,
    has_news: bool,
    is_over: bool,
}

impl Feeds {
    /// Returns whether there are none, because all comes as one.
    pub(super) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }

    /// Returns whether there is something to tell.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Adds a feed; its promises are given up already if nobody will process what it brings.
    pub(super) fn add(&mut self, namespace: Arc<str>) -> (FeedId, Promises) {
        let (id, promises) = (FeedId(self.next), Promises::default());
        self.next += 1;
        if self.is_over {
            promises.give_up();
            return (id, promises);
        }
        self.feeds.push(Feed {
            id,
            namespace,
            stage: Stage::Awaited,
            is_of_start: !self.has_started,
            is_optional: false,
            newest: ResourceVersion::empty(),
            is_news: false,
            synced: promises.synced.clone(),
            released: vec![promises.released.clone()],
        });
        // Without this one, what there is is not the whole any more.
        self.has_news |= self.is_taken_back || !self.announced.is_empty();
        (id, promises)
    }

    fn get(&self, id: FeedId) -> Option<&Feed> {
        self.feeds.iter().find(|feed| feed.id == id && feed.stage != Stage::Released)
    }

    fn get_mut(&mut self, id: FeedId) -> Option<&mut Feed> {
        self.feeds.iter_mut().find(|feed| feed.id == id && feed.stage != Stage::Released)
    }

    pub(super) fn is_followed(&self, id: FeedId) -> bool {
        self.get(id).is_some()
    }

    /// Returns whether what a list of this feed brings is of its first one.
    pub(super) fn is_first_list(&self, id: FeedId) -> bool {
        self.get(id).is_some_and(Feed::is_unlisted)
    }

    /// Returns whether the queue's first list is not complete without this feed's.
    pub(super) fn is_of_start(&self, id: FeedId) -> bool {
        self.get(id).is_some_and(|feed| feed.is_of_start)
    }

    /// From here on it is known which feeds make up the queue's first list.
    pub(super) fn start(&mut self) {
        self.has_started = true;
    }

    /// Makes a feed optional for the queue's first list. Returns whether the feed is part of it and has not listed.
    pub(super) fn make_optional(&mut self, id: FeedId) -> bool {
        let missing = self.get_mut(id).filter(|feed| feed.is_of_start && feed.is_unlisted());
        missing.is_some_and(|feed| !std::mem::replace(&mut feed.is_optional, true))
    }

    /// Returns whether the queue's first list is complete. An optional feed may be missing, unless all are.
    pub(super) fn has_start_arrived(&self) -> bool {
        let mut missing = self.feeds.iter().filter(|feed| feed.is_of_start && feed.is_unlisted()).peekable();
        let is_complete = missing.peek().is_none();
        let has_listed = |feed: &Feed| feed.is_of_start && feed.stage == Stage::Complete;
        self.has_started
            && (is_complete || missing.all(|feed| feed.is_optional) && self.feeds.iter().any(has_listed))
    }

    /// The queue's first list is complete: what has not listed by now is not part of it.
    pub(super) fn end_start(&mut self) {
        for feed in self.feeds.iter_mut().filter(|feed| feed.is_unlisted()) {
            feed.is_of_start = false;
        }
    }

    /// Part of a feed's first list has come.
    pub(super) fn arriving(&mut self, id: FeedId) {
        if let Some(feed) = self.get_mut(id).filter(|feed| feed.stage == Stage::Awaited) {
            feed.stage = Stage::Arriving;
        }
    }

    /// Returns whether this object may be of a first list that has not come to its end.
    pub(super) fn is_arriving(&self, key: &ObjectKey) -> bool {
        let is_its = |feed: &Feed| feed.stage == Stage::Arriving && key.namespace() == Some(&*feed.namespace);
        self.feeds.iter().any(is_its)
    }

    /// A list of this feed has come to its end.
    pub(super) fn listed(&mut self, id: FeedId, resource_version: &ResourceVersion) {
        if let Some(feed) = self.get_mut(id) {
            feed.stage = Stage::Complete;
            feed.newest = resource_version.clone();
            feed.is_news = true;
            self.has_news = true;
        }
    }

    /// Changes of this feed lead to this version; an empty one says nothing.
    pub(super) fn advance(&mut self, id: FeedId, resource_version: &ResourceVersion) {
        if let Some(feed) = self.get_mut(id).filter(|_| !resource_version.is_empty()) {
            feed.newest = resource_version.clone();
            feed.is_news = true;
            self.has_news = true;
        }
    }

    /// Releases a feed. If nothing of it has ever come, it is gone at once: returns the promises that are kept with that.
    /// Where an earlier feed of the namespace is not gone yet, they are kept with it, and none is returned.
    pub(super) fn release(&mut self, id: FeedId) -> Option<Vec<Completion>> {
        let position = self.feeds.iter().position(|feed| feed.id == id)?;
        // Without it, the least may be another.
        self.has_news = true;
        if self.feeds[position].stage != Stage::Awaited {
            let feed = &mut self.feeds[position];
            feed.stage = Stage::Released;
            feed.is_news = true;
            return None;
        }
        let gone = self.feeds.remove(position);
        let before = self.feeds[..position].iter_mut().rfind(|feed| feed.namespace == gone.namespace);
        let Some(before) = before else { return Some(gone.released) };
        before.released.extend(gone.released);
        Some(Vec::new())
    }

    /// The version up to which the consumer has everything, whatever the namespace; empty if there is none.
    fn least(&self) -> ResourceVersion {
        let mut followed = self.feeds.iter().filter(|feed| feed.stage != Stage::Released);
        let Some(first) = followed.next() else { return ResourceVersion::empty() };
        let least = followed.try_fold(&first.newest, |least, feed| {
            least.compare(&feed.newest).map(|order| if order.is_gt() { &feed.newest } else { least })
        });
        least.cloned().unwrap_or_default()
    }

    /// Returns what is to be told, to be called where nothing is queued any more.
    pub(super) fn take_news(&mut self) -> News {
        if !std::mem::take(&mut self.has_news) {
            return News::default();
        }
        let least = self.least();
        let is_new = std::mem::take(&mut self.is_taken_back) || self.announced != least;
        self.announced.clone_from(&least);
        let of_feeds = self.feeds.iter().filter(|feed| feed.is_news).map(|feed| FeedNews {
            feed: feed.id,
            namespace: Arc::clone(&feed.namespace),
            reached: (feed.stage != Stage::Released).then(|| feed.newest.clone()),
        });
        let of_feeds = of_feeds.collect();
        self.feeds.iter_mut().for_each(|feed| feed.is_news = false);
        News { of_feeds, least: is_new.then_some(least) }
    }

    /// Something has been put back, so that what was told since is not true.
    pub(super) fn tell_again(&mut self) {
        for feed in &mut self.feeds {
            feed.is_news = matches!(feed.stage, Stage::Complete | Stage::Released);
            self.has_news = true;
            self.is_taken_back = true;
        }
    }

    /// What was told is true now. Returns the promises that are to be kept when the queue is not locked.
    pub(super) fn processed(&mut self, news: &[FeedNews]) -> Vec<Completion> {
        let mut kept = Vec::new();
        for news in news {
            let Some(position) = self.feeds.iter().position(|feed| feed.id == news.feed) else { continue };
            if news.reached.is_none() {
                kept.extend(self.feeds.remove(position).released);
            } else if !self.feeds[position].synced.has_synced() {
                kept.push(self.feeds[position].synced.clone());
            }
        }
        kept
    }

    /// Nothing will be processed any more. Returns what is to be given up when the queue is not locked.
    pub(super) fn end(&mut self) -> Vec<Completion> {
        self.is_over = true;
        self.feeds.iter().flat_map(|feed| feed.released.iter().chain([&feed.synced])).cloned().collect()
    }
}
