//! The changing set of namespaces of a factory whose informers watch each namespace separately.

use std::collections::BTreeSet;

use informer_core::{AnyObject, Completion};
use parking_lot::Mutex;

use super::SharedInformerFactory;
use super::scope::NamespaceScope;
use crate::SharedIndexInformer;
use crate::namespaces::NamespaceError;

/// The current namespaces of a factory. No other lock is taken while the lock of this set is held.
pub(super) type WatchedNamespaces = Mutex<BTreeSet<String>>;

impl SharedInformerFactory {
    /// Adds a namespace to all informers of a factory that was built with
    /// [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces), including informers that
    /// are created later. Informers from a handle of [`in_namespace`](Self::in_namespace) or
    /// [`in_all_namespaces`](Self::in_all_namespaces), and informers of cluster-scoped resources,
    /// are not affected.
    ///
    /// Returns one [`Completion`] for each informer. It is set when the first list of the namespace
    /// is in the informer's store; see
    /// [`SharedIndexInformer::add_namespace`](crate::SharedIndexInformer::add_namespace).
    ///
    /// # Errors
    /// [`NamespaceError::FixedFactory`] if the factory was built without
    /// [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces),
    /// [`NamespaceError::InvalidName`] for an invalid name, and [`NamespaceError::Fixed`] if an
    /// informer was created with [`informer_with`](Self::informer_with) and a source that does not
    /// support one watch per namespace. Despite `Fixed`, the namespace has been added to all other
    /// informers.
    pub fn add_namespace(&self, namespace: &str) -> Result<Vec<Completion>, NamespaceError> {
        NamespaceError::check_name(namespace)?;
        self.change_namespaces(namespace, |names| _ = names.insert(namespace.to_owned()))
    }

    /// Removes a namespace from all informers of a factory that was built with
    /// [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces). Informers that are
    /// created later do not watch the namespace either. Informers from a handle of
    /// [`in_namespace`](Self::in_namespace) or [`in_all_namespaces`](Self::in_all_namespaces), and
    /// informers of cluster-scoped resources, are not affected.
    ///
    /// The objects of the namespace leave the stores, and handlers receive them as
    /// [released](crate::Event::Released), not as deleted.
    ///
    /// Returns one [`Completion`] for each informer. It is set when the informer's store has no
    /// object of the namespace; see
    /// [`SharedIndexInformer::remove_namespace`](crate::SharedIndexInformer::remove_namespace).
    ///
    /// # Errors
    /// [`NamespaceError::FixedFactory`] if the factory was built without
    /// [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces),
    /// [`NamespaceError::InvalidName`] for an invalid name, and [`NamespaceError::Fixed`] if an
    /// informer was created with [`informer_with`](Self::informer_with) and a source that does not
    /// support one watch per namespace. Despite `Fixed`, the namespace has been removed from all
    /// other informers.
    pub fn remove_namespace(&self, namespace: &str) -> Result<Vec<Completion>, NamespaceError> {
        NamespaceError::check_name(namespace)?;
        self.change_namespaces(namespace, |names| _ = names.remove(namespace))
    }

    /// Returns the current namespaces of a factory that was built with
    /// [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces), sorted by name. Empty for
    /// other factories.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        let names = self.inner.watched_namespaces.as_ref().map(|watched| watched.lock().clone());
        names.into_iter().flatten().collect()
    }

    fn change_namespaces(
        &self,
        namespace: &str,
        change: impl FnOnce(&mut BTreeSet<String>),
    ) -> Result<Vec<Completion>, NamespaceError> {
        let watched = self.inner.watched_namespaces.as_ref().ok_or(NamespaceError::FixedFactory)?;
        change(&mut watched.lock());
        // I8: adding a namespace calls user code, so the registry must not be locked then.
        let of_the_factory = self
            .inner
            .informers
            .iter()
            .filter(|entry| entry.key().scope.namespace == NamespaceScope::Separate);
        let informers: Vec<_> = of_the_factory.map(|entry| entry.handle()).collect();
        let mut completions = Vec::new();
        let mut refused = None;
        for informer in informers {
            match apply_namespace(&informer, watched, namespace) {
                Ok(of_informer) => completions.push(of_informer),
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(completions), Err)
    }

    /// Adds the factory's namespaces to `informer`, and removes the informer's other namespaces.
    ///
    /// For example, if another thread removes a namespace from the factory while an informer is
    /// created, this function removes that namespace from the new informer.
    pub(super) fn apply_namespaces(&self, informer: &SharedIndexInformer<AnyObject>) {
        let Some(watched) = &self.inner.watched_namespaces else { return };
        let names = watched.lock().clone();
        for name in names.into_iter().chain(informer.namespaces()) {
            // The only possible error is the one that `log_fixed_namespaces` has logged.
            if apply_namespace(informer, watched, &name).is_err() {
                return;
            }
        }
    }
}

/// Logs an error if the namespaces of a new informer cannot change: the informer then ignores the
/// namespaces of the factory.
pub(super) fn log_fixed_namespaces(informer: &SharedIndexInformer<AnyObject>) {
    if let Err(error) = informer.namespace_set() {
        tracing::error!(
            resource = informer.status().description(), %error,
            "new informer cannot watch the factory's namespaces; in `informer_with`, create the informer with the \
             source that the closure receives"
        );
    }
}

/// Adds the namespace `name` to an informer, or removes it if `watched` does not contain it.
/// Returns the [`Completion`] of the addition or removal.
fn apply_namespace(
    informer: &SharedIndexInformer<AnyObject>,
    watched: &WatchedNamespaces,
    name: &str,
) -> Result<Completion, NamespaceError> {
    // If two threads applied the whole set, each could remove the namespace that the other has
    // added.
    loop {
        let is_watched = watched.lock().contains(name);
        let completion =
            if is_watched { informer.add_namespace(name)? } else { informer.remove_namespace(name)? };
        // Another thread can have changed `watched` meanwhile.
        if watched.lock().contains(name) == is_watched {
            return Ok(completion);
        }
    }
}
