//! [`PreparedTransaction`]: changes that readers do not see yet, but for which the users' index
//! functions have run.
//!
//! A large transaction is applied to a copy of the state beforehand, and `commit` only swaps the
//! states. A small transaction is usually applied by `commit` itself. So a reader waits at most
//! until a few hundred changes, with about two thousand index values, have been applied. client-go
//! holds its lock while it rebuilds every index (`threadSafeMap.Replace`).
//!
//! A slot is the number of an object in the store. In the last phase of its construction, an index
//! has a log. Each transaction appends its changes to this log, and the construction ends by
//! applying the log.

use std::fmt;
use std::sync::Arc;

use informer_core::{AnyObject, Cached, NamespaceProgress, ResourceVersion};
use smallvec::SmallVec;

use crate::index::{Applied, Computed, Logged, LoggedChange, value_panicked};
use crate::shared::{State, WriterNotes};
use crate::slot_map::{Cursor, SlotMap};
use crate::sync::{MutexGuard, RwLock};
use crate::{Change, IndexFailure};

/// The maximum number of changes that are applied in place. This takes a few hundred microseconds.
const MAX_IN_PLACE: usize = 256;

/// The maximum number of index values, old and new, of objects that are changed in place. Removing
/// and adding these values takes a few hundred microseconds.
const MAX_VALUES_IN_PLACE: usize = 2_048;

/// A transaction that is ready to commit, and that holds the store's write lock. It is created by
/// [`StoreWriter::prepare`](crate::StoreWriter::prepare).
///
/// Dropping the transaction commits it, so that the indexes always match the objects.
pub struct PreparedTransaction<'a> {
    // I8: the lock is released before the objects of `transaction` are dropped, because `notes` is
    // declared first.
    notes: MutexGuard<'a, WriterNotes>,
    transaction: Transaction<'a>,
    state: &'a RwLock<State>,
    /// The next state, if the changes have been applied to a copy.
    next: Option<State>,
    is_committed: bool,
    new_failures: Vec<IndexFailure>,
    /// The failures of index functions, only for indexes under construction. The failures of
    /// complete indexes are in [`WriterNotes`].
    joining_failures: Vec<IndexFailure>,
}

impl<'a> PreparedTransaction<'a> {
    pub(crate) fn new(
        mut transaction: Transaction<'a>,
        mut failures: Vec<IndexFailure>,
        mut notes: MutexGuard<'a, WriterNotes>,
        state: &'a RwLock<State>,
    ) -> Self {
        let new_failures = notes.note_failures(&transaction.changes, &mut failures);
        let next = transaction.apply_to_copy(state, &mut notes);
        Self {
            notes,
            transaction,
            state,
            next,
            is_committed: false,
            new_failures,
            joining_failures: failures,
        }
    }

    /// Makes all changes visible to readers, in one step. Further calls change nothing.
    ///
    /// A commit takes at most a few hundred microseconds. It calls no user code except `Hash` and
    /// `Eq` of index values, so the caller may hold a lock. A commit drops no replaced objects.
    pub fn commit(&mut self) {
        if std::mem::replace(&mut self.is_committed, true) {
            return;
        }
        let mut state = self.state.write();
        match self.next.take() {
            Some(next) => self.transaction.old_state = Some(std::mem::replace(&mut *state, next)),
            None => self.transaction.apply(&mut state, &mut self.notes),
        }
    }

    /// Commits the transaction if necessary, releases the write lock, and drops the replaced
    /// objects.
    ///
    /// Returns the new failures. Each means that an index lacks a changed object:
    /// - The index function failed for the object. If the index already lacked the object's
    ///   previous version because of a failure, the failure is not new and is not returned.
    /// - The `Hash` or `Eq` of an index value panicked. This failure is always returned.
    #[must_use]
    pub fn finish(mut self) -> Vec<IndexFailure> {
        self.close()
    }

    /// Commits the transaction if necessary, and returns the new failures. A second call, which
    /// `drop` makes after [`finish`](Self::finish), changes nothing, because the first call has
    /// moved out the failures and the values for the logs.
    fn close(&mut self) -> Vec<IndexFailure> {
        self.commit();
        let mut new_failures = std::mem::take(&mut self.new_failures);
        // `note_failures` has removed the earlier failures of these objects, so all count as new.
        new_failures.append(&mut self.transaction.panicked);
        self.transaction.log(&mut self.notes, std::mem::take(&mut self.joining_failures));
        new_failures
    }
}

