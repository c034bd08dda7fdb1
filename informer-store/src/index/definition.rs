//! [`Definition`]: an index's name and function, and how changes of objects become changes of the index.
//!
//! Work is in two steps, because a function is the user's code and must not run under a lock (I8): `compute` calls it
//! with no lock held, `apply` puts what it said in place.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_core::{Cached, ObjectKey, ResourceVersion, panic_message};
use smallvec::SmallVec;

use super::{AnyIndexState, IndexState, IndexValue, ValueEntry};
use crate::{Change, IndexFailure};

/// The values of one object; nearly always none or one.
pub(crate) type Values<V> = SmallVec<[V; 1]>;

/// The numbers of the values that each slot has in an index.
pub(crate) type ValuesBySlot = Vec<SmallVec<[u32; 2]>>;

type ObjectFunction<K, V> = Box<dyn Fn(&K) -> Result<Values<V>, String> + Send + Sync>;

/// How the values of an object are found.
pub(crate) enum Function<K, V> {
    /// By the user's function, from the object.
    OfObject(ObjectFunction<K, V>),
    /// By ours, from its key alone; so they never change while the object lives.
    OfKey(fn(&ObjectKey) -> Values<V>),
}

/// An index as it was defined.
pub(crate) struct Definition<K, V> {
    name: String,
    function: Function<K, V>,
}

/// What became of a change in the table of objects.
#[derive(Debug, Clone)]
pub(crate) struct Applied<'a> {
    pub(crate) slot: u32,
    /// The key of the object that is in the slot now.
    pub(crate) key: Option<&'a ObjectKey>,
    /// Whether it took a slot that it did not have before.
    pub(crate) is_new: bool,
}

/// What an index function said of a row of changes: the values for each, where there are any to be set.
pub(crate) type Computed = Box<dyn Any + Send>;

/// What [`Computed`] holds for a function of the user's. Values that were not needed stay in it, and those that are out of
/// use are added, so that none is dropped where a lock is held (I8).
struct ComputedValues<V> {
    rows: Vec<Values<V>>,
    out_of_use: Vec<Arc<ValueEntry<V>>>,
}

/// Which of a row of changes index functions could not place, and why.
pub(crate) type Failures = Vec<(usize, IndexFailure)>;

/// The failures that still hold after all of `changes`: not those of an object that a later change replaces or removes.
pub(crate) fn lasting<K>(failures: Failures, changes: &[Change<K>]) -> Vec<IndexFailure> {
    if failures.is_empty() {
        return Vec::new();
    }
    let last: HashMap<&ObjectKey, usize> =
        changes.iter().enumerate().map(|(position, change)| (change.key(), position)).collect();
    let lasts = |(position, failure): &(usize, IndexFailure)| last.get(&failure.key) == Some(position);
    failures.into_iter().filter(lasts).map(|(_, failure)| failure).collect()
}

/// A [`Definition`] with values of any type.
pub(crate) trait AnyIndex<K>: Send + Sync {
    fn name(&self) -> &str;

    fn new_state(&self) -> Box<dyn AnyIndexState>;

    /// The [`Values`] of one object, or why there are none. No lock may be held.
    fn values_of(&self, object: &Cached<K>) -> Result<Computed, String>;

    /// Calls the index function for each change, and adds to `failures` where it fails. No lock may be held.
    fn compute(&self, changes: &[Change<K>], failures: &mut Failures) -> Computed;

    /// Puts computed values in place; the changes are the same as were given to `compute`. What is left in `computed` may
    /// only be dropped when no lock is held. Returns the positions of the changes whose values could not be placed.
    fn apply(
        &self,
        state: &mut dyn AnyIndexState,
        by_slot: &mut ValuesBySlot,
        computed: &mut Computed,
        applied: &mut dyn Iterator<Item = Option<Applied<'_>>>,
    ) -> Vec<usize>;
}

impl<K, V: IndexValue> Definition<K, V> {
    pub(crate) fn of_object(
        name: String,
        function: impl Fn(&K) -> Result<Values<V>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name, function: Function::OfObject(Box::new(function)) }
    }

    pub(crate) fn of_key(name: &str, function: fn(&ObjectKey) -> Values<V>) -> Self {
        Self { name: name.to_owned(), function: Function::OfKey(function) }
    }

    /// The values of one object, or what went wrong.
    fn call(&self, object: &Cached<K>) -> Result<Values<V>, String> {
        match &self.function {
            Function::OfKey(function) => Ok(function(object.key())),
            Function::OfObject(function) => catch_unwind(AssertUnwindSafe(|| function(object)))
                .unwrap_or_else(|payload| {
                    Err(format!("the index function panicked: {}", panic_message(payload)))
                }),
        }
    }
}

