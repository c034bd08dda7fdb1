//! The state of a source: objects, history and request counters. It has no lock and never waits.

use std::collections::{BTreeMap, VecDeque};

use informer_core::{
    Cached, ListOptions, ListWatchError, ObjectKey, ResourceVersion, ResourceVersionMatch, WatchOptions,
};

use super::log::{Entry, Log, ReaderId};
use http::StatusCode;

use super::refusal::{self, Refusal};

/// The version of a new source. It is not `0`, because a request with the version `0` accepts any
/// version.
const FIRST_VERSION: u64 = 1;

pub(super) struct State<K> {
    pub(super) objects: BTreeMap<ObjectKey, Cached<K>>,
    pub(super) log: Log<K>,
    version: u64,
    /// The oldest resource version from which a watch can start.
    floor: u64,
    /// The errors with which the next lists are refused, streaming or not.
    pub(super) list_errors: VecDeque<ListWatchError>,
    pub(super) lists: usize,
    pub(super) watches: usize,
}

pub(super) struct Listed<K> {
    pub(super) objects: Vec<Cached<K>>,
    pub(super) version: u64,
}

pub(super) struct Opened<K> {
    pub(super) reader: ReaderId,
    /// The objects that the watch sends first; `None` if the watch sends only changes.
    pub(super) initial: Option<Listed<K>>,
}

impl<K> State<K> {
    pub(super) fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            log: Log::new(),
            version: FIRST_VERSION,
            floor: FIRST_VERSION,
            list_errors: VecDeque::new(),
            lists: 0,
            watches: 0,
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Makes the current version the oldest one from which a new watch can start. Removes and
    /// returns the entries of the log that no open watch needs.
    pub(super) fn expire(&mut self) -> Vec<Entry<K>> {
        self.floor = self.version;
        self.log.trim()
    }

    pub(super) fn list(&mut self, options: &ListOptions) -> Result<Listed<K>, ListWatchError> {
        self.lists += 1;
        if let Some(error) = self.list_errors.pop_front() {
            return Err(error);
        }
        if options.continue_token.is_some() {
            return Err(refusal::expired("The provided continue parameter is too old").into());
        }
        let wanted = options.resource_version.as_ref().map_or(Ok(0), parse)?;
        // With a limit and without `resourceVersionMatch`, a version means exactly that version.
        let exactly = match options.resource_version_match {
            Some(how) => how == ResourceVersionMatch::Exact,
            None => options.limit.is_some(),
        };
        self.check_reached(wanted)?;
        if exactly && wanted != 0 && wanted < self.version {
            let message = format!("too old resource version: {wanted} ({})", self.version);
            return Err(refusal::expired(&message).into());
        }
        Ok(self.everything())
    }

    pub(super) fn watch(&mut self, options: &WatchOptions) -> Result<Opened<K>, ListWatchError> {
        self.watches += 1;
        if options.send_initial_events
            && let Some(error) = self.list_errors.pop_front()
        {
            return Err(error);
        }
        let from = parse(&options.resource_version)?;
        if from == 0 || options.send_initial_events {
            self.check_reached(from)?;
            let reader = self.log.open_after(self.version, options.allow_bookmarks);
            return Ok(Opened { reader, initial: Some(self.everything()) });
        }
        if from < self.floor {
            let message = format!("too old resource version: {from} ({})", self.floor);
            return Err(refusal::expired(&message).into());
        }
        Ok(Opened { reader: self.log.open_after(from, options.allow_bookmarks), initial: None })
    }

    fn check_reached(&self, wanted: u64) -> Result<(), Refusal> {
        if wanted > self.version {
            return Err(refusal::too_large_resource_version(wanted, self.version));
        }
        Ok(())
    }

    fn everything(&self) -> Listed<K> {
        Listed { objects: self.objects.values().cloned().collect(), version: self.version }
    }
}

/// Parses a version. An empty version is `0`, which means any version.
fn parse(version: &ResourceVersion) -> Result<u64, Refusal> {
    if version.is_empty() {
        return Ok(0);
    }
    let text = version.to_string();
    text.parse().map_err(|_| {
        let message = format!("invalid resource version {text:?}: not a number");
        refusal::failure(StatusCode::BAD_REQUEST, "BadRequest", &message)
    })
}
