//! Pages of a table, now or at an earlier resource version.
//!
//! The past is computed, not kept: undoing the later events, newest first, leaves for each touched key the version
//! that was current at the wanted resource version. All other keys are as they are now.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

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

pub(super) fn page(state: &State, request: &PageRequest<'_>, revision: u64) -> Result<Page, Refusal> {
    let (undone, resource_version) = match request.at {
        At::Latest => (Undone::new(), revision),
        At::Exactly(version) => (undo(state, version)?, version),
    };
    let mut page = Page { objects: Vec::new(), resource_version, remaining: 0 };
    for object in in_key_order(state, &undone, request) {
        if request.limit > 0 && page.objects.len() == request.limit {
            page.remaining += 1;
        } else if request.filter.matches(object) {
            page.objects.push(object.clone());
        }
    }
    Ok(page)
}

fn undo(state: &State, version: u64) -> Result<Undone<'_>, Refusal> {
    if version < state.history.floor() {
        return Err(status::expired("The resourceVersion for the provided list is too old."));
    }
    let mut undone = Undone::new();
    for event in state.history.newest_first_after(version) {
        undone.insert(event.object.key.as_str(), event.previous.as_ref());
    }
    Ok(undone)
}

/// Goes through the objects of the wanted state that lie in the filter's namespace, from the start key on.
fn in_key_order<'a>(
    state: &'a State,
    undone: &'a Undone<'a>,
    request: &'a PageRequest<'a>,
) -> impl Iterator<Item = &'a Arc<Object>> {
    let from = (Bound::Included(request.start), Bound::Unbounded);
    let mut unchanged = state
        .objects
        .range::<str, _>(from)
        .filter(|(key, _)| undone.is_empty() || !undone.contains_key(key.as_str()))
        .map(|(_, object)| object)
        .peekable();
    let mut restored = undone.range::<str, _>(from).filter_map(|(_, object)| *object).peekable();
    let merged = std::iter::from_fn(move || match (unchanged.peek(), restored.peek()) {
        (Some(left), Some(right)) if left.key > right.key => restored.next(),
        (Some(_), _) => unchanged.next(),
        (None, _) => restored.next(),
    });
    merged.take_while(|object| request.filter.in_namespace(object))
}