impl<K, V: IndexValue> AnyIndex<K> for Definition<K, V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn new_state(&self) -> Box<dyn AnyIndexState> {
        Box::new(IndexState::<V>::new())
    }

    fn values_of(&self, object: &Cached<K>) -> Result<Computed, String> {
        Ok(Box::new(self.call(object)?))
    }

    fn compute(&self, changes: &[Change<K>], failures: &mut Failures) -> Computed {
        let Function::OfObject(_) = &self.function else { return Box::new(()) };
        let mut rows: Vec<Values<V>> = Vec::with_capacity(changes.len());
        for (position, change) in changes.iter().enumerate() {
            rows.push(match change {
                Change::Put(object) => self.call(object).unwrap_or_else(|error| {
                    // I10: quarantined, with what is known of it.
                    let failure = IndexFailure {
                        index: self.name.clone(),
                        key: object.key().clone(),
                        resource_version: object.resource_version().clone(),
                        error,
                    };
                    failures.push((position, failure));
                    Values::new()
                }),
                Change::Remove(_) => Values::new(),
            });
        }
        Box::new(ComputedValues { rows, out_of_use: Vec::new() })
    }

    fn apply(
        &self,
        state: &mut dyn AnyIndexState,
        by_slot: &mut ValuesBySlot,
        computed: &mut Computed,
        applied: &mut dyn Iterator<Item = Option<Applied<'_>>>,
    ) -> Vec<usize> {
        let mut panicked = Vec::new();
        let Some(state) = state.as_any_mut().downcast_mut::<IndexState<V>>() else { return panicked };
        let mut own = ComputedValues { rows: Vec::new(), out_of_use: Vec::new() };
        let computed = computed.downcast_mut::<ComputedValues<V>>().unwrap_or(&mut own);
        for (position, applied) in applied.enumerate() {
            let Some(applied) = applied else { continue };
            let mut no_values = Values::new();
            let values = match (&self.function, applied.key) {
                (Function::OfKey(_), Some(_)) if !applied.is_new => continue,
                (Function::OfKey(function), Some(key)) => {
                    no_values = function(key);
                    &mut no_values
                }
                (Function::OfObject(_), Some(_)) => computed.rows.get_mut(position).unwrap_or(&mut no_values),
                (_, None) => &mut no_values,
            };
            if set_values(state, by_slot, applied.slot, values, &mut computed.out_of_use).is_err() {
                panicked.push(position);
            }
        }
        panicked
    }
}

/// A `Hash` or `Eq` of the user's has panicked.
struct ValuePanicked;

/// The failure that is noted where [`AnyIndex::apply`] could not place an object's values.
pub(crate) fn value_panicked(
    index: &str,
    key: &ObjectKey,
    resource_version: ResourceVersion,
) -> IndexFailure {
    let error = "`Hash` or `Eq` of a value panicked".to_owned();
    IndexFailure { index: index.to_owned(), key: key.clone(), resource_version, error }
}

/// Makes `values` the values of a slot, touching only the postings for which that is a change. If a `Hash` or `Eq` panics, the
/// slot has no values.
fn set_values<V: IndexValue>(
    state: &mut IndexState<V>,
    by_slot: &mut ValuesBySlot,
    slot: u32,
    values: &mut Values<V>,
    out_of_use: &mut Vec<Arc<ValueEntry<V>>>,
) -> Result<(), ValuePanicked> {
    let row = slot as usize;
    if by_slot.len() <= row {
        by_slot.resize_with(row + 1, SmallVec::new);
    }
    let mut new = SmallVec::new();
    let found = catch_unwind(AssertUnwindSafe(|| state.add_ids_of(values, &mut new)));
    let outcome = found.map_err(|payload| {
        drop(panic_message(payload));
        out_of_use.extend(new.drain(..).filter_map(|id| state.remove_unused(id)));
        ValuePanicked
    });
    new.sort_unstable();
    new.dedup();
    let old = std::mem::replace(&mut by_slot[row], new);
    let new = &by_slot[row];
    for id in new.iter().filter(|id| !old.contains(id)) {
        state.insert(*id, slot);
    }
    for id in old.iter().filter(|id| !new.contains(id)) {
        out_of_use.extend(state.remove(*id, slot));
    }
    outcome
}
