//! [`Handlers`]: an [`EventHandler`] made of closures.
//!
//! client-go: `ResourceEventHandlerFuncs` and `ResourceEventHandlerDetailedFuncs` of
//! tools/cache/controller.go.

use std::fmt;

use crate::{Cached, Deleted, EventHandler};

type OnAdd<K> = Box<dyn Fn(&Cached<K>, bool) + Send + Sync>;
type OnUpdate<K> = Box<dyn Fn(&Cached<K>, &Cached<K>) + Send + Sync>;
type OnDelete<K> = Box<dyn Fn(&Deleted<K>) + Send + Sync>;
type OnRelease<K> = Box<dyn Fn(&Cached<K>) + Send + Sync>;

/// An [`EventHandler`] made of closures. Events without a closure are ignored.
///
/// ```
/// use informer_core::Handlers;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let handlers = Handlers::<Pod>::new()
///     .on_add(|pod, _is_in_initial_list| println!("+ {}", pod.key()))
///     .on_update(|_old, new| println!("~ {}", new.key()))
///     .on_delete(|pod| println!("- {}", pod.key()));
/// # let _ = handlers;
/// ```
#[doc(alias = "ResourceEventHandlerFuncs")]
#[doc(alias = "ResourceEventHandlerDetailedFuncs")]
pub struct Handlers<K> {
    add: Option<OnAdd<K>>,
    update: Option<OnUpdate<K>>,
    delete: Option<OnDelete<K>>,
    release: Option<OnRelease<K>>,
}

impl<K> Handlers<K> {
    /// Returns a handler without closures.
    #[must_use]
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None, release: None }
    }

    /// Sets the closure for added objects: [`EventHandler::on_add`].
    #[must_use]
    pub fn on_add(mut self, f: impl Fn(&Cached<K>, bool) + Send + Sync + 'static) -> Self {
        self.add = Some(Box::new(f));
        self
    }

    /// Sets the closure for updated objects: [`EventHandler::on_update`].
    #[must_use]
    pub fn on_update(mut self, f: impl Fn(&Cached<K>, &Cached<K>) + Send + Sync + 'static) -> Self {
        self.update = Some(Box::new(f));
        self
    }

    /// Sets the closure for deleted objects: [`EventHandler::on_delete`].
    #[must_use]
    pub fn on_delete(mut self, f: impl Fn(&Deleted<K>) + Send + Sync + 'static) -> Self {
        self.delete = Some(Box::new(f));
        self
    }

    /// Sets the closure for objects whose namespace is no longer watched:
    /// [`EventHandler::on_release`].
    #[must_use]
    pub fn on_release(mut self, f: impl Fn(&Cached<K>) + Send + Sync + 'static) -> Self {
        self.release = Some(Box::new(f));
        self
    }
}

impl<K: 'static> EventHandler<K> for Handlers<K> {
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        if let Some(add) = &self.add {
            add(object, is_in_initial_list);
        }
    }

    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        if let Some(update) = &self.update {
            update(old, new);
        }
    }

    fn on_delete(&self, object: &Deleted<K>) {
        if let Some(delete) = &self.delete {
            delete(object);
        }
    }

    fn on_release(&self, object: &Cached<K>) {
        if let Some(release) = &self.release {
            release(object);
        }
    }
}

impl<K> Default for Handlers<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for Handlers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers")
            .field("on_add", &self.add.is_some())
            .field("on_update", &self.update.is_some())
            .field("on_delete", &self.delete.is_some())
            .field("on_release", &self.release.is_some())
            .finish()
    }
}
