//! [`Definition`]: the name and function of an index.
//!
//! A change of the index has two steps. First, `compute` calls the user's function while no lock is
//! held. Then `apply` adds the returned values to the index. If the function is this crate's own
//! function of the key, `compute` does nothing, and `apply` calls the function.
//!
//! An object is identified by its slot, the number of the object in the store's
//! [`SlotMap`](crate::slot_map::SlotMap).

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_core::{AnyObject, Cached, ObjectKey, ResourceVersion, panic_message};
use smallvec::SmallVec;

use super::{AnyIndexState, IndexState, IndexValue, ValueEntry};
use crate::{Change, IndexFailure};

/// The index values of one object, usually at most one.
pub(crate) type Values<V> = SmallVec<[V; 1]>;

/// For each slot, the IDs that the index has assigned to the index values of the object. The IDs
/// are sorted.
pub(crate) type ValuesBySlot = Vec<SmallVec<[u32; 2]>>;

type ObjectFunction<V> = Box<dyn Fn(&Cached<AnyObject>) -> Result<Values<V>, String> + Send + Sync>;

pub(crate) enum Function<V> {
    /// A user's function of the whole object.
    OfObject(ObjectFunction<V>),
    /// This crate's own function of the object's key. Its values never change while the object
    /// exists.
    OfKey(fn(&ObjectKey) -> Values<V>),
}

pub(crate) struct Definition<V> {
    name: String,
    function: Function<V>,
}

/// A change of one object, which has been applied to the store's
/// [`SlotMap`](crate::slot_map::SlotMap), but not yet to the index.
#[derive(Debug, Clone)]
pub(crate) struct Applied<'a> {
    pub(crate) slot: u32,
    /// The key of the added or updated object. `None` if the change removed the object.
    pub(crate) key: Option<&'a ObjectKey>,
    /// `true` if the change added the object, `false` if the change updated the object. `true` is
    /// also correct for an update. Ignored for a removal.
    ///
    /// If `false`, [`AnyIndex::apply`] keeps the index values of a [`Function::OfKey`], because the
    /// key is the same. If `true`, `apply` calls the function.
    pub(crate) is_new: bool,
}

/// Type-erased index values: those of one object ([`AnyIndex::values_of`]) or of several changes
/// ([`AnyIndex::compute`]).
pub(crate) type Computed = Box<dyn Any + Send>;

/// The index values for several changes, and the values that no object has any more after these
/// changes.
struct ComputedValues<V> {
    /// One element for each change: the index values of the object. The element is empty if the
    /// change is a removal, or if the index function failed.
    rows: Vec<Values<V>>,
    /// Index values that no object has any more after [`AnyIndex::apply`]. They stay here until
    /// they can be dropped without a lock.
    out_of_use: Vec<Arc<ValueEntry<V>>>,
}

/// Failures of index functions, each with the position of the failed change in the transaction.
pub(crate) type Failures = Vec<(usize, IndexFailure)>;

/// Drops each failure whose object is replaced or removed by a later change. Returns the others.
fn remaining_failures(failures: Failures, changes: &[Change<AnyObject>]) -> Vec<IndexFailure> {
    if failures.is_empty() {
        return Vec::new();
    }
    let last: HashMap<&ObjectKey, usize> =
        changes.iter().enumerate().map(|(position, change)| (change.key(), position)).collect();
    let lasts = |(position, failure): &(usize, IndexFailure)| last.get(&failure.key) == Some(position);
    failures.into_iter().filter(lasts).map(|(_, failure)| failure).collect()
}

/// The number of changes in a chunk. All index functions run for one chunk before any of them runs
/// for the next chunk.
// A `Codec` keeps the last 32 decoded objects, so it usually decodes each object once for all
// functions.
const COMPUTED_TOGETHER: usize = 32;

/// Computes the values of all indexes for the changes ([`AnyIndex::compute`]). Also returns the
/// failures, except those of objects that a later change replaces or removes. Must be called
/// without a lock.
pub(crate) fn compute_all(
    definitions: &[Arc<dyn AnyIndex>],
    changes: &[Change<AnyObject>],
) -> (SmallVec<[Computed; 2]>, Vec<IndexFailure>) {
    let mut failures = Failures::new();
    let mut computed: SmallVec<_> =
        definitions.iter().map(|index| index.new_computed(changes.len())).collect();
    for (number, together) in changes.chunks(COMPUTED_TOGETHER).enumerate() {
        for (index, computed) in definitions.iter().zip(&mut computed) {
            index.compute(together, number * COMPUTED_TOGETHER, computed, &mut failures);
        }
    }
    (computed, remaining_failures(failures, changes))
}

/// A type-erased [`Definition`]: its users do not know the type of the index values.
pub(crate) trait AnyIndex: Send + Sync {
    fn name(&self) -> &str;

    fn new_state(&self) -> Box<dyn AnyIndexState>;

    /// Calls the index function for one object, and returns its boxed [`Values`]. Must be called
    /// while no lock is held.
    fn values_of(&self, object: &Cached<AnyObject>) -> Result<Computed, String>;

    /// Returns an empty container to which [`compute`](Self::compute) can append the index values
    /// for this number of changes.
    fn new_computed(&self, changes: usize) -> Computed;

