//! Reads a table's objects, at the current or an earlier resource version.
//!
//! A past state is computed by undoing the later events, newest first.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::error::ReadError;
use super::object::Object;
use super::revision::Revision;
use super::table::State;

/// Selects the state that a read of a table returns: the latest state, or the state at a resource
/// version.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    Latest,
    /// The state at this resource version. The read fails if the version is compacted.
    Exactly(u64),
    /// The state at this resource version, for a read from a watch cache. If the history begins
    /// later, the read returns the oldest available state instead of an error.
    Cached(u64),
}

pub(crate) struct PageRequest<'a> {
    /// The prefix of the storage keys to read: `namespace/`, or empty for all namespaces.
    pub(crate) scope: &'a str,
    pub(crate) selects: &'a dyn Fn(&Object) -> bool,
    pub(crate) at: At,
    /// The inclusive lower bound for the storage keys in the page. An object with exactly this key
    /// need not exist.
    pub(crate) start: &'a str,
    /// 0 means no limit.
    pub(crate) limit: usize,
}

/// A part of a list: objects in key order.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) resource_version: u64,
    /// How many objects in the requested [`scope`](PageRequest::scope) have a key after this page.
    /// Selectors do not change this number.
    pub(crate) remaining: usize,
}

/// For each key that has changed since the requested state: the object in that state, or `None` if
/// the key did not exist.
type PastObjects<'a> = BTreeMap<&'a str, Option<&'a Arc<Object>>>;

pub(super) fn page(state: &State, request: &PageRequest<'_>, revision: &Revision) -> Result<Page, ReadError> {
    let (undone, resource_version) = past_objects(state, request.at, revision)?;
    let mut page = Page { objects: Vec::new(), resource_version, remaining: 0 };
    let in_scope = |object: &&Arc<Object>| object.key.starts_with(request.scope);
    for object in in_key_order(state, &undone, request.start).take_while(in_scope) {
        if request.limit > 0 && page.objects.len() == request.limit {
            page.remaining += 1;
        } else if (request.selects)(object) {
            page.objects.push(object.clone());
        }
    }
    Ok(page)
}

/// Returns all objects in the state `at`, and the resource version of this state.
pub(super) fn everything(
    state: &State,
    at: At,
    revision: &Revision,
) -> Result<(Vec<Arc<Object>>, u64), ReadError> {
    let (undone, resource_version) = past_objects(state, at, revision)?;
    Ok((in_key_order(state, &undone, "").cloned().collect(), resource_version))
}

/// Returns the object in the state `at`, if the object existed in this state.
pub(super) fn object(
    state: &State,
    key: &str,
    at: At,
    revision: &Revision,
) -> Result<Option<Arc<Object>>, ReadError> {
    let (undone, _) = past_objects(state, at, revision)?;
    let now = || state.objects.get(key);
    Ok(undone.get(key).copied().unwrap_or_else(now).cloned())
}

/// Returns the [`PastObjects`] of the state that `at` selects, and the resource version of this
/// state.
fn past_objects<'a>(
    state: &'a State,
    at: At,
    revision: &Revision,
) -> Result<(PastObjects<'a>, u64), ReadError> {
    let version = match at {
        At::Latest => return Ok((PastObjects::new(), revision.current())),
        At::Exactly(version) if version < state.history.oldest_stored(revision.compacted()) => {
            return Err(ReadError::Compacted);
        }
        At::Exactly(version) => version,
        At::Cached(version) => version.max(state.history.reachable()),
    };
    let mut undone = PastObjects::new();
    for event in state.history.newest_first_after(version) {
        undone.insert(event.object.key.as_str(), event.previous.as_ref());
    }
    Ok((undone, version))
}

/// Iterates over the objects of the requested state in key order, from the start key.
fn in_key_order<'a>(
    state: &'a State,
    undone: &'a PastObjects<'a>,
    start: &'a str,
) -> impl Iterator<Item = &'a Arc<Object>> {
    let from = (Bound::Included(start), Bound::Unbounded);
    let mut unchanged = state
        .objects
        .range::<str, _>(from)
        .filter(|(key, _)| undone.is_empty() || !undone.contains_key(key.as_str()))
        .map(|(_, object)| object)
        .peekable();
    let mut restored = undone.range::<str, _>(from).filter_map(|(_, object)| *object).peekable();
    std::iter::from_fn(move || match (unchanged.peek(), restored.peek()) {
        (Some(left), Some(right)) if left.key > right.key => restored.next(),
        (Some(_), _) => unchanged.next(),
        (None, _) => restored.next(),
    })
}
