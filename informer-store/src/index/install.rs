//! Adds an index to a store that is in use. Readers are not blocked, and the writer only briefly.
//!
//! The index function is user code, so it runs while no lock is held. [`build`] first indexes
//! snapshots, in a few rounds. Then the writer calls the function for each change, and appends the
//! change and the results to [`Joining::log`]. At the end, `build` applies this log under the write
//! lock. A slot is the number of an object in the store's [`SlotMap`](crate::slot_map::SlotMap).

use std::collections::HashMap;
use std::sync::Arc;

use informer_core::{AnyObject, Cached, ObjectKey, ResourceVersion};

use super::{
    AnyIndex, AnyIndexState, Applied, Computed, Definition, Failures, Index, IndexValue, ValuesBySlot,
    value_panicked,
};
use crate::persistent_vec::PersistentVec;
use crate::shared::{IndexId, IndexNotes, NamedIndex, Shared};
use crate::slot_map::Entries;
use crate::{Change, IndexError, IndexFailure};

/// The maximum number of rounds before the last one, during which the writer calls the index
/// function, too. A round indexes the objects that have changed since the previous round. A busy
/// writer can change objects faster than a round indexes them.
const ROUNDS: usize = 3;

/// A round is small if it indexes at most this number of objects. Only the last round follows a
/// small round.
const MAX_SMALL_ROUND: usize = 1_000;

pub(crate) fn install<K: 'static, V: IndexValue>(
    shared: &Arc<Shared>,
    definition: Definition<V>,
) -> Result<Index<K, V>, IndexError> {
    let definition: Arc<dyn AnyIndex> = Arc::new(definition);
    let id = build(shared, &definition)?;
    Ok(Index::new(Arc::clone(shared), id, definition.name()))
}

fn build(shared: &Shared, definition: &Arc<dyn AnyIndex>) -> Result<IndexId, IndexError> {
    if shared.write.lock().is_name_taken(definition.name()) {
        return Err(IndexError::Duplicate { name: definition.name().to_owned() });
    }
    let mut build = Build::new(definition);
    for _ in 0..ROUNDS {
        let entries = shared.state.read().objects.entries().clone();
        if build.catch_up(entries) <= MAX_SMALL_ROUND {
            break;
        }
    }
    let (join, entries) = Join::begin(shared, definition)?;
    build.catch_up(entries);
    Ok(join.finish(build))
}

/// An index under construction, for which the writer calls the index function. The writer appends
/// the changes of each transaction, with the results of the function, to `log`.
pub(crate) struct Joining {
    id: IndexId,
    pub(crate) definition: Arc<dyn AnyIndex>,
    pub(crate) log: Vec<Logged>,
}

/// The changes of one transaction, and the results of the index function for these changes.
pub(crate) struct Logged {
    pub(crate) computed: Computed,
    pub(crate) changes: Vec<LoggedChange>,
    pub(crate) failures: Vec<IndexFailure>,
}

/// A change that added, replaced or removed one object. It has its own copy of the key, because the
/// log outlives the transaction.
pub(crate) struct LoggedChange {
    pub(crate) key: ObjectKey,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) is_put: bool,
    /// The slot of the object, and `true` if the change added the object. `None` if the change
    /// removes an object that does not exist.
    pub(crate) slot: Option<(u32, bool)>,
}

impl LoggedChange {
    fn applied(&self) -> Option<Applied<'_>> {
        let key = self.is_put.then_some(&self.key);
        self.slot.map(|(slot, is_new)| Applied { slot, key, is_new })
    }
}

/// A guard for an index under construction: while the guard exists, the index is in
/// `WriterNotes::joining`, and the writer appends its changes to [`Joining::log`].
struct Join<'a> {
    shared: &'a Shared,
    id: IndexId,
}

impl<'a> Join<'a> {
    /// Makes the writer add all later changes to [`Joining::log`]. Returns a snapshot: all
    /// objects in the store before the first of these changes.
    fn begin(
        shared: &'a Shared,
        definition: &Arc<dyn AnyIndex>,
    ) -> Result<(Self, Entries<Cached<AnyObject>>), IndexError> {
        let id = IndexId::next();
        let mut notes = shared.write.lock();
        if notes.is_name_taken(definition.name()) {
            return Err(IndexError::Duplicate { name: definition.name().to_owned() });
        }
        notes.generation += 1;
        notes.joining.push(Joining { id, definition: Arc::clone(definition), log: Vec::new() });
        Ok((Self { shared, id }, shared.state.read().objects.entries().clone()))
    }

