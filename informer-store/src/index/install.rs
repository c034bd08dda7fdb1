//! Adding an index to a store that is in use: built beside the readers and the writer, then put in place.
//!
//! The function is the user's code, so no lock is held while it runs. It first runs over a snapshot, and over what has
//! changed since, a few times at most: a writer that never rests would outrun it for ever. Then the index *joins*: from
//! now on the writer, too, calls the function for what it changes, before it locks anything, and notes the outcome in a
//! log, while the last difference is indexed here. What is left to do under the writer's lock is to put the log in place,
//! which calls no function. So the writer is held up for about as long as it took to make those changes, and readers not
//! at all; and each object is looked at a bounded number of times.

use std::collections::HashMap;
use std::sync::Arc;

use informer_core::{Cached, ObjectKey, ResourceVersion};

use super::{
    AnyIndex, AnyIndexState, Applied, Computed, Definition, Failures, Index, IndexValue, ValuesBySlot,
    value_panicked,
};
use crate::persistent_vec::PersistentVec;
use crate::shared::{IndexId, IndexNotes, NamedIndex, Shared};
use crate::slot_map::Entries;
use crate::{Change, IndexError, IndexFailure};

/// How often it is tried to come near the writer before joining.
const ROUNDS: usize = 3;

/// So few objects are left to index that joining is worth it.
const NEAR: usize = 1_000;

/// Builds an index over what is in the store, and adds it.
pub(crate) fn install<K, V>(
    shared: &Arc<Shared<K>>,
    definition: Definition<K, V>,
) -> Result<Index<K, V>, IndexError>
where
    K: Send + Sync + 'static,
    V: IndexValue,
{
    let definition: Arc<dyn AnyIndex<K>> = Arc::new(definition);
    if shared.write.lock().is_taken(definition.name()) {
        return Err(IndexError::Duplicate { name: definition.name().to_owned() });
    }
    let mut build = Build::new(&definition);
    for _ in 0..ROUNDS {
        let entries = shared.state.read().objects.entries().clone();
        if build.catch_up(entries) <= NEAR {
            break;
        }
    }
    let (join, entries) = Join::begin(shared, &definition)?;
    build.catch_up(entries);
    let id = join.finish(build);
    Ok(Index::new(Arc::clone(shared), id, definition.name()))
}

/// An index whose function the writer already calls, and what came of it.
pub(crate) struct Joining<K> {
    id: IndexId,
    pub(crate) definition: Arc<dyn AnyIndex<K>>,
    pub(crate) log: Vec<Logged>,
}

/// What a transaction means for an index that is under construction.
pub(crate) struct Logged {
    pub(crate) computed: Computed,
    pub(crate) changes: Vec<LoggedChange>,
    pub(crate) failures: Vec<IndexFailure>,
}

/// An [`Applied`] with a key of its own.
pub(crate) struct LoggedChange {
    pub(crate) key: ObjectKey,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) is_put: bool,
    /// `None` if the change changed nothing.
    pub(crate) slot: Option<(u32, bool)>,
}

impl LoggedChange {
    fn applied(&self) -> Option<Applied<'_>> {
        let key = self.is_put.then_some(&self.key);
        self.slot.map(|(slot, is_new)| Applied { slot, key, is_new })
    }
}

/// The time in which an index is among the [`Joining`].
struct Join<'a, K> {
    shared: &'a Shared<K>,
    id: IndexId,
}

impl<'a, K> Join<'a, K> {
    /// Lets the writer take part from now on; also returns what it does not: the objects at this moment.
    fn begin(
        shared: &'a Shared<K>,
        definition: &Arc<dyn AnyIndex<K>>,
    ) -> Result<(Self, Entries<Cached<K>>), IndexError> {
        let id = IndexId::next();
        let mut notes = shared.write.lock();
        if notes.is_taken(definition.name()) {
            return Err(IndexError::Duplicate { name: definition.name().to_owned() });
        }
        notes.generation += 1;
        notes.joining.push(Joining { id, definition: Arc::clone(definition), log: Vec::new() });
        Ok((Self { shared, id }, shared.state.read().objects.entries().clone()))
    }

