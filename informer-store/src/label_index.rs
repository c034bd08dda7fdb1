//! The label index, with which a lister finds the objects that match an equality or `in`
//! requirement without reading every object.
//!
//! client-go has no label index; its listers read the labels of every object of the store or the
//! namespace (tools/cache/listers.go). The index values are pairs of label key and label value. An
//! object has one value per label key, so the results for several values of one key never overlap.
//!
//! A slot is the number of an object in the store. A [`Posting`] is the set of the slots of all
//! objects that have an index value.

use informer_core::{AnyObject, Cached};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{Expression, Resource};

use crate::index::{IndexState, Values};
use crate::posting::Posting;
use crate::shared::State;
use crate::slot_map::Entries;
use crate::{IndexError, Indexer};

/// The name of the index that [`Indexer::add_label_index`] adds.
pub const LABEL_INDEX: &str = "labels";

/// The key and the value of a label, in one string. The key's length is stored because no separator
/// is safe.
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

fn labels_of(metadata: &ObjectMeta) -> Values<Label> {
    let labels = metadata.labels.iter().flatten();
    labels.map(|(key, value)| Label::new(key, value)).collect()
}

impl<K: Resource + Send + Sync + 'static> Indexer<K> {
    /// Adds a label index, which makes the [`Lister`](crate::Lister)s of this store faster. Returns
    /// `Ok` without a change if the index exists, or if another thread adds it first (possibly
    /// before that thread has completed it).
    ///
    /// The index supports equality and `in` requirements. The lister looks up these requirements,
    /// intersects their results with the objects of the namespace, and compares only the remaining
    /// objects with the other requirements. If a selector has no supported requirement, the lister
    /// reads all objects (all objects of the namespace, if it lists one namespace), as without an
    /// index.
    ///
    /// The index is not added by default because of its cost. For pods with five labels, one of
    /// them with a unique value, the index costs 600 to 900 bytes per pod and 1 µs per update. In a
    /// store of 100,000 such pods, the 500 pods of one deployment are found in 6 µs instead of 9 ms
    /// (`benches/labels.rs`).
    ///
    /// The index can be added at any time, like the indexes of [`add_index`](Self::add_index).
    /// [`remove_index`](Self::remove_index) with the name [`LABEL_INDEX`] removes it.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if another index has the name [`LABEL_INDEX`].
    pub fn add_label_index(&self) -> Result<(), IndexError> {
        let function = |object: &Cached<K>| Ok(labels_of(&object.metadata()));
        match self.install(LABEL_INDEX, function) {
            // The construction of the index can end between these two checks. In this order, the
            // second check then finds the index.
            Err(IndexError::Duplicate { .. })
                if self.is_under_construction::<Label>(LABEL_INDEX)
                    || self.index::<Label>(LABEL_INDEX).is_ok() =>
            {
                Ok(())
            }
            added => added.map(drop),
        }
    }
}

/// The objects that the label index finds for a selector, and the requirements that must still be
/// checked.
pub(crate) struct LabelCandidates {
    entries: Entries<Cached<AnyObject>>,
    /// One set of objects for each equality or `in` requirement, and one for the namespace if a
    /// namespace is requested. Each set consists of postings, which do not overlap.
    sets: Vec<Vec<Posting>>,
    /// The requirements that the index does not support.
    rest: Vec<Expression>,
}

impl LabelCandidates {
    /// Looks up the equality and `in` requirements in the label index. Returns `Err` with all
    /// requirements if the index cannot be used.
    pub(crate) fn look_up(
        state: &State,
        namespace: Option<&str>,
        requirements: Vec<Expression>,
    ) -> Result<Self, Vec<Expression>> {
        let labels = state.indexes.iter().find_map(|named| named.index.as_any().downcast_ref());
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

    /// Returns the objects that are in the requested namespace and match all requirements.
    /// `matches` checks the requirements that the index does not support.
    pub(crate) fn objects(
        self,
        matches: fn(&Cached<AnyObject>, &[Expression]) -> bool,
    ) -> Vec<Cached<AnyObject>> {
        let slots = intersection(self.sets).into_iter();
        let found = slots.filter_map(|slot| self.entries.get(slot as usize).as_ref());
        found.filter(|object| matches(object, &self.rest)).cloned().collect()
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

fn intersection(mut sets: Vec<Vec<Posting>>) -> Vec<u32> {
    sets.sort_by_cached_key(|set| set.iter().map(Posting::len).sum::<usize>());
    let mut sets = sets.into_iter();
    let mut slots: Vec<u32> = sets.next().iter().flatten().flat_map(Posting::iter).collect();
    slots.sort_unstable();
    for set in sets {
        let mut common = Vec::new();
        for posting in &set {
            add_common(&slots, posting, &mut common);
        }
        // Each posting is sorted, but their concatenation is not.
        common.sort_unstable();
        slots = common;
    }
    slots
}

/// Adds the slots that are both in `slots` and in `posting` to `common`. `slots` must be sorted.
fn add_common(slots: &[u32], posting: &Posting, common: &mut Vec<u32>) {
    // Both sets are read once, in ascending order. `ahead` is the rest of a chunk of `posting`.
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
        fn intersection_has_the_members_of_every_set(
            small in prop::collection::btree_set(0..4_000_u32, 0..20),
            sets in prop::collection::vec(prop::collection::btree_set(0..4_000_u32, 0..3_000), 0..3),
        ) {
            let expected: Vec<u32> =
                small.iter().copied().filter(|slot| sets.iter().all(|set| set.contains(slot))).collect();
            let mut parts: Vec<Vec<Posting>> = sets.iter().map(|set| {
                // Each set has two postings, as for an `in` requirement with two values.
                let (odd, even) = set.iter().partition(|slot| *slot % 2 == 1);
                vec![posting(&odd), posting(&even)]
            }).collect();
            parts.push(vec![posting(&small)]);
            prop_assert_eq!(intersection(parts), expected);
        }
    }

    #[test]
    fn labels_with_the_same_concatenation_differ() {
        assert!(Label::new("app", "web") != Label::new("appw", "eb"));
        assert!(Label::new("app", "web") == Label::new("app", "web"));
    }
}