    /// Applies [`Joining::log`] and adds the index to the store, in one step under the write lock.
    /// Then, if the index lacks objects because of failures, logs their number.
    fn finish(self, mut build: Build) -> IndexId {
        let mut notes = self.shared.write.lock();
        notes.generation += 1;
        let position = notes.joining.iter().position(|joining| joining.id == self.id);
        let mut joined = position.map(|position| notes.joining.remove(position));
        for logged in joined.iter_mut().flat_map(|joining| &mut joining.log) {
            build.replay(logged);
        }
        let Build { definition, index, by_slot, failures, indexed } = build;
        let (failed, example) = (failures.len(), failures.values().next().cloned());
        notes.indexes.push(IndexNotes { definition: Arc::clone(&definition), by_slot, failures });
        self.shared.state.write().indexes.push(NamedIndex { id: self.id, definition, index });
        drop(notes);
        self.shared.build_ended.notify_all();
        // I8: destructors of values and objects are user code, so they run after the lock is
        // released.
        drop((joined, indexed));
        // I10: a transaction returns only new failures, so no caller of the writer can log these.
        if let Some(IndexFailure { index, key, .. }) = example {
            // The error is not logged, because it can contain data of a Secret.
            tracing::warn!(
                index, failed, example = %key,
                "indexing of some objects failed, so this index lacks them; \
                 `Indexer::index_failures` returns the errors"
            );
        }
        self.id
    }
}

impl Drop for Join<'_> {
    /// Removes the index from `WriterNotes::joining` if the construction panicked.
    fn drop(&mut self) {
        let mut notes = self.shared.write.lock();
        if let Some(position) = notes.joining.iter().position(|joining| joining.id == self.id) {
            notes.generation += 1;
            let abandoned = notes.joining.remove(position);
            drop(notes);
            self.shared.build_ended.notify_all();
            drop(abandoned);
        }
    }
}

/// An index under construction, with the objects that have been indexed.
struct Build {
    definition: Arc<dyn AnyIndex>,
    index: Box<dyn AnyIndexState>,
    by_slot: ValuesBySlot,
    failures: HashMap<ObjectKey, IndexFailure>,
    indexed: Entries<Cached<AnyObject>>,
}

impl Build {
    fn new(definition: &Arc<dyn AnyIndex>) -> Self {
        Self {
            definition: Arc::clone(definition),
            index: definition.new_state(),
            by_slot: ValuesBySlot::new(),
            failures: HashMap::new(),
            indexed: PersistentVec::new(),
        }
    }

    /// Updates the index to the snapshot `entries`. Returns the number of slots whose object has
    /// changed since the last call.
    fn catch_up(&mut self, entries: Entries<Cached<AnyObject>>) -> usize {
        let (mut slots, mut changes) = (Vec::new(), Vec::new());
        let outdated = &mut self.failures;
        entries.for_each_difference(&self.indexed, |slot, now, before| {
            let (now, before) = (now.and_then(Option::as_ref), before.and_then(Option::as_ref));
            let change = match (now, before) {
                (Some(now), Some(before)) if now.ptr_eq(before) => return,
                (Some(now), _) => Change::Put(now.clone()),
                (None, Some(before)) => Change::Remove(before.key().clone()),
                (None, None) => return,
            };
            // The failure of the object that was in this slot before is outdated. If that object is in
            // another slot now, the index function runs for it again.
            before.map(|before| outdated.remove(before.key()));
            slots.push(slot as u32);
            changes.push(change);
        });
        let mut failures = Failures::new();
        let mut computed = self.definition.new_computed(changes.len());
        self.definition.compute(&changes, 0, &mut computed, &mut failures);
        self.failures.extend(failures.into_iter().map(|(_, failure)| (failure.key.clone(), failure)));
        let mut applied = slots.iter().zip(&changes).map(|(slot, change)| {
            let key = matches!(change, Change::Put(_)).then(|| change.key());
            // Also correct for an updated object: `apply` computes the values of its key again.
            Some(Applied { slot: *slot, key, is_new: true })
        });
        let panicked =
            self.definition.apply(self.index.as_mut(), &mut self.by_slot, &mut computed, &mut applied);
        drop(applied);
        for change in panicked.into_iter().map(|position| &changes[position]) {
            self.note_panic(change.key(), change.resource_version());
        }
        self.indexed = entries;
        changes.len()
    }

    fn replay(&mut self, logged: &mut Logged) {
        for change in &logged.changes {
            self.failures.remove(&change.key);
        }
        let failures = logged.failures.drain(..).map(|failure| (failure.key.clone(), failure));
        self.failures.extend(failures);
        let mut applied = logged.changes.iter().map(LoggedChange::applied);
        let panicked =
            self.definition.apply(self.index.as_mut(), &mut self.by_slot, &mut logged.computed, &mut applied);
        for change in panicked.into_iter().map(|position| &logged.changes[position]) {
            self.note_panic(&change.key, change.resource_version.clone());
        }
    }

    fn note_panic(&mut self, key: &ObjectKey, resource_version: ResourceVersion) {
        let failure = value_panicked(self.definition.name(), key, resource_version);
        self.failures.insert(key.clone(), failure);
    }
}
