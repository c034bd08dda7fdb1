//! [`ReleasedNames`]: the names of the namespaces that were removed from an informer and not added
//! again.
//!
//! If the store lacks an object of a removed namespace, the object can still exist on the server.
//! The names make it possible to distinguish this case from a deletion.
//!
//! A caller can wait until a removed namespace is added again. For this, the caller receives a
//! [`Completion`], which is set when the namespace is added.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_core::Completion;

/// The number of latest removals whose names a cleanup keeps. A cleanup also keeps each older name
/// for which a caller waits. A cleanup runs when twice this number of names is recorded.
const MIN_KEPT_NAMES: u64 = 10_000;

#[derive(Default)]
pub(super) struct ReleasedNames {
    names: BTreeMap<Arc<str>, Released>,
    removals: u64,
}

struct Released {
    /// The position of the namespace in the order of removals.
    number: u64,
    /// The completion that is set when the namespace is added again. `None` if no caller has
    /// requested it.
    watched_again: Option<Completion>,
}

impl Released {
    fn has_waiter(&self) -> bool {
        self.watched_again.as_ref().is_some_and(|completion| completion.handle_count() > 1)
    }
}

impl ReleasedNames {
    pub(super) fn insert(&mut self, name: Arc<str>) {
        self.names.insert(name, Released { number: self.removals, watched_again: None });
        self.removals += 1;
        if self.names.len() as u64 >= 2 * MIN_KEPT_NAMES {
            let oldest = self.removals - MIN_KEPT_NAMES;
            // A namespace is kept while it has a waiter.
            self.names.retain(|_, released| released.number >= oldest || released.has_waiter());
        }
    }

    /// Removes the name of a namespace that is added again. The caller must
    /// [set](Completion::set) the returned completion, for which other callers wait.
    pub(super) fn remove(&mut self, name: &str) -> Option<Completion> {
        self.names.remove(name)?.watched_again
    }

    /// Returns a [`Completion`] that is set when the namespace is added again. Returns `None` if no
    /// removal of the namespace is recorded.
    pub(super) fn watched_again(&mut self, name: &str) -> Option<Completion> {
        Some(self.names.get_mut(name)?.watched_again.get_or_insert_with(Completion::new).clone())
    }

    /// Returns the completions of all callers that wait until a removed namespace is added again.
    pub(super) fn completions(&self) -> Vec<Completion> {
        self.names.values().filter_map(|released| released.watched_again.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_are_forgotten_unless_awaited() {
        let mut names = ReleasedNames::default();
        names.insert("awaited".into());
        let completion = names.watched_again("awaited").expect("the namespace was removed");
        names.insert("no longer awaited".into());
        drop(names.watched_again("no longer awaited").expect("the namespace was removed"));
        for n in 0..5 * MIN_KEPT_NAMES {
            names.insert(n.to_string().into());
            assert!(names.names.len() as u64 <= 2 * MIN_KEPT_NAMES);
            assert!(n < MIN_KEPT_NAMES || names.names.contains_key(&*(n - MIN_KEPT_NAMES + 1).to_string()));
        }
        assert!(names.watched_again("0").is_none() && names.watched_again("no longer awaited").is_none());
        names.remove("awaited").expect("the namespace has a waiter").set();
        assert!(completion.has_synced() && names.watched_again("awaited").is_none());
    }
}
