//! The namespaces that a factory follows one by one, and that come and go while its informers run.

use std::collections::BTreeSet;

use informer_core::Synced;
use parking_lot::Mutex;

use super::SharedInformerFactory;
use super::registry::AnyInformer;
use super::scope::Where;
use crate::NamespaceError;

/// Which namespaces are followed, and how often that has changed. Its lock is taken with no other.
#[derive(Debug, Default)]
pub(super) struct Followed(Mutex<(BTreeSet<String>, u64)>);

impl Followed {
    pub(super) fn new(names: BTreeSet<String>) -> Self {
        Self(Mutex::new((names, 0)))
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>)) {
        let (names, changes) = &mut *self.0.lock();
        change(names);
        *changes += 1;
    }

    fn get(&self) -> (BTreeSet<String>, u64) {
        self.0.lock().clone()
    }

    fn is_still(&self, changes: u64) -> bool {
        self.0.lock().1 == changes
    }
}

impl SharedInformerFactory {
    /// Follows one more namespace, with every informer of a factory made with
    /// [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces), those included that are asked for later. Informers
    /// in a scope of their own, and of cluster-scoped resources, are not affected.
    ///
    /// Returns for each informer the promise that the namespace's first list is in its store, as
    /// [`SharedIndexInformer::add_namespace`](crate::SharedIndexInformer::add_namespace) does.
    ///
    /// # Errors
    /// [`NamespaceError::FixedFactory`] for a factory that was not made for this, [`NamespaceError::InvalidName`] if no
    /// namespace can have that name; and [`NamespaceError::Fixed`] for an informer that somebody has made with
    /// [`informer_with`](Self::informer_with) and a source of another kind: the others follow it all the same.
    pub fn add_namespace(&self, namespace: &str) -> Result<Vec<Synced>, NamespaceError> {
        NamespaceError::check_name(namespace)?;
        self.change_namespaces(|names| _ = names.insert(namespace.to_owned()))
    }

    /// Ceases to follow a namespace, with every informer that [`add_namespace`](Self::add_namespace) is about. Its objects
    /// leave the stores, and handlers hear that they are [released](crate::Event::Released), not deleted.
    ///
    /// Returns for each informer the promise that nothing of the namespace is left in it, as
    /// [`SharedIndexInformer::remove_namespace`](crate::SharedIndexInformer::remove_namespace) does.
    ///
    /// # Errors
    /// As [`add_namespace`](Self::add_namespace).
    pub fn remove_namespace(&self, namespace: &str) -> Result<Vec<Synced>, NamespaceError> {
        self.change_namespaces(|names| _ = names.remove(namespace))
    }

    /// Returns the namespaces that are followed one by one, in the order of their names; none for a factory that was not
    /// made with [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces).
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        let names = self.inner.followed.as_ref().map(|followed| followed.get().0);
        names.into_iter().flatten().collect()
    }

    fn change_namespaces(
        &self,
        change: impl FnOnce(&mut BTreeSet<String>),
    ) -> Result<Vec<Synced>, NamespaceError> {
        let followed = self.inner.followed.as_ref().ok_or(NamespaceError::FixedFactory)?;
        followed.change(change);
        // I8: sources are made with no lock on the registry.
        let of_the_factory =
            self.inner.informers.iter().filter(|entry| entry.key().scope.namespace == Where::Followed);
        let informers: Vec<_> = of_the_factory.map(|entry| entry.handle()).collect();
        let mut promises = Vec::new();
        let mut refused = None;
        for informer in informers {
            match follow(informer.as_ref(), followed) {
                Ok(of_informer) => promises.extend(of_informer),
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(promises), Err)
    }

    /// Has a new informer follow what the factory follows; to be called before others can see it, and again afterwards.
    pub(super) fn follow_namespaces(&self, informer: &dyn AnyInformer) {
        if let Some(followed) = &self.inner.followed
            && let Err(error) = follow(informer, followed)
        {
            tracing::error!("{error}");
        }
    }
}

/// Has an informer follow the namespaces of the factory. Whoever comes in between, with newer ones or older, is made good
/// for by who sees that they have changed.
fn follow(informer: &dyn AnyInformer, followed: &Followed) -> Result<Vec<Synced>, NamespaceError> {
    let mut promises = Vec::new();
    loop {
        let (names, changes) = followed.get();
        promises.extend(informer.follow(&names)?);
        if followed.is_still(changes) {
            return Ok(promises);
        }
    }
}
