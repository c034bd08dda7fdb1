//! [`PersistentVec`]: a vector with cheap copies. A copy only increments a reference count. A write
//! first copies the shared parts of the path to the changed slot: at most one leaf, one branch of
//! 64 pointers, and the root. Parts that are not shared change in place, but growth replaces the
//! root.
//!
//! `LEAF` is the number of slots of a leaf. It should be small if copying a slot changes a
//! reference count. Otherwise it should be large, so that the vector has fewer leaves and pointers.

use std::sync::Arc;

const BRANCH: usize = 64;

// These are arrays and not slices, because pointers to arrays have no length field.
type Leaf<T, const LEAF: usize> = Arc<[T; LEAF]>;
type Branch<T, const LEAF: usize> = Arc<[Leaf<T, LEAF>; BRANCH]>;

/// A growable array. Slots that were never written contain `T::default()`.
#[derive(Debug, Clone)]
pub(crate) struct PersistentVec<T, const LEAF: usize> {
    root: Arc<[Branch<T, LEAF>]>,
}

impl<T: Clone + Default, const LEAF: usize> PersistentVec<T, LEAF> {
    pub(crate) fn new() -> Self {
        Self { root: Arc::new([]) }
    }

    /// Returns a vector with at least `len` slots.
    pub(crate) fn with_len(len: usize) -> Self {
        let mut new = Self::new();
        new.grow(len);
        new
    }

    /// Returns the number of slots.
    pub(crate) fn capacity(&self) -> usize {
        self.root.len() * LEAF * BRANCH
    }

    fn grow(&mut self, len: usize) {
        let branches = len.div_ceil(LEAF * BRANCH);
        if branches <= self.root.len() {
            return;
        }
        // All new branches share one empty leaf, which is copied on the first write.
        let leaf: Leaf<T, LEAF> = Arc::new(std::array::from_fn(|_| T::default()));
        let branch: Branch<T, LEAF> = Arc::new(std::array::from_fn(|_| Arc::clone(&leaf)));
        let missing = branches - self.root.len();
        self.root = self.root.iter().cloned().chain(std::iter::repeat_n(branch, missing)).collect();
    }

    /// Returns the slot at `index`, which must be below [`capacity`](Self::capacity).
    pub(crate) fn get(&self, index: usize) -> &T {
        &self.root[index / (LEAF * BRANCH)][index / LEAF % BRANCH][index % LEAF]
    }

    /// Returns the slot at `index` for writing. Grows the vector if it is too short.
    pub(crate) fn get_mut(&mut self, index: usize) -> &mut T {
        if index >= self.capacity() {
            self.grow(index + 1);
        }
        let branch = &mut Arc::make_mut(&mut self.root)[index / (LEAF * BRANCH)];
        let leaf = &mut Arc::make_mut(branch)[index / LEAF % BRANCH];
        &mut Arc::make_mut(leaf)[index % LEAF]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.root.iter().flat_map(|branch| branch.iter()).flat_map(|leaf| leaf.iter())
    }

    /// Calls `visit(index, value, other_value)` for each slot that can differ between `self` and
    /// `other`. A value is `None` if its vector lacks the slot.
    pub(crate) fn for_each_difference<'a>(
        &'a self,
        other: &'a Self,
        mut visit: impl FnMut(usize, Option<&'a T>, Option<&'a T>),
    ) {
        for b in 0..self.root.len().max(other.root.len()) {
            let (branch, other_branch) = (self.root.get(b), other.root.get(b));
            if matches!((branch, other_branch), (Some(branch), Some(other)) if Arc::ptr_eq(branch, other)) {
                continue;
            }
            for l in 0..BRANCH {
                let (leaf, other_leaf) =
                    (branch.map(|branch| &branch[l]), other_branch.map(|branch| &branch[l]));
                if matches!((leaf, other_leaf), (Some(leaf), Some(other)) if Arc::ptr_eq(leaf, other)) {
                    continue;
                }
                for i in 0..LEAF {
                    visit(
                        (b * BRANCH + l) * LEAF + i,
                        leaf.map(|leaf| &leaf[i]),
                        other_leaf.map(|leaf| &leaf[i]),
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_keeps_its_state_while_the_original_changes() {
        let mut vec = PersistentVec::<u64, 32>::new();
        for index in [0, 31, 32, 2047, 2048, 5000] {
            *vec.get_mut(index) = index as u64 + 1;
        }
        let copy = vec.clone();
        *vec.get_mut(32) = 0;
        *vec.get_mut(9000) = 7;
        assert_eq!((*copy.get(32), *vec.get(32), *vec.get(9000)), (33, 0, 7));
        assert_eq!(copy.iter().filter(|value| **value != 0).count(), 6);
        assert_eq!(copy.capacity(), 6144);
    }

    #[test]
    fn only_later_writes_are_visited_as_different() {
        let mut vec = PersistentVec::<u64, 32>::with_len(100_000);
        *vec.get_mut(70_000) = 1;
        let copy = vec.clone();
        *vec.get_mut(70_001) = 2;
        *vec.get_mut(100_000 + 4096) = 3;
        let (mut visited, mut different) = (0, Vec::new());
        vec.for_each_difference(&copy, |index, new, old| {
            visited += 1;
            if new.copied().unwrap_or_default() != old.copied().unwrap_or_default() {
                different.push(index);
            }
        });
        assert_eq!(different, [70_001, 104_096]);
        let mut shorter = Vec::new();
        copy.for_each_difference(&vec, |index, new, old| {
            shorter.extend((new.is_none() && old == Some(&3)).then_some(index));
        });
        assert_eq!(shorter, [104_096], "slots that only the other vector has are visited too");
        assert!(visited < 10_000, "{visited} slots visited");
    }
}
