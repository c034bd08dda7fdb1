//! The label index: which objects have which label with which value, so that a selector need not look at every object.
//!
//! client-go has none; its listers look at the labels of every object (tools/cache/listers.go). Here an equality or `in`
//! requirement is one look into an index like any other, whose values are pairs of label and value. An object has one
//! value per label, so the objects found for several values of one label never overlap.

use informer_core::Cached;
use kube_core::{Expression, Resource};

use crate::index::IndexState;
use crate::posting::Posting;
use crate::shared::State;
use crate::slot_map::Entries;
use crate::{IndexError, Indexer};

/// The name of the index by label, in a store that has one ([`Indexer::add_label_index`]).
pub const LABEL_INDEX: &str = "labels";

/// A label with its value. The two are told apart by length, as no character is sure not to be in either.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Label {
    text: Box<str>,
    key_len: usize,
}

impl Label {
    fn new(key: &str, value: &str) -> Self {
        let mut text = String::with_capacity(key.len() + value.len());
        text.push_str(key);
        text.push_str(value);
        Self { text: text.into_boxed_str(), key_len: key.len() }
    }
}

fn labels_of<K: Resource>(object: &K) -> Vec<Label> {
    let labels = object.meta().labels.iter().flatten();
    labels.map(|(key, value)| Label::new(key, value)).collect()
}

impl<K: Resource + Send + Sync + 'static> Indexer<K> {
    /// Adds an index by label, which [`Lister`](crate::Lister)s of this store use from then on. Their answers stay the
    /// same. Where there is one already, or somebody else is just adding it, nothing happens.
    ///
    /// It serves equality and `in` requirements. Of those in a selector the one that fewest objects meet is looked up,
    /// and narrowed down by the others and by the namespace; only what remains is compared with the rest of the
    /// selector. A selector without any such requirement looks at all objects (of the namespace), as without an index.
    ///
    /// It is not there by default, because it has its price: for pods with five labels, one of them with a value of its
    /// own, 600 to 900 bytes per pod and 1 µs per update. Among 100,000 such pods it finds the 500 of one deployment in
    /// 6 µs instead of 9 ms (`benches/labels.rs`).
    ///
    /// It is built as [`add_index`](Self::add_index) builds one, at any time, and removed by
    /// [`remove_index`](Self::remove_index) under the name [`LABEL_INDEX`].
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if another index has its name.
    pub fn add_label_index(&self) -> Result<(), IndexError> {
        match self.add_index(LABEL_INDEX, labels_of) {
            // In this order, so that one which is in place by now is not missed.
            Err(IndexError::Duplicate { .. })
                if self.is_joining::<Label>(LABEL_INDEX) || self.index::<Label>(LABEL_INDEX).is_ok() =>
            {
                Ok(())
            }
            added => added.map(drop),
        }
    }
}

/// What a selector finds by way of the index.
pub(crate) struct LabelCandidates<K> {
    entries: Entries<Cached<K>>,
    /// For each requirement that the index answers, and for the namespace: the objects that meet it, in parts that do
    /// not overlap.
    sets: Vec<Vec<Posting>>,
    /// The requirements that the index doesn't answer.
    pub(crate) rest: Vec<Expression>,
}

impl<K> LabelCandidates<K> {
    /// Looks the requirements up in the store's label index. `Err` gives them back if there is none, or if it answers
    /// none of them.
    pub(crate) fn look_up(
        state: &State<K>,
        namespace: Option<&str>,
        requirements: Vec<Expression>,
    ) -> Result<Self, Vec<Expression>> {
        let labels = state.indices.iter().find_map(|named| named.index.as_any().downcast_ref());
        let Some(labels) = labels else { return Err(requirements) };
        let (mut sets, mut rest) = (Vec::new(), Vec::new());
        for requirement in requirements {
            match postings_of(labels, &requirement) {
                Some(set) => sets.push(set),
                None => rest.push(requirement),
            }
        }
        if sets.is_empty() {
            return Err(rest);
        }
        sets.extend(namespace.map(|namespace| vec![state.namespace_posting(namespace)]));
        Ok(Self { entries: state.objects.entries().clone(), sets, rest })
    }

    /// The objects that meet the requirements that were looked up.
    pub(crate) fn objects(&mut self) -> impl Iterator<Item = &Cached<K>> {
        let slots = intersection(std::mem::take(&mut self.sets));
        slots.into_iter().filter_map(|slot| self.entries.get(slot as usize).as_ref())
    }
}

fn postings_of(labels: &IndexState<Label>, requirement: &Expression) -> Option<Vec<Posting>> {
    match requirement {
        Expression::Equal(key, value) => Some(vec![labels.posting(&Label::new(key, value))]),
        Expression::In(key, values) => {
            Some(values.iter().map(|value| labels.posting(&Label::new(key, value))).collect())
        }
        Expression::NotIn(..)
        | Expression::NotEqual(..)
        | Expression::Exists(_)
        | Expression::DoesNotExist(_) => None,
    }
}

/// The slots that are in each of the sets.
fn intersection(mut sets: Vec<Vec<Posting>>) -> Vec<u32> {
    sets.sort_by_cached_key(|set| set.iter().map(Posting::len).sum::<usize>());
    let mut sets = sets.into_iter();
    let mut slots: Vec<u32> = Vec::new();
    for posting in sets.next().iter().flatten() {
        slots.extend(posting.iter());
    }
    slots.sort_unstable();
    for set in sets {
        let mut common = Vec::new();
        for posting in &set {
            add_common(&slots, posting, &mut common);
        }
        // Of several postings each is in order, but not the one after the other.
        common.sort_unstable();
        slots = common;
    }
    slots
}

/// Adds to `common` those of the sorted `slots` that are in the posting, in one walk along both.
fn add_common(slots: &[u32], posting: &Posting, common: &mut Vec<u32>) {
    let (mut n, mut ahead) = (0, posting.chunk(0).unwrap_or_default());
    for slot in slots {
        while ahead.last().is_none_or(|last| last < slot) {
            n += 1;
            let Some(chunk) = posting.chunk(n) else { return };
            ahead = chunk;
        }
        let at = match ahead.binary_search(slot) {
            Ok(at) => {
                common.push(*slot);
                at
            }
            Err(at) => at,
        };
        ahead = &ahead[at..];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn posting(slots: &BTreeSet<u32>) -> Posting {
        let mut posting = Posting::default();
        slots.iter().for_each(|slot| posting.insert(*slot));
        posting
    }

    proptest! {
        #[test]
        fn the_intersection_is_what_is_in_every_set(
            small in prop::collection::btree_set(0..4_000_u32, 0..20),
            sets in prop::collection::vec(prop::collection::btree_set(0..4_000_u32, 0..3_000), 0..3),
        ) {
            let expected: Vec<u32> =
                small.iter().copied().filter(|slot| sets.iter().all(|set| set.contains(slot))).collect();
            let mut parts: Vec<Vec<Posting>> = sets.iter().map(|set| {
                // In two parts, as for `in`.
                let (odd, even) = set.iter().partition(|slot| *slot % 2 == 1);
                vec![posting(&odd), posting(&even)]
            }).collect();
            parts.push(vec![posting(&small)]);
            prop_assert_eq!(intersection(parts), expected);
        }
    }

    #[test]
    fn a_label_is_not_another_of_the_same_text() {
        assert!(Label::new("app", "web") != Label::new("appw", "eb"));
        assert!(Label::new("app", "web") == Label::new("app", "web"));
    }
}