impl Drop for PreparedTransaction<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for PreparedTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTransaction")
            .field("changes", &self.transaction.changes.len())
            .field("is_committed", &self.is_committed)
            .finish_non_exhaustive()
    }
}

/// The changes of a transaction, with the index values of added and updated objects. The
/// transaction keeps the replaced objects until it is dropped.
///
/// Drop the transaction while no lock is held, because destructors of objects are user code.
pub(crate) struct Transaction<'a> {
    changes: Vec<Change<AnyObject>>,
    watermark: Option<&'a ResourceVersion>,
    of_namespaces: &'a [NamespaceProgress],
    /// For each index: the index values of the added and updated objects. The indexes have the
    /// order of [`WriterNotes::definitions`].
    computed: SmallVec<[Computed; 2]>,
    /// For each change, the object's slot, and `true` if the change added the object. `None` if
    /// there was no object to remove.
    slots: SmallVec<[Option<(u32, bool)>; 2]>,
    /// The objects that the changes have replaced or removed.
    replaced: SmallVec<[Cached<AnyObject>; 2]>,
    /// The state before the commit, if the commit has swapped the states.
    old_state: Option<State>,
    /// The failures that were caused by a panic of the `Hash` or `Eq` of an index value.
    panicked: Vec<IndexFailure>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(
        changes: Vec<Change<AnyObject>>,
        watermark: Option<&'a ResourceVersion>,
        of_namespaces: &'a [NamespaceProgress],
        computed: SmallVec<[Computed; 2]>,
    ) -> Self {
        let slots = SmallVec::with_capacity(changes.len());
        Self {
            changes,
            watermark,
            of_namespaces,
            computed,
            slots,
            replaced: SmallVec::new(),
            old_state: None,
            panicked: Vec::new(),
        }
    }

    /// Applies the changes to a copy of the state, and returns the copy. If no copy is needed, does
    /// nothing and returns `None`.
    fn apply_to_copy(&mut self, state: &RwLock<State>, notes: &mut WriterNotes) -> Option<State> {
        // The logs of indexes under construction contain slots, which compaction would change.
        let may_compact = notes.joining.is_empty();
        let mut next = {
            let current = state.read();
            let is_large = self.is_large(&current, notes);
            (is_large || (may_compact && current.is_sparse())).then(|| current.clone())?
        };
        self.apply(&mut next, notes);
        if may_compact && next.is_sparse() {
            next.compact(notes);
        }
        Some(next)
    }

    /// Returns whether readers would wait too long if the changes were applied in place. For
    /// example, there are more than [`MAX_IN_PLACE`] changes.
    fn is_large(&self, current: &State, notes: &WriterNotes) -> bool {
        let changes = self.changes.len();
        if changes > MAX_IN_PLACE || current.objects.would_rebuild_large_table(changes) {
            return true;
        }
        let (mut known, mut values) = (None, 0);
        for ((named, notes), computed) in current.indexes.iter().zip(&notes.indexes).zip(&self.computed) {
            let computed = notes.definition.computed_values(computed);
            if named.index.would_rebuild_large_table(computed.unwrap_or(changes)) {
                return true;
            }
            // The lookups are omitted if no index needs them, for example in a store that has only
            // the index by namespace.
            let Some(computed) = computed else { continue };
            let known: &mut SmallVec<[u32; 2]> = known.get_or_insert_with(|| {
                let found = self.changes.iter().filter_map(|change| current.get(change.key()));
                found.map(|(slot, _)| slot).collect()
            });
            let rows = known.iter().filter_map(|slot| notes.by_slot.get(*slot as usize));
            values += computed + rows.map(SmallVec::len).sum::<usize>();
        }
        values > MAX_VALUES_IN_PLACE
    }

    fn apply(&mut self, state: &mut State, notes: &mut WriterNotes) {
        let mut cursor = Cursor::default();
        for change in &self.changes {
            let (slot, replaced) = apply_change(&mut state.objects, change, &mut cursor);
            state.count_encoded(change, replaced.as_ref());
            self.slots.push(slot);
            if let Some(replaced) = replaced {
                self.replaced.push(replaced);
            }
        }
        let indexes = state.indexes.iter_mut().zip(&mut notes.indexes).zip(&mut self.computed);
        for ((named, notes), computed) in indexes {
            let mut applied = self.changes.iter().zip(&self.slots).map(|(change, slot)| {
                let key = matches!(change, Change::Put(_)).then(|| change.key());
                slot.map(|(slot, is_new)| Applied { slot, key, is_new })
            });
            let definition = &notes.definition;
            let panicked = definition.apply(named.index.as_mut(), &mut notes.by_slot, computed, &mut applied);
            for change in panicked.into_iter().map(|position| &self.changes[position]) {
                let failure = value_panicked(definition.name(), change.key(), change.resource_version());
                notes.failures.insert(failure.key.clone(), failure.clone());
                self.panicked.push(failure);
            }
        }
        if let Some(watermark) = self.watermark {
            state.watermark = watermark.clone();
        }
        if !self.of_namespaces.is_empty() {
            Arc::make_mut(&mut state.watermarks).apply(self.of_namespaces);
        }
    }

    /// Appends the changes to the [`log`](crate::index::Joining::log) of each index under
    /// construction, together with the values and failures of its index function. `failures`
    /// contains the failures for all these indexes.
    fn log(&mut self, notes: &mut WriterNotes, mut failures: Vec<IndexFailure>) {
        let computed = self.computed.drain(notes.indexes.len()..);
        for (joining, computed) in notes.joining.iter_mut().zip(computed) {
            let changes = self.changes.iter().zip(&self.slots).map(|(change, slot)| LoggedChange {
                key: change.key().clone(),
                resource_version: change.resource_version(),
                is_put: matches!(change, Change::Put(_)),
                slot: *slot,
            });
            let of_this = |failure: &mut IndexFailure| failure.index == joining.definition.name();
            joining.log.push(Logged {
                computed,
                changes: changes.collect(),
                failures: failures.extract_if(.., of_this).collect(),
            });
        }
    }
}