    /// Calls a user's index function for each added or updated object, and appends the values to
    /// `computed`. Must be called while no lock is held.
    ///
    /// `first` is the position of the first of the `changes` in the transaction.
    fn compute(
        &self,
        changes: &[Change<AnyObject>],
        first: usize,
        computed: &mut Computed,
        failures: &mut Failures,
    );

    /// Returns the number of index values in `computed`. Returns `None` for a [`Function::OfKey`],
    /// because [`apply`](Self::apply) computes its values, at most one for each object.
    fn computed_values(&self, computed: &Computed) -> Option<usize>;

    /// Applies changes to the index: to `state` and `by_slot`. Returns the positions in `applied`
    /// of the changes after which the index lacks the object, because the `Hash` or `Eq` of an
    /// index value panicked.
    ///
    /// - `computed` has the index values for the same changes. Drop it while no lock is held.
    /// - `applied` has one element for each change; `None` if there was no object to remove.
    fn apply(
        &self,
        state: &mut dyn AnyIndexState,
        by_slot: &mut ValuesBySlot,
        computed: &mut Computed,
        applied: &mut dyn Iterator<Item = Option<Applied<'_>>>,
    ) -> Vec<usize>;
}

impl<V: IndexValue> Definition<V> {
    pub(crate) fn of_object<K: 'static>(
        name: String,
        function: impl Fn(&Cached<K>) -> Result<Values<V>, String> + Send + Sync + 'static,
    ) -> Self {
        let function = move |object: &Cached<AnyObject>| object.with_type(&function);
        Self { name, function: Function::OfObject(Box::new(function)) }
    }

    pub(crate) fn of_key(name: &str, function: fn(&ObjectKey) -> Values<V>) -> Self {
        Self { name: name.to_owned(), function: Function::OfKey(function) }
    }

    fn call(&self, object: &Cached<AnyObject>) -> Result<Values<V>, String> {
        match &self.function {
            Function::OfKey(function) => Ok(function(object.key())),
            Function::OfObject(function) => catch_unwind(AssertUnwindSafe(|| function(object)))
                .unwrap_or_else(|payload| {
                    Err(format!("the index function panicked: {}", panic_message(payload)))
                }),
        }
    }
}

impl<V: IndexValue> AnyIndex for Definition<V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn new_state(&self) -> Box<dyn AnyIndexState> {
        Box::new(IndexState::<V>::new())
    }

    fn values_of(&self, object: &Cached<AnyObject>) -> Result<Computed, String> {
        Ok(Box::new(self.call(object)?))
    }

    fn new_computed(&self, changes: usize) -> Computed {
        match &self.function {
            // `compute` does nothing for this function, because `apply` calls it.
            Function::OfKey(_) => Box::new(()),
            Function::OfObject(_) => {
                Box::new(ComputedValues::<V> { rows: Vec::with_capacity(changes), out_of_use: Vec::new() })
            }
        }
    }

    fn compute(
        &self,
        changes: &[Change<AnyObject>],
        first: usize,
        computed: &mut Computed,
        failures: &mut Failures,
    ) {
        let Some(computed) = computed.downcast_mut::<ComputedValues<V>>() else { return };
        for (position, change) in (first..).zip(changes) {
            computed.rows.push(match change {
                Change::Put(object) => self.call(object).unwrap_or_else(|error| {
                    // I10: the failure is reported.
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
    }

    fn computed_values(&self, computed: &Computed) -> Option<usize> {
        let computed = computed.downcast_ref::<ComputedValues<V>>()?;
        Some(computed.rows.iter().map(SmallVec::len).sum())
    }

    fn apply(
        &self,
        state: &mut dyn AnyIndexState,
        by_slot: &mut ValuesBySlot,
        computed: &mut Computed,
        applied: &mut dyn Iterator<Item = Option<Applied<'_>>>,
    ) -> Vec<usize> {
        // By slot, because a later change of the same object replaces or removes the position.
        let mut panicked = HashMap::new();
        let Some(state) = state.as_any_mut().downcast_mut::<IndexState<V>>() else { return Vec::new() };
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
            match set_values(state, by_slot, applied.slot, values, &mut computed.out_of_use) {
                Err(ValuePanicked) => panicked.insert(applied.slot, position),
                Ok(()) if panicked.is_empty() => continue,
                Ok(()) => panicked.remove(&applied.slot),
            };
        }
        if panicked.is_empty() { Vec::new() } else { panicked.into_values().collect() }
    }
}

/// The error if the `Hash` or `Eq` of an index value panicked.
struct ValuePanicked;

/// Returns the failure that reports a panic of the `Hash` or `Eq` of an index value.
pub(crate) fn value_panicked(
    index: &str,
    key: &ObjectKey,
    resource_version: ResourceVersion,
) -> IndexFailure {
    let error = "`Hash` or `Eq` of a value panicked".to_owned();
    IndexFailure { index: index.to_owned(), key: key.clone(), resource_version, error }
}

/// Sets the index values of the object in a slot. If the `Hash` or `Eq` of a value panics, the
/// object has no values afterwards.
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
    // An object can have thousands of values, so a linear search for each value would be slow.
    for id in new.iter().filter(|id| old.binary_search(id).is_err()) {
        state.insert(*id, slot);
    }
    for id in old.iter().filter(|id| new.binary_search(id).is_err()) {
        out_of_use.extend(state.remove(*id, slot));
    }
    outcome
}