    /// Puts what the writer has noted in place, and then the index, in one step under the writer's lock.
    fn finish(self, mut build: Build<K>) -> IndexId {
        let mut notes = self.shared.write.lock();
        notes.generation += 1;
        let position = notes.joining.iter().position(|joining| joining.id == self.id);
        let mut joined = position.map(|position| notes.joining.remove(position));
        for logged in joined.iter_mut().flat_map(|joining| &mut joining.log) {
            build.replay(logged);
        }
        let Build { definition, index, by_slot, failures, covered } = build;
        notes.indices.push(IndexNotes { definition: Arc::clone(&definition), by_slot, failures });
        self.shared.state.write().indices.push(NamedIndex { id: self.id, definition, index });
        drop(notes);
        self.shared.joined.notify_all();
        // I8: values and objects may be the user's, with a drop of their own.
        drop((joined, covered));
        self.id
    }
}

impl<K> Drop for Join<'_, K> {
    /// Ends the writer's part if the build did not come to its end, because a value's `Hash` or `Eq` panicked.
    fn drop(&mut self) {
        let mut notes = self.shared.write.lock();
        if let Some(position) = notes.joining.iter().position(|joining| joining.id == self.id) {
            notes.generation += 1;
            let abandoned = notes.joining.remove(position);
            drop(notes);
            self.shared.joined.notify_all();
            drop(abandoned);
        }
    }
}

/// An index under construction, and the objects it covers so far.
struct Build<K> {
    definition: Arc<dyn AnyIndex<K>>,
    index: Box<dyn AnyIndexState>,
    by_slot: ValuesBySlot,
    failures: HashMap<ObjectKey, IndexFailure>,
    covered: Entries<Cached<K>>,
}

impl<K> Build<K> {
    fn new(definition: &Arc<dyn AnyIndex<K>>) -> Self {
        Self {
            definition: Arc::clone(definition),
            index: definition.new_state(),
            by_slot: ValuesBySlot::new(),
            failures: HashMap::new(),
            covered: PersistentVec::new(),
        }
    }

    /// Brings the index from the objects it covers to `entries`; returns how many slots that changed.
    fn catch_up(&mut self, entries: Entries<Cached<K>>) -> usize {
        let (mut slots, mut changes) = (Vec::new(), Vec::new());
        let outdated = &mut self.failures;
        entries.for_each_difference(&self.covered, |slot, now, before| {
            let (now, before) = (now.and_then(Option::as_ref), before.and_then(Option::as_ref));
            let change = match (now, before) {
                (Some(now), Some(before)) if now.ptr_eq(before) => return,
                (Some(now), _) => Change::Put(now.clone()),
                (None, Some(before)) => Change::Remove(before.key().clone()),
                (None, None) => return,
            };
            // Of whatever object was in the slot before; it may have gone to another.
            before.map(|before| outdated.remove(before.key()));
            slots.push(slot as u32);
            changes.push(change);
        });
        let mut failures = Failures::new();
        let mut computed = self.definition.compute(&changes, &mut failures);
        self.failures.extend(failures.into_iter().map(|(_, failure)| (failure.key.clone(), failure)));
        let mut applied = slots.iter().zip(&changes).map(|(slot, change)| {
            let key = matches!(change, Change::Put(_)).then(|| change.key());
            Some(Applied { slot: *slot, key, is_new: true })
        });
        let panicked =
            self.definition.apply(self.index.as_mut(), &mut self.by_slot, &mut computed, &mut applied);
        drop(applied);
        for change in panicked.into_iter().map(|position| &changes[position]) {
            self.note_panic(change.key(), change.resource_version());
        }
        self.covered = entries;
        changes.len()
    }

    /// Follows a transaction that the writer has noted.
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
