//! [`Definition`]: an index's name and function, and how changes of objects become changes of the index.
//!
//! Work is in two steps, because a function is the user's code and must not run under a lock (I8): `compute` calls it
//! with no lock held, `apply` puts what it said in place.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use informer_core::{Cached, ObjectKey};
use smallvec::SmallVec;

use super::{AnyIndexState, IndexState, IndexValue};
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
pub(crate) struct Applied<'a, K> {
    pub(crate) slot: u32,
    /// The object that is in the slot now.
    pub(crate) object: Option<&'a Cached<K>>,
    /// Whether it took a slot that it did not have before.
    pub(crate) is_new: bool,
}

/// What an index function said of a row of changes: the values for each, where there are any to be set.
pub(crate) type Computed = Box<dyn Any + Send>;

/// A [`Definition`] with values of any type.
pub(crate) trait AnyIndex<K>: Send + Sync {
    fn name(&self) -> &str;

    fn new_state(&self) -> Box<dyn AnyIndexState>;

    /// Calls the index function for each change, and adds to `failures` where it fails. No lock may be held.
    fn compute(&self, changes: &[Change<K>], failures: &mut Vec<IndexFailure>) -> Computed;

    /// Puts computed values in place; the changes are the same as were given to `compute`.
    fn apply(
        &self,
        state: &mut dyn AnyIndexState,
        by_slot: &mut ValuesBySlot,
        computed: Computed,
        applied: &mut dyn Iterator<Item = Option<Applied<'_, K>>>,
    );
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

    /// The values of one object; a function that fails or panics leaves it without any.
    fn values_of(
        &self,
        function: &ObjectFunction<K, V>,
        object: &Cached<K>,
        failures: &mut Vec<IndexFailure>,
    ) -> Values<V> {
        let outcome = catch_unwind(AssertUnwindSafe(|| function(object)));
        let error = match outcome {
            Ok(Ok(values)) => return values,
            Ok(Err(error)) => error,
            Err(_) => "the index function panicked".to_owned(),
        };
        // I10: set aside, with what is known of it.
        failures.push(IndexFailure {
            index: self.name.clone(),
            key: object.key().clone(),
            resource_version: object.resource_version().clone(),
            error,
        });
        Values::new()
    }
}

impl<K, V: IndexValue> AnyIndex<K> for Definition<K, V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn new_state(&self) -> Box<dyn AnyIndexState> {
        Box::new(IndexState::<V>::new())
    }

    fn compute(&self, changes: &[Change<K>], failures: &mut Vec<IndexFailure>) -> Computed {
        let Function::OfObject(function) = &self.function else { return Box::new(()) };
        let mut computed: Vec<Values<V>> = Vec::with_capacity(changes.len());
        for change in changes {
            computed.push(match change {
                Change::Put(object) => self.values_of(function, object, failures),
                Change::Remove(_) => Values::new(),
            });
        }
        Box::new(computed)
    }

    fn apply(
        &self,
        state: &mut dyn AnyIndexState,
        by_slot: &mut ValuesBySlot,
        computed: Computed,
        applied: &mut dyn Iterator<Item = Option<Applied<'_, K>>>,
    ) {
        let Some(state) = state.as_any_mut().downcast_mut::<IndexState<V>>() else { return };
        let mut computed = computed.downcast::<Vec<Values<V>>>().map(|values| values.into_iter()).ok();
        for applied in applied {
            let values = computed.as_mut().and_then(Iterator::next);
            let Some(applied) = applied else { continue };
            let values = match (&self.function, applied.object) {
                (_, None) => Values::new(),
                (Function::OfKey(_), Some(_)) if !applied.is_new => continue,
                (Function::OfKey(function), Some(object)) => function(object.key()),
                (Function::OfObject(_), Some(_)) => values.unwrap_or_default(),
            };
            set_values(state, by_slot, applied.slot, values);
        }
    }
}

/// Makes `values` the values of a slot, touching only the postings for which that is a change.
fn set_values<V: IndexValue>(
    state: &mut IndexState<V>,
    by_slot: &mut ValuesBySlot,
    slot: u32,
    values: Values<V>,
) {
    let row = slot as usize;
    if by_slot.len() <= row {
        by_slot.resize_with(row + 1, SmallVec::new);
    }
    let mut new: SmallVec<[u32; 2]> = values.into_iter().map(|value| state.id_of(value)).collect();
    new.sort_unstable();
    new.dedup();
    let old = std::mem::replace(&mut by_slot[row], new);
    let new = &by_slot[row];
    for id in new.iter().filter(|id| !old.contains(id)) {
        state.insert(*id, slot);
    }
    for id in old.iter().filter(|id| !new.contains(id)) {
        state.remove(*id, slot);
    }
}
