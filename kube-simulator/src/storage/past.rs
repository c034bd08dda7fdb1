//! Pages of a table, now or at an earlier resource version.
//!
//! The past is computed, not kept: undoing the later events, newest first, leaves for each touched key the version
//! that was current at the wanted resource version. All other keys are as they are now.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::revision::Revision;
use super::table::State;
use crate::object::Object;
use crate::selector::Filter;
use crate::status::{self, Refusal};

/// The state that a page is taken from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    Latest,
    /// The state at exactly this resource version.
    Exactly(u64),
    /// The same from the memory of an API server, which does not ask whether the version has been compacted. Where
    /// the history does not reach back so far, it is the oldest state that there is.
    Cached(u64),
}

/// What a page should hold.
#[derive(Debug)]
pub(crate) struct PageRequest<'a> {
    pub(crate) filter: &'a Filter,
    pub(crate) at: At,
    /// The first storage key to consider, relative to nothing: a whole key, or the namespace's prefix.
    pub(crate) start: &'a str,
    /// The largest number of objects, 0 for all.
    pub(crate) limit: usize,
}

/// Some objects in key order.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Object>>,
    /// The resource version at which the page is the truth.
    pub(crate) resource_version: u64,
    /// How many keys in scope come after the page, whether or not they match the selectors.
    pub(crate) remaining: usize,
}

/// The objects as they were: a version for each key that has changed since, none if it did not exist.
type Undone<'a> = BTreeMap<&'a str, Option<&'a Arc<Object>>>;

pub(super) fn page(state: &State, request: &PageRequest<'_>, revision: &Revision) -> Result<Page, Refusal> {
    let (undone, resource_version) = undo(state, request.at, revision)?;
    let mut page = Page { objects: Vec::new(), resource_version, remaining: 0 };
    let in_scope = |object: &&Arc<Object>| request.filter.in_namespace(object);
    for object in in_key_order(state, &undone, request.start).take_while(in_scope) {
        if request.limit > 0 && page.objects.len() == request.limit {
            page.remaining += 1;
        } else if request.filter.matches(object) {
            page.objects.push(object.clone());
        }
    }
    Ok(page)
}

/// Returns all objects, and the resource version at which they are the truth.
pub(super) fn everything(
    state: &State,
    at: At,
    revision: &Revision,
) -> Result<(Vec<Arc<Object>>, u64), Refusal> {
    let (undone, resource_version) = undo(state, at, revision)?;
    Ok((in_key_order(state, &undone, "").cloned().collect(), resource_version))
}

/// Returns one object as it was.
pub(super) fn object(
    state: &State,
    key: &str,
    at: At,
    revision: &Revision,
) -> Result<Option<Arc<Object>>, Refusal> {
    let (undone, _) = undo(state, at, revision)?;
    let now = || state.objects.get(key);
    Ok(undone.get(key).copied().unwrap_or_else(now).cloned())
}

/// Returns what has to be undone to get to a state, and its resource version.
fn undo<'a>(state: &'a State, at: At, revision: &Revision) -> Result<(Undone<'a>, u64), Refusal> {
    let version = match at {
        At::Latest => return Ok((Undone::new(), revision.current())),
        At::Exactly(version) if version < state.history.stored(revision.compacted()) => {
            return Err(status::expired("The resourceVersion for the provided list is too old."));
        }
        At::Exactly(version) => version,
        At::Cached(version) => version.max(state.history.reachable()),
    };
    let mut undone = Undone::new();
    for event in state.history.newest_first_after(version) {
        undone.insert(event.object.key.as_str(), event.previous.as_ref());
    }
    Ok((undone, version))
}

/// Goes through the objects of the wanted state, from the start key on.
fn in_key_order<'a>(
    state: &'a State,
    undone: &'a Undone<'a>,
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
