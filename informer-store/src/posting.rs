//! [`Posting`]: the objects that have an index value in common, as a sorted set of their slots in
//! the store's [`SlotMap`](crate::slot_map::SlotMap).

use std::sync::Arc;

/// The maximum length of a chunk. The limit keeps inserts fast: an insert moves, and sometimes
/// copies, the slots of one chunk.
const CHUNK: usize = 256;

/// The length of the first part when a chunk is split. The store mostly assigns ascending slots, so
/// the first part stays nearly full and the second part grows.
const SPLIT_LEN: usize = CHUNK * 7 / 8;

/// A sorted set of slots. Copying it only increments a reference count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Posting {
    /// The slots in ascending order, in chunks of at most [`CHUNK`] slots. No chunk is empty.
    chunks: Arc<Vec<Arc<Vec<u32>>>>,
    len: usize,
}

impl Posting {
    /// Creates a set from `sorted`, which must be sorted and have no duplicates.
    pub(crate) fn from_sorted(sorted: impl IntoIterator<Item = u32>) -> Self {
        let (mut chunks, mut chunk, mut len) = (Vec::new(), Vec::new(), 0);
        for slot in sorted {
            if chunk.len() == SPLIT_LEN {
                chunks.push(Arc::new(std::mem::take(&mut chunk)));
            }
            chunk.push(slot);
            len += 1;
        }
        if !chunk.is_empty() {
            chunks.push(Arc::new(chunk));
        }
        Self { chunks: Arc::new(chunks), len }
    }

    pub(crate) fn union(postings: &[Self]) -> Self {
        let mut slots: Vec<u32> = postings.iter().flat_map(Self::iter).collect();
        slots.sort_unstable();
        slots.dedup();
        Self::from_sorted(slots)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().copied())
    }

    pub(crate) fn chunk(&self, n: usize) -> Option<&[u32]> {
        self.chunks.get(n).map(|chunk| chunk.as_slice())
    }

    /// Returns the position in `chunks` of the only chunk that can contain `slot`; 0 if the set is
    /// empty.
    fn chunk_of(&self, slot: u32) -> usize {
        self.chunks.partition_point(|chunk| chunk[0] <= slot).saturating_sub(1)
    }

    pub(crate) fn insert(&mut self, slot: u32) {
        let at = self.chunk_of(slot);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(chunk) = chunks.get_mut(at) else {
            chunks.push(Arc::new(vec![slot]));
            self.len = 1;
            return;
        };
        // This copies the chunk if a snapshot or a query result uses it.
        let chunk = Arc::make_mut(chunk);
        let Err(position) = chunk.binary_search(&slot) else { return };
        chunk.insert(position, slot);
        self.len += 1;
        if chunk.len() > CHUNK {
            let upper = chunk.split_off(SPLIT_LEN);
            chunks.insert(at + 1, Arc::new(upper));
        }
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let at = self.chunk_of(slot);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(chunk) = chunks.get_mut(at) else { return };
        let chunk = Arc::make_mut(chunk);
        let Ok(position) = chunk.binary_search(&slot) else { return };
        chunk.remove(position);
        self.len -= 1;
        if chunk.is_empty() {
            chunks.remove(at);
        } else if chunk.capacity() > 4 * chunk.len() + 16 {
            chunk.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn posting_behaves_like_a_sorted_set(ops in prop::collection::vec((0..5_u8, 0..2_000_u32), 0..4_000)) {
            let (mut posting, mut model) = (Posting::default(), BTreeSet::new());
            for (kind, slot) in ops {
                if kind == 0 {
                    posting.remove(slot);
                    model.remove(&slot);
                } else {
                    posting.insert(slot);
                    model.insert(slot);
                }
            }
            prop_assert_eq!(posting.len(), model.len());
            prop_assert!(posting.iter().eq(model.iter().copied()));
            for slot in model {
                posting.remove(slot);
            }
            prop_assert!(posting.is_empty() && posting.chunk(0).is_none());
        }
    }

    proptest! {
        #[test]
        fn union_has_each_slot_once(sets in prop::collection::vec(prop::collection::btree_set(0..900_u32, 0..700), 0..4)) {
            let postings: Vec<Posting> = sets.iter().map(|set| Posting::from_sorted(set.iter().copied())).collect();
            let mut union = Posting::union(&postings);
            let mut expected: BTreeSet<u32> = sets.into_iter().flatten().collect();
            prop_assert_eq!(union.len(), expected.len());
            prop_assert!(union.iter().eq(expected.iter().copied()));
            union.insert(1_000);
            expected.insert(1_000);
            prop_assert!(union.iter().eq(expected));
        }
    }

    #[test]
    fn copy_of_a_posting_keeps_its_slots() {
        let mut posting = Posting::default();
        (0..1_000).for_each(|slot| posting.insert(slot));
        let copy = posting.clone();
        (0..1_000).for_each(|slot| posting.remove(slot));
        assert_eq!((copy.len(), posting.len()), (1_000, 0));
    }
}
