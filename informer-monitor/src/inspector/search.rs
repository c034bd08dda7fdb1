//! [`search`]: one page of the objects that match a query, ordered by key.
//!
//! A search first selects the candidates: the objects whose keys and index values match. It then
//! compares the candidates' labels and fields, in the order of the keys, only until the page is
//! full or the time for one request is over.

use std::collections::HashSet;
use std::time::Duration;

use informer_core::{AnyObject, Cached, ObjectKey};
use informer_factory::{IndexError, Objects};
use tokio::time::Instant;

use super::mask::Mask;
use super::query::Query;
use super::view::View;

/// The maximum time for the comparison of labels and fields. After this time, a search returns its
/// page of objects, even if the page is not full.
const MAX_TIME: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) objects: Vec<Cached<AnyObject>>,
    /// The key after which the next page begins; `None` for the last page.
    pub(super) next: Option<ObjectKey>,
    /// The number of matching objects on all pages; `None` if the query has labels or fields,
    /// because the search then reads only as many objects as one page needs.
    pub(super) matches: Option<usize>,
    /// The number of all candidates, on all pages: objects with matching keys and index values.
    pub(super) candidates: usize,
    /// The number of candidates that this page and all earlier pages cover. Pages also cover the
    /// candidates whose labels or fields do not match.
    pub(super) examined: usize,
}

/// Returns at most `limit` objects that match `query` and whose keys come after the key `after`. A
/// search that takes longer than [`MAX_TIME`] can return fewer objects.
///
/// # Errors
/// A message for the user of the page, if an index in the query can't be searched.
pub(super) fn search(
    view: &View,
    query: &Query,
    mask: &Mask,
    after: Option<&str>,
    limit: usize,
) -> Result<Page, String> {
    let mut candidates = candidates(view, query, mask)?;
    let total = candidates.len();
    candidates.retain(|object| after.is_none_or(|after| object.key().as_str() > after));
    let before = total - candidates.len();
    if !query.reads_objects() && candidates.len() > limit {
        // Only the first keys are needed, so the others are not sorted.
        candidates.select_nth_unstable_by(limit, |a, b| a.key().cmp(b.key()));
        candidates.truncate(limit + 1);
    }
    candidates.sort_unstable_by(|a, b| a.key().cmp(b.key()));
    let mut page = Page { candidates: total, examined: total, ..Page::default() };
    page.matches = (!query.reads_objects()).then_some(total);
    let begun = Instant::now();
    let mut last: Option<ObjectKey> = None;
    for (index, object) in candidates.into_iter().enumerate() {
        // At least one candidate is compared, because the next page begins after the last one.
        if last.is_some() && (page.objects.len() == limit || begun.elapsed() > MAX_TIME) {
            page.examined = before + index;
            page.next = last;
            return Ok(page);
        }
        last = Some(object.key().clone());
        if view.matches(&object, query, mask) {
            page.objects.push(object);
        }
    }
    Ok(page)
}

/// Returns the objects whose keys and index values match `query`, in no particular order.
fn candidates(view: &View, query: &Query, mask: &Mask) -> Result<Vec<Cached<AnyObject>>, String> {
    let Some(((name, value), others)) = query.indexes.split_first() else {
        return Ok(with_key(view.indexer.list(), query));
    };
    let mut found = with_key(in_index(view, mask, name, value)?, query);
    for (name, value) in others {
        let keys: HashSet<_> =
            in_index(view, mask, name, value)?.into_iter().map(|it| it.key().clone()).collect();
        found.retain(|object| keys.contains(object.key()));
    }
    Ok(found)
}

fn with_key(objects: Objects<AnyObject>, query: &Query) -> Vec<Cached<AnyObject>> {
    objects.into_iter().filter(|object| query.matches_key(object.key().as_str())).collect()
}

fn in_index(view: &View, mask: &Mask, name: &str, value: &str) -> Result<Objects<AnyObject>, String> {
    let names = view.searchable_indexes(mask);
    if !names.iter().any(|other| other == name) {
        let names = names.join(", ");
        return Err(format!("there is no index {name:?} to search; indexes: {names}"));
    }
    view.indexer.by_index(name, value).map_err(|error| match error {
        IndexError::WrongType { .. } => {
            format!("the index {name:?} can't be searched, because its values are not text")
        }
        other => other.to_string(),
    })
}
