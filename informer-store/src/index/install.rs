//! Adding an index to a store that is in use: built beside the readers and the writer, then put in place.
//!
//! The function is the user's code, so no lock is held while it runs. It first runs over a snapshot, then over what has
//! changed since, until nothing has; the last look and the installation are one step under the writer's lock.

use std::collections::HashMap;
use std::sync::Arc;

use informer_core::{Cached, ObjectKey};

use super::{AnyIndex, AnyIndexState, Applied, Definition, Index, IndexValue, ValuesBySlot};
use crate::persistent_vec::PersistentVec;
use crate::shared::{IndexId, IndexNotes, NamedIndex, Shared};
use crate::slot_map::Entries;
use crate::{Change, IndexError, IndexFailure};

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
    let duplicate = || IndexError::Duplicate { name: definition.name().to_owned() };
    let mut build = Build::new(&definition);
    loop {
        if shared.write.lock().position(definition.name()).is_some() {
            return Err(duplicate());
        }
        let entries = shared.state.read().objects.entries().clone();
        build.catch_up(entries);
        let mut notes = shared.write.lock();
        let up_to_date = build.is_up_to_date_with(shared.state.read().objects.entries());
        if notes.position(definition.name()).is_some() {
            return Err(duplicate());
        }
        if up_to_date {
            let id = IndexId::next();
            let Build { index, by_slot, failures, .. } = build;
            notes.generation += 1;
            notes.indices.push(IndexNotes { definition: Arc::clone(&definition), by_slot, failures });
            shared.state.write().indices.push(NamedIndex::new(id, definition.as_ref(), index));
            return Ok(Index::new(Arc::clone(shared), id, definition.name()));
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

    /// Brings the index from the objects it covers to `entries`.
    fn catch_up(&mut self, entries: Entries<Cached<K>>) {
        let (mut slots, mut changes) = (Vec::new(), Vec::new());
        let outdated = &mut self.failures;
        entries.for_each_difference(&self.covered, |slot, now, before| {
            let before = before.and_then(Option::as_ref);
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
        let mut failures = Vec::new();
        let computed = self.definition.compute(&changes, &mut failures);
        self.failures.extend(failures.into_iter().map(|failure| (failure.key.clone(), failure)));
        let mut applied = slots.iter().zip(&changes).map(|(slot, change)| {
            let object = match change {
                Change::Put(object) => Some(object),
                Change::Remove(_) => None,
            };
            Some(Applied { slot: *slot, object, is_new: true })
        });
        self.definition.apply(self.index.as_mut(), &mut self.by_slot, computed, &mut applied);
        self.covered = entries;
    }

    fn is_up_to_date_with(&self, entries: &Entries<Cached<K>>) -> bool {
        let mut same = true;
        entries.for_each_difference(&self.covered, |_, now, before| {
            same &= match (now, before.and_then(Option::as_ref)) {
                (Some(now), Some(before)) => now.ptr_eq(before),
                (now, before) => now.is_none() && before.is_none(),
            };
        });
        same
    }
}