/// Applies one change to `objects`. Returns an element of [`Transaction::slots`], and the replaced
/// or removed object.
fn apply_change(
    objects: &mut SlotMap<Cached<AnyObject>>,
    change: &Change<AnyObject>,
    cursor: &mut Cursor,
) -> (Option<(u32, bool)>, Option<Cached<AnyObject>>) {
    let key = change.key();
    let found = cursor.find(objects, key.hash_value(), |object| object.key() == key).map(|(slot, _)| slot);
    match (change, found) {
        (Change::Put(object), Some(slot)) => (Some((slot, false)), objects.set(slot, object.clone())),
        (Change::Put(object), None) => (Some((objects.insert(key.hash_value(), object.clone()), true)), None),
        (Change::Remove(_), Some(slot)) => (Some((slot, false)), objects.remove(key.hash_value(), slot)),
        (Change::Remove(_), None) => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use informer_core::{ObjectKey, Uid};

    use super::*;
    use crate::store;

    #[test]
    fn index_that_could_grow_is_changed_on_a_copy() {
        let (mut writer, indexer) = store::<u64>();
        indexer.add_index("value", |n: &u64| n * 1_000..n * 1_000 + 1_000).expect("a free name");
        let put = |n: u64| {
            let key = ObjectKey::cluster_scoped(&n.to_string());
            vec![Change::Put(Cached::from_parts(key, ResourceVersion::empty(), Uid::default(), n))]
        };
        // Large hash tables have at least 8,192 cells, and grow when 80 % of the cells are used.
        let is_copied = (0..15).filter(|n| writer.prepare(put(*n), None, &[]).next.is_some());
        assert_eq!(is_copied.collect::<Vec<_>>(), [6, 13]);
    }

    #[test]
    fn object_with_many_index_values_is_changed_on_a_copy() {
        let (mut writer, indexer) = store::<u64>();
        indexer.add_index("value", |n: &u64| 0..*n).expect("a free name");
        let put = |name: &str, n: u64| {
            let key = ObjectKey::cluster_scoped(name);
            vec![Change::Put(Cached::from_parts(key, ResourceVersion::empty(), Uid::default(), n))]
        };
        // From now on, the hash table of the index has room for thousands of values.
        drop(writer.prepare(put("first", 20_000), None, &[]));
        for (n, is_copied) in [(100, false), (3_000, true), (100, true), (0, false)] {
            assert_eq!(writer.prepare(put("second", n), None, &[]).next.is_some(), is_copied, "{n}");
        }
    }
}
