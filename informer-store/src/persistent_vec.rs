//! [`PersistentVec`]: a vector whose copy is a reference count, and whose writes touch a few dozen slots at most.
//!
//! It is what makes a snapshot of the store free: a reader takes a copy, and a later write only copies the path to the
//! slot it changes (one leaf, one branch of 64, and the root). While nobody holds a copy, writes are in place.
//!
//! `LEAF` is how many slots a leaf has: few where copying a slot touches other memory, as with handles on objects; many
//! where it doesn't, because larger leaves mean fewer pointers to chase on the way to a slot.

use std::sync::Arc;

const BRANCH: usize = 64;

type Leaf<T> = Arc<[T]>;
type Branch<T> = Arc<[Leaf<T>]>;

/// A growing array of `T`, filled with `T::default()` where nothing was set yet.
#[derive(Debug)]
pub(crate) struct PersistentVec<T, const LEAF: usize> {
    root: Arc<[Branch<T>]>,
}

impl<T, const LEAF: usize> Clone for PersistentVec<T, LEAF> {
    fn clone(&self) -> Self {
        Self { root: Arc::clone(&self.root) }
    }
}

impl<T: Clone + Default, const LEAF: usize> PersistentVec<T, LEAF> {
    pub(crate) fn new() -> Self {
        Self { root: Arc::new([]) }
    }

    /// Returns a vector in which the first `len` slots are there already.
    pub(crate) fn with_len(len: usize) -> Self {
        let mut new = Self::new();
        new.grow(len);
        new
    }

    /// How many slots there are.
    pub(crate) fn capacity(&self) -> usize {
        self.root.len() * LEAF * BRANCH
    }

    fn grow(&mut self, len: usize) {
        let branches = len.div_ceil(LEAF * BRANCH);
        if branches <= self.root.len() {
            return;
        }
        // One empty leaf stands for all: it is copied when something is written to it.
        let leaf: Leaf<T> = (0..LEAF).map(|_| T::default()).collect();
        let branch: Branch<T> = (0..BRANCH).map(|_| Arc::clone(&leaf)).collect();
        let missing = branches - self.root.len();
        self.root = self.root.iter().cloned().chain(std::iter::repeat_n(branch, missing)).collect();
    }

    /// Returns the slot at `index`, which must be below [`capacity`](Self::capacity).
    pub(crate) fn get(&self, index: usize) -> &T {
        &self.root[index / (LEAF * BRANCH)][index / LEAF % BRANCH][index % LEAF]
    }

    /// Returns the slot at `index` for writing; grows as far as needed.
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

    /// Calls `visit` with the index and both values of the slots that may differ between two vectors; parts that they
    /// share are passed over. Slots that only one of them has count as default in the other.
    pub(crate) fn for_each_difference<'a>(
        &'a self,
        other: &'a Self,
        mut visit: impl FnMut(usize, &'a T, Option<&'a T>),
    ) {
        for (b, branch) in self.root.iter().enumerate() {
            let other_branch = other.root.get(b);
            if other_branch.is_some_and(|other| Arc::ptr_eq(other, branch)) {
                continue;
            }
            for (l, leaf) in branch.iter().enumerate() {
                let other_leaf = other_branch.map(|branch| &branch[l]);
                if other_leaf.is_some_and(|other| Arc::ptr_eq(other, leaf)) {
                    continue;
                }
                for (i, value) in leaf.iter().enumerate() {
                    visit((b * BRANCH + l) * LEAF + i, value, other_leaf.map(|leaf| &leaf[i]));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_its_state_while_the_original_goes_on() {
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
    fn only_what_was_written_since_is_visited_as_different() {
        let mut vec = PersistentVec::<u64, 32>::with_len(100_000);
        *vec.get_mut(70_000) = 1;
        let copy = vec.clone();
        *vec.get_mut(70_001) = 2;
        *vec.get_mut(100_000 + 4096) = 3;
        let (mut visited, mut different) = (0, Vec::new());
        vec.for_each_difference(&copy, |index, new, old| {
            visited += 1;
            if *new != old.copied().unwrap_or_default() {
                different.push(index);
            }
        });
        assert_eq!(different, [70_001, 104_096]);
        assert!(visited < 10_000, "{visited} slots visited");
    }
}
